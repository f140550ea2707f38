/* SPDX-License-Identifier: Apache-2.0 */
/* A product of matrices by tiles: a group of TILE_SIDE x TILE_SIDE items makes TILE_ROWS x TILE_COLUMNS
 * numbers, an item ITEM_ROWS x WIDTH. Sums over DEPTH of the summed dimension are added up, in ascending
 * order: so fp32 loses little in a long one. */
#include "kernels/opencl/programs/wide.cl"
#define TILE_ROWS (ITEM_ROWS * TILE_SIDE)
#define TILE_COLUMNS (WIDTH * TILE_SIDE)
#define DEPTH 16

typedef struct product {
  long m, n, k;           /* rows, columns, summed */
  long a_row, a_k, b_column, b_k; /* strides */
} product;

/* What a group sums up, and in which local memory. */
#define TILE_ROOM local float a_tile[DEPTH * TILE_ROWS], b_tile[DEPTH * TILE_COLUMNS];
#define TILE_SUMS(sums) \
  wide sums[ITEM_ROWS]; \
  for (int i = 0; i < ITEM_ROWS; i++) sums[i] = 0;
#define TILES(n, tile) (((n) + (tile) - 1) / (tile))
/* The item's place in the tile. */
#define ITEM_ROW (ITEM_ROWS * (int)(get_local_id(0) / TILE_SIDE))
#define ITEM_COLUMN (WIDTH * (int)(get_local_id(0) % TILE_SIDE))

/* DEPTH x TILE numbers of a matrix into local memory, from `first` of n and from k0 on; one of the strides is
 * 1, and vectors go along it. LOAD takes places from the first of the matrix. */
#define TILE_READ(tile, TILE, LOAD, first, n, stride, n_k, k_stride) \
  for (int run = WIDTH * (int)get_local_id(0); run < DEPTH * TILE; run += WIDTH * LOCAL) { \
    bool along_k = (k_stride) == 1; \
    int at_k = along_k ? run % DEPTH : run / TILE, at = along_k ? run / DEPTH : run % TILE; \
    long left = (n) - (first) - at, left_k = (n_k) - k0 - at_k; \
    long from = ((first) + at) * (stride) + (k0 + at_k) * (k_stride); \
    wide x = (wide)0; \
    if (left > 0 && left_k > 0) x = LOAD(from, from + (along_k ? left_k : left)); \
    local float *to = (tile) + at_k * TILE + at; \
    float part[WIDTH]; \
    STORE_WIDE(x, part); \
    if (along_k) for (int k = 0; k < WIDTH; k++) to[k * TILE] = part[k]; \
    else STORE_WIDE(x, to); \
  }

/* sums += the tile at (row, column). All items of the group come here; those beyond the matrix only read. */
#define TILE_SUM(sums, p, row, column, LOAD_A, LOAD_B, a_tile, b_tile) \
  for (long k0 = 0; k0 < (p).k; k0 += DEPTH) { \
    barrier(CLK_LOCAL_MEM_FENCE); \
    TILE_READ(a_tile, TILE_ROWS, LOAD_A, row, (p).m, (p).a_row, (p).k, (p).a_k) \
    TILE_READ(b_tile, TILE_COLUMNS, LOAD_B, column, (p).n, (p).b_column, (p).k, (p).b_k) \
    barrier(CLK_LOCAL_MEM_FENCE); \
    if ((row) + ITEM_ROW < (p).m && (column) + ITEM_COLUMN < (p).n) \
      tile_step(sums, a_tile + ITEM_ROW, b_tile + ITEM_COLUMN); \
  }

static void tile_step(wide *sums, local const float *a_tile, local const float *b_tile) {
  wide part[ITEM_ROWS];
  for (int i = 0; i < ITEM_ROWS; i++) part[i] = 0;
  for (int k = 0; k < DEPTH; k++) {
    float a[ITEM_ROWS];
    wide b = LOAD_WIDE(b_tile + k * TILE_COLUMNS);
    JOIN(vstore, ITEM_ROWS)(JOIN(vload, ITEM_ROWS)(0, a_tile + k * TILE_ROWS), 0, a);
    for (int i = 0; i < ITEM_ROWS; i++) part[i] += a[i] * b;
  }
  for (int i = 0; i < ITEM_ROWS; i++) sums[i] += part[i];
}

/* Each number of the item's part of the tile that is in the matrix: SET(row, column, sum). */
#define TILE_STORE(sums, p, row, column, SET) \
  for (int i = 0; i < ITEM_ROWS; i++) { \
    long at_row = (row) + ITEM_ROW + i; \
    float part[WIDTH]; \
    STORE_WIDE(sums[i], part); \
    for (int j = 0; j < WIDTH; j++) { \
      long at_column = (column) + ITEM_COLUMN + j; \
      if (at_row < (p).m && at_column < (p).n) SET(at_row, at_column, part[j]); \
    } \
  }
