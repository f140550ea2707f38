/* SPDX-License-Identifier: Apache-2.0 */
/* What an index begins with (PREFIX.idx; runtime/data/dataset.h says what it holds), for who only counts:
 * behind it stand the tokens of each sequence, 32 bits each. */
#ifndef NX_INDEX_HEAD_H
#define NX_INDEX_HEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct nx_index_head {
  uint64_t version, n_sequences, n_borders;
} nx_index_head;

/* False where the file is no index. */
static inline bool nx_index_head_read(FILE *file, nx_index_head *head) {
  enum { MAGIC_BYTES = 9, BYTES = 34 };
  unsigned char bytes[BYTES];
  if (fread(bytes, sizeof bytes, 1, file) != 1 || memcmp(bytes, "MMIDIDX\0", MAGIC_BYTES) != 0) return false;
  memcpy(&head->version, bytes + MAGIC_BYTES, sizeof head->version);
  memcpy(&head->n_sequences, bytes + 18, sizeof head->n_sequences);
  memcpy(&head->n_borders, bytes + 26, sizeof head->n_borders);
  return true;
}

#endif
