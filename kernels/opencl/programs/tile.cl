/* SPDX-License-Identifier: Apache-2.0 */
/* A product of matrices by tiles: a group of TILE_SIDE x TILE_SIDE items makes TILE x TILE numbers, 4 x 4 an
 * item. Sums over DEPTH of the summed dimension are added up, in ascending order: so fp32 loses little in a
 * long one. */
#define TILE (4 * TILE_SIDE)
#define DEPTH 16

typedef struct product {
  long m, n, k;           /* rows, columns, summed */
  long a_row, a_k, b_column, b_k; /* strides */
} product;

/* DEPTH x TILE numbers of a matrix into local memory, from `first` of n and from k0 on; one of the strides is
 * 1, and runs go along it. LOAD_RUN takes places from the first of the matrix. */
#define TILE_READ(tile, LOAD_RUN, first, n, stride, n_k, k_stride) \
  for (int run = RUN * (int)get_local_id(0); run < DEPTH * TILE; run += RUN * LOCAL) { \
    bool along_k = (k_stride) == 1; \
    int at_k = along_k ? run % DEPTH : run / TILE, at = along_k ? run / DEPTH : run % TILE; \
    long left = (n) - (first) - at, left_k = (n_k) - k0 - at_k; \
    long from = ((first) + at) * (stride) + (k0 + at_k) * (k_stride); \
    float4 x = (float4)0; \
    if (left > 0 && left_k > 0) x = LOAD_RUN(from, from + (along_k ? left_k : left)); \
    local float *to = (tile) + at_k * TILE + at; \
    if (along_k) to[0] = x.x, to[TILE] = x.y, to[2 * TILE] = x.z, to[3 * TILE] = x.w; \
    else vstore4(x, 0, to); \
  }

/* sums += the tile at (row, column). All items of the group come here. */
#define TILE_SUM(sums, p, row, column, LOAD_A_RUN, LOAD_B_RUN, a_tile, b_tile) \
  for (long k0 = 0; k0 < (p).k; k0 += DEPTH) { \
    barrier(CLK_LOCAL_MEM_FENCE); \
    TILE_READ(a_tile, LOAD_A_RUN, row, (p).m, (p).a_row, (p).k, (p).a_k) \
    TILE_READ(b_tile, LOAD_B_RUN, column, (p).n, (p).b_column, (p).k, (p).b_k) \
    barrier(CLK_LOCAL_MEM_FENCE); \
    float4 part[4] = {0, 0, 0, 0}; \
    for (int k = 0; k < DEPTH; k++) { \
      float4 a = vload4(get_local_id(0) / TILE_SIDE, a_tile + k * TILE); \
      float4 b = vload4(get_local_id(0) % TILE_SIDE, b_tile + k * TILE); \
      part[0] += a.x * b, part[1] += a.y * b, part[2] += a.z * b, part[3] += a.w * b; \
    } \
    for (int i = 0; i < 4; i++) sums[i] += part[i]; \
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
