/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any text for keys, for a signature and for a list of sums: nothing is read behind its end, and
 * nothing that is made up is a signature. */
#include "schema/signature.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  static nx_trusted_keys keys;
  const char *hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  char *text = calloc(n_bytes + 1, 1), sum[NX_HASH_TEXT], name[NX_SUM_NAME];
  nx_secret_key key;
  uint32_t line;
  if (text == NULL) abort();
  memcpy(text, bytes, n_bytes);
  nx_key_read(text, &key);
  if (nx_trusted_read(text, &keys, &line)) assert(keys.n > 0 && keys.n <= NX_TRUSTED_KEYS);
  assert(nx_signature_flaw(text, NX_SIGNED_PLAN, hash, &keys) != NULL);
  keys.n = 1; /* the key of corpus/signature: its signature is of another hash */
  memcpy(keys.keys[0],
         "\x3d\x40\x17\xc3\xe8\x43\x89\x5a\x92\xb7\x0a\xa7\x4d\x1b\x7e\xbc\x9c\x98\x2c\xcf\x2e\xc4\x96"
         "\x8c\xc0\xcd\x55\xf1\x2a\xf4\x66\x0c",
         NX_KEY_BYTES);
  assert(nx_signature_flaw(text, NX_SIGNED_PLAN, hash, &keys) != NULL);
  for (const char *at = text; nx_sums_next(&at, sum, name);)
    assert(at <= text + n_bytes && strlen(sum) == NX_HASH_TEXT - 1 && name[0] != '\0' && !strchr(name, '/'));
  free(text);
  return 0;
}
