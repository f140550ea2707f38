/* SPDX-License-Identifier: Apache-2.0 */
/* A product of matrices by tiles: a group of TILE_SIDE x TILE_SIDE items makes TILE x TILE numbers, 4 x 4 an
 * item, over DEPTH of the summed dimension at a time, in ascending order. */
#define TILE (4 * TILE_SIDE)
#define DEPTH 16

typedef struct product {
  long m, n, k;           /* rows, columns, summed */
  long a_row, a_k, b_column, b_k; /* strides */
} product;

/* sums += the tile at (row, column); LOAD_A and LOAD_B take an element's number, from the first of the
 * matrix. All items of the group come here. */
#define TILE_SUM(sums, p, row, column, LOAD_A, LOAD_B, a_tile, b_tile) \
  for (long k0 = 0; k0 < (p).k; k0 += DEPTH) { \
    barrier(CLK_LOCAL_MEM_FENCE); \
    for (int at = get_local_id(0); at < DEPTH * TILE; at += LOCAL) { \
      int k_a = (p).a_k == 1 ? at % DEPTH : at / TILE, i = (p).a_k == 1 ? at / DEPTH : at % TILE; \
      int k_b = (p).b_k == 1 ? at % DEPTH : at / TILE, j = (p).b_k == 1 ? at / DEPTH : at % TILE; \
      bool in_a = (row) + i < (p).m && k0 + k_a < (p).k, in_b = (column) + j < (p).n && k0 + k_b < (p).k; \
      a_tile[k_a * TILE + i] = in_a ? LOAD_A(((row) + i) * (p).a_row + (k0 + k_a) * (p).a_k) : 0; \
      b_tile[k_b * TILE + j] = in_b ? LOAD_B(((column) + j) * (p).b_column + (k0 + k_b) * (p).b_k) : 0; \
    } \
    barrier(CLK_LOCAL_MEM_FENCE); \
    for (int k = 0; k < DEPTH; k++) { \
      float4 a = vload4(get_local_id(0) / TILE_SIDE, a_tile + k * TILE); \
      float4 b = vload4(get_local_id(0) % TILE_SIDE, b_tile + k * TILE); \
      sums[0] += a.x * b, sums[1] += a.y * b, sums[2] += a.z * b, sums[3] += a.w * b; \
    } \
  }

/* Each number of the item's part of the tile that is in the matrix: SET(row, column, sum). */
#define TILE_STORE(sums, p, row, column, SET) \
  for (int i = 0; i < 4; i++) { \
    long at_row = (row) + 4 * (long)(get_local_id(0) / TILE_SIDE) + i; \
    float part[4]; \
    vstore4(sums[i], 0, part); \
    for (int j = 0; j < 4; j++) { \
      long at_column = (column) + 4 * (long)(get_local_id(0) % TILE_SIDE) + j; \
      if (at_row < (p).m && at_column < (p).n) SET(at_row, at_column, part[j]); \
    } \
  }
