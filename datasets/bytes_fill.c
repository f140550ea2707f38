/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/bytes.h"

bool nxd_bytes_fill(nxd_bytes *bytes) {
  if (bytes->at == bytes->n) bytes->at = bytes->n = 0;
  size_t n = fread(bytes->room + bytes->n, 1, sizeof bytes->room - bytes->n, bytes->file);
  bytes->n += n, bytes->n_used += n;
  return n > 0;
}
