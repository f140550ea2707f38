/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of attention.c: rows of any type as rows of fp32, and tiles of them transposed; and its products,
 * without what the mask of a tile leaves out. */
#ifndef CPU_ATTENTION32_H
#define CPU_ATTENTION32_H

#include "kernels/cpu/attention_square.h"
#include "kernels/cpu/tile.h"
#ifdef __AVX512F__
#include "kernels/cpu/transpose16.h"
#endif

/* Rows of an operand: d elements, kept as `width` with zeros behind d. */
typedef struct row_form {
  const void *data;
  nx_dtype type;
  int64_t d, width;
} row_form;

/* Rows `stride` apart as fp32, side by side: in place where they are stored so. */
static inline const float *rows_read(row_form x, int64_t start, int64_t stride, int64_t n_rows, float *room) {
  if (x.type == NX_f32 && x.width == x.d && stride == x.d) return (const float *)x.data + start;
  for (int64_t i = 0; i < n_rows; i++) {
    vec_copy(room, NX_f32, i * x.width, x.data, x.type, start + i * stride, x.d);
    for (int64_t j = x.d; j < x.width; j++) room[i * x.width + j] = 0;
  }
  return room;
}

/* At most SIDE rows transposed to [width, SIDE]; zeros stand behind the last. */
static inline void rows_across(const float *rows, int64_t n, int64_t width, float *across) {
  int64_t turned = 0;
  if (n < SIDE) memset(across, 0, (size_t)(width * SIDE) * sizeof *across);
#ifdef __AVX512F__
  for (; turned + 16 <= n; turned += 16)
    for (int64_t j = 0; j < width; j += 16)
      tile16_transpose((const uint32_t *)(const void *)(rows + turned * width + j), width,
                       (uint32_t *)(void *)(across + j * SIDE + turned), SIDE);
#endif
  for (int64_t j = 0; j < width; j++) {
#pragma omp simd
    for (int64_t i = turned; i < n; i++) across[j * SIDE + i] = rows[i * width + j];
  }
}

static inline void rows_scale(float *o, const float *factors, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) {
    if (factors[i] == 1) continue;
#pragma omp simd
    for (int64_t j = 0; j < width; j++) o[i * width + j] *= factors[i];
  }
}

/* ---- products of a tile; places ascend, so that what is read stands together ---- */

/* Keys of a tile up to the last that one of n queries from `query` on reads. */
static inline int64_t keys_read(const attention_mask *mask, int64_t n_keys, int64_t query, int64_t n) {
  int64_t end = query + n < mask->n_queries ? query + n : mask->n_queries;
  if (end <= query) return 0;
  while (n_keys > 0 && mask->place[n_keys - 1] > mask->query[end - 1]) n_keys--;
  return n_keys;
}

enum { PART = 16 };

/* Scores [keys, queries]; 0 where no query of a few reads a key. */
static inline void scores_multiply(const attention_mask *mask, tile_product p) {
  enum { WIDE = TILE_VECTORS * TILE_LANES };
  if (mask->whole) {
    tile_multiply(p);
    return;
  }
  for (int64_t query = 0; query < SIDE; query += WIDE) {
    tile_product part = p;
    int64_t n = (keys_read(mask, p.m, query, WIDE) + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    part.n = WIDE, part.m = n < p.m ? n : p.m, part.b += query, part.c += query;
    tile_multiply(part);
    for (int64_t key = part.m; key < p.m; key++) memset(part.c + key * p.c_row, 0, WIDE * sizeof *p.c);
  }
}

/* Rows are of queries, sums over the keys that one of a few reads. */
static inline void queries_multiply(const attention_mask *mask, tile_product p) {
  for (int64_t query = 0, n = mask->whole ? p.m : PART; query < p.m; query += n) {
    tile_product part = p;
    part.m = p.m - query < n ? p.m - query : n;
    part.k = mask->whole ? p.k : keys_read(mask, p.k, query, part.m);
    part.a += query * p.a_row, part.c += query * p.c_row;
    if (part.k > 0 || !p.accumulate) tile_multiply(part);
  }
}

/* Rows are of keys, sums over the queries that read one of a few. */
static inline void keys_multiply(const attention_mask *mask, tile_product p) {
  for (int64_t key = 0, n = mask->whole ? p.m : PART, first = 0; key < p.m; key += n) {
    tile_product part = p;
    while (first < p.k && mask->query[first] < mask->place[key]) first++;
    part.m = p.m - key < n ? p.m - key : n;
    part.k = p.k - first;
    part.a += key * p.a_row + first * p.a_k, part.b += first * p.b_row, part.c += key * p.c_row;
    if (part.k > 0 || !p.accumulate) tile_multiply(part);
  }
}

#endif
