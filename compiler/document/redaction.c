/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/redaction.h"

#include "compiler/document/canon.h"
#include "compiler/document/scalar.h"

#include <nettle/sha2.h>

nxc_value nxc_redacted(nxc_arena *arena, const nxc_value *value) {
  enum { SHOWN_BYTES = 8 };
  nxc_buffer canon = {.arena = arena};
  nxc_write_canon(&canon, value);
  struct sha256_ctx context;
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_init(&context);
  sha256_update(&context, canon.n_bytes, (const uint8_t *)canon.bytes);
  sha256_digest(&context, sizeof digest, digest);
  nxc_buffer shown = {.arena = arena};
  nxc_buffer_puts(&shown, "redacted:sha256:");
  for (int i = 0; i < SHOWN_BYTES; i++) nxc_buffer_puts(&shown, nxc_arena_printf(arena, "%02x", digest[i]));
  return nxc_string_value(shown.bytes, shown.n_bytes);
}
