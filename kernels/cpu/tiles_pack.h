/* SPDX-License-Identifier: Apache-2.0 */
/* Sides of a product as AMX's tiles read them, in panels of 32 rows or columns: for each step of 32 elements
 * of k a square of 2 KiB, of rows [32][16 words], of columns [16 words][32], even columns before odd ones. A
 * word is two neighbours along k in bf16; fp32 has three squares (tiles_split.h). What a side does not fill
 * is zero. */
#ifndef CPU_TILES_PACK_H
#define CPU_TILES_PACK_H

#include "kernels/cpu/tiles_split.h"

/* A step that the side does not fill. */
static void edge_pack(const product_side *x, step_pack way, const char *from, int64_t n_lanes, int64_t n_k,
                      uint32_t *y) {
  char square[SQUARE * SQUARE * 4] __attribute__((aligned(64))) = {0};
  int64_t size = x->narrow ? 2 : 4, n_rows = x->along ? n_lanes : n_k, n = x->along ? n_k : n_lanes;
  for (int64_t row = 0; row < n_rows; row++)
    memcpy(square + row * SQUARE * size, from + row * x->stride * size, (size_t)(n * size));
  way(square, SQUARE * size, y);
}

/* Rows or columns [first, first + n) of elements [k, k + n_k), in panels one behind the other, in the order
 * in which they are stored. */
static void tiles_pack(const product_side *x, bool columns, int64_t first, int64_t n, int64_t k, int64_t n_k,
                       uint32_t *y) {
  static const step_pack ways[2][2][2] = {
      {{wide_rows_across, wide_rows_along}, {wide_columns_across, wide_columns_along}},
      {{rows_across, rows_along}, {columns_across, columns_along}}};
  const step_pack way = ways[x->narrow][columns][x->along];
  int64_t step_words = (x->narrow ? 1 : SPLIT) * SQUARE_WORDS, row_bytes = (x->narrow ? 2 : 4) * x->stride;
  int64_t n_panels = (n + SQUARE - 1) / SQUARE, n_steps = (n_k + SQUARE - 1) / SQUARE,
          outer = x->along ? n_panels : n_steps, inner = x->along ? n_steps : n_panels;
  for (int64_t i = 0; i < outer; i++)
    for (int64_t j = 0; j < inner; j++) {
      int64_t panel = x->along ? i : j, step = x->along ? j : i;
      int64_t n_lanes = at_most(n - panel * SQUARE, SQUARE), n_there = at_most(n_k - step * SQUARE, SQUARE);
      const char *from = side_at(x, first + panel * SQUARE, k + step * SQUARE);
      uint32_t *to = y + (panel * n_steps + step) * step_words;
      if (n_lanes < SQUARE || n_there < SQUARE) edge_pack(x, way, from, n_lanes, n_there, to);
      else way(from, row_bytes, to);
    }
}

#endif
