/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/render/render_document.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

void nxc_finding_fingerprint(const nxc_finding *finding, const char *file, unsigned n_same, char hex[65]) {
  struct sha256_ctx context;
  uint8_t digest[SHA256_DIGEST_SIZE], n = (uint8_t)n_same;
  sha256_init(&context);
  sha256_update(&context, strlen(file) + 1, (const uint8_t *)file);
  sha256_update(&context, strlen(finding->id) + 1, (const uint8_t *)finding->id);
  sha256_update(&context, strlen(finding->message) + 1, (const uint8_t *)finding->message);
  sha256_update(&context, 1, &n);
  sha256_digest(&context, sizeof digest, digest);
  for (size_t i = 0; i < sizeof digest; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}
