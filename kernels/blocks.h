/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks of keys the blocks of queries read: attention_sparse of ops.def. */
#ifndef NXK_BLOCKS_H
#define NXK_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct nxk_blocks {
  const int64_t *bits; /* [n_layouts, n_rows, n_words]; NULL: all are read */
  int64_t n_layouts, n_rows, n_words;
  int64_t block; /* places */
} nxk_blocks;

/* Of a head of the model. */
static inline bool nxk_blocks_read(const nxk_blocks *b, int64_t head, int64_t row, int64_t column) {
  int64_t layout = b->n_layouts > 1 ? head : 0;
  return (uint64_t)b->bits[(layout * b->n_rows + row) * b->n_words + column / 64] >> column % 64 & 1;
}

#endif
