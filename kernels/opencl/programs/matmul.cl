/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, and of each expert's rows with its own matrix. */
#include "kernels/opencl/programs/tile.cl"

#ifdef IS_matmul
#if N_IN > 2
#define BIASED(sum, column) ((sum) + X2(column))
#else
#define BIASED(sum, column) (sum)
#endif
#define SET_PRODUCT(row, column, sum) \
  SET_Y0((row) * p.n + (column), \
         A_accumulate ? Y0((row) * p.n + (column)) + BIASED(sum, column) : BIASED(sum, column))

kernel void matmul(OPERANDS) {
  TILE_ROOM
  product p = {0, YDIM(0, 3), 0, 0, 0, 0, 0};
  p.m = YN(0) / p.n, p.k = XN(0) / p.m;
  p.a_row = A_trans_a ? 1 : XDIM(0, 3), p.a_k = A_trans_a ? XDIM(0, 3) : 1;
  p.b_column = A_trans_b ? XDIM(1, 3) : 1, p.b_k = A_trans_b ? 1 : XDIM(1, 3);
  long n_across = TILES(p.n, TILE_COLUMNS);
  long row = get_group_id(0) / n_across * TILE_ROWS, column = get_group_id(0) % n_across * TILE_COLUMNS;
  TILE_SUMS(sums)
  TILE_SUM(sums, p, row, column, X0_WIDE, X1_WIDE, a_tile, b_tile)
  TILE_STORE(sums, p, row, column, SET_PRODUCT)
}
#endif

/* Blocks of rows; in each the experts' rows stand one after another, as many as counts[block, expert]. What
 * is read from memory is never trusted. */
#if defined IS_grouped_matmul || defined IS_grouped_bias
#define COUNTS(i) X1(i)
#define N_EXPERTS XDIM(1, 3)
#elif defined IS_grouped_wgrad
#define COUNTS(i) X2(i)
#define N_EXPERTS XDIM(2, 3)
#elif defined IS_grouped_bias_grad
#define COUNTS(i) X1(i)
#define N_EXPERTS XDIM(1, 3)
#endif

#ifdef COUNTS
/* Where the rows of an expert begin in a block of n_rows, and how many there are. */
#define FIND_ROWS(block, expert, n_rows) \
  long first_row = 0, n_own = 0; \
  for (long e = 0; e <= (expert); e++) { \
    first_row += n_own; \
    n_own = clamp((long)COUNTS((block) * N_EXPERTS + e), 0L, (n_rows) - first_row); \
  }

/* The expert of a row; -1: none. */
#define FIND_EXPERT(row, n_rows) \
  long expert = -1, within = (row) % (n_rows); \
  for (long e = 0, left = (n_rows); e < N_EXPERTS && expert < 0; e++) { \
    long count = clamp((long)COUNTS((row) / (n_rows) * N_EXPERTS + e), 0L, left); \
    if (within < count) expert = e; \
    within -= count, left -= count; \
  }
#endif

#ifdef IS_grouped_matmul
/* Groups: tiles of the rows of each expert in each block, as if it had them all; most have nothing to do. */
#define LOAD_ROWS(i, end) X0_WIDE(start * p.k + (i), start * p.k + (end))
#define LOAD_MATRIX(i, end) X2_WIDE(expert * p.k * p.n + (i), expert * p.k * p.n + (end))
#define SET_ROWS(row, column, sum) SET_Y0((start + (row)) * p.n + (column), sum)
kernel void grouped_matmul(OPERANDS) {
  TILE_ROOM
  long n_blocks = XN(1) / N_EXPERTS, n_rows = XN(0) / XDIM(0, 3) / n_blocks;
  long n_down = TILES(n_rows, TILE_ROWS), depth = XDIM(0, 3), width = YDIM(0, 3);
  product p = {0, width, depth, depth, 1, A_trans_b ? depth : 1, A_trans_b ? 1 : width};
  long n_across = TILES(p.n, TILE_COLUMNS), column = get_group_id(0) % n_across * TILE_COLUMNS;
  long row = get_group_id(0) / n_across % n_down * TILE_ROWS, pair = get_group_id(0) / n_across / n_down;
  long block = pair / N_EXPERTS, expert = pair % N_EXPERTS;
  FIND_ROWS(block, expert, n_rows)
  long start = block * n_rows + first_row;
  p.m = n_own;
  if (row >= n_own) p.k = 0;
  TILE_SUMS(sums)
  TILE_SUM(sums, p, row, column, LOAD_ROWS, LOAD_MATRIX, a_tile, b_tile)
  TILE_STORE(sums, p, row, column, SET_ROWS)
}

kernel void grouped_clear(OPERANDS) {
  long i = get_global_id(0), n_rows = XN(0) / XDIM(0, 3) / (XN(1) / N_EXPERTS);
  if (i >= YN(0)) return;
  FIND_EXPERT(i / YDIM(0, 3), n_rows)
  if (expert < 0) SET_Y0(i, 0);
}
#endif

#ifdef IS_grouped_wgrad
#define LOAD_DY(i, end) X0_WIDE(start * p.m + (i), start * p.m + (end))
#define LOAD_X(i, end) X1_WIDE(start * p.n + (i), start * p.n + (end))
#define AT_W(row, column) ((expert * p.m + (row)) * p.n + (column))
#define SET_W(row, column, sum) \
  SET_Y0(AT_W(row, column), A_accumulate ? Y0(AT_W(row, column)) + (sum) : (sum))
kernel void grouped_wgrad(OPERANDS) {
  TILE_ROOM
  long n_blocks = XN(2) / N_EXPERTS, n_rows = XN(0) / XDIM(0, 3) / n_blocks;
  product p = {XDIM(0, 3), XDIM(1, 3), 0, 1, XDIM(0, 3), 1, XDIM(1, 3)};
  long n_across = TILES(p.n, TILE_COLUMNS), n_down = TILES(p.m, TILE_ROWS);
  long column = get_group_id(0) % n_across * TILE_COLUMNS;
  long row = get_group_id(0) / n_across % n_down * TILE_ROWS;
  long expert = get_group_id(0) / n_across / n_down;
  TILE_SUMS(sums)
  for (long block = 0; block < n_blocks; block++) {
    FIND_ROWS(block, expert, n_rows)
    long start = block * n_rows + first_row;
    p.k = n_own;
    TILE_SUM(sums, p, row, column, LOAD_DY, LOAD_X, a_tile, b_tile)
  }
  TILE_STORE(sums, p, row, column, SET_W)
}
#endif

#ifdef IS_grouped_bias
kernel void grouped_bias(OPERANDS) {
  long i = get_global_id(0), width = XDIM(0, 3), n_rows = XN(0) / width / (XN(1) / N_EXPERTS);
  if (i >= YN(0)) return;
  FIND_EXPERT(i / width, n_rows)
  SET_Y0(i, X0(i) + (expert >= 0 ? (float)A_share * X2(expert * width + i % width) : 0));
}
#endif

#ifdef IS_grouped_bias_grad
kernel void grouped_bias_grad(OPERANDS) {
  long i = get_global_id(0), width = XDIM(0, 3), n_blocks = XN(1) / N_EXPERTS;
  long n_rows = XN(0) / width / n_blocks;
  float sum = 0;
  if (i >= YN(0)) return;
  for (long block = 0; block < n_blocks; block++) {
    FIND_ROWS(block, i / width, n_rows)
    for (long row = first_row; row < first_row + n_own; row++)
      sum += X0((block * n_rows + row) * width + i % width);
  }
  SET_Y0(i, (float)A_share * sum + (A_accumulate ? Y0(i) : 0));
}
#endif
