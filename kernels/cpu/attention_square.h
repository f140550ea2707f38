/* SPDX-License-Identifier: Apache-2.0 */
/* What both forms of causal attention do with a tile of scores, [keys, queries], before its softmax. */
#ifndef CPU_ATTENTION_SQUARE_H
#define CPU_ATTENTION_SQUARE_H

#include "kernels/alibi.h"
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/lanes.h"
#include "kernels/relative.h"

/* What the scores of a head go through before the softmax: cap and slope are 0, bias is NULL where they
 * stay. */
typedef struct attention_bend {
  float cap, slope;  /* over the scale; slope: what ALiBi takes for each place */
  const float *bias; /* over the scale: by distance, the last for all that are farther */
  int32_t last;
} attention_bend;

/* `room` has attention_distances. */
static inline attention_bend attention_bend_of(const attention_shape *s, int64_t head, float *room) {
  attention_bend bend = {.cap = s->soft_cap / s->scale};
  int64_t number = (int64_t)s->head_start + head;
  if (s->alibi_heads) bend.slope = (float)nxk_alibi_slope(s->alibi_heads, number) / s->scale;
  if (s->n_buckets == 0) return bend;
  bend.bias = room;
  bend.last = (int32_t)s->max_distance;
  for (int64_t i = 0; i <= s->max_distance; i++) {
    int64_t bucket = nxk_relative_bucket(i, s->n_buckets, s->max_distance);
    vec_copy(room, NX_f32, i, s->table_data, s->table.dtype, bucket * s->table_heads + number, 1);
    room[i] *= s->table_factor / s->scale;
  }
  return bend;
}

/* Between a key and a query; the nearest that has a bias. */
static inline int32_t attention_distance(int32_t key, int32_t query, int32_t last) {
  int32_t distance = (int32_t)((uint32_t)query - (uint32_t)key);
  return distance < 0 ? 0 : distance > last ? last : distance;
}

/* A row of scores: of one key, `place`, with n queries of a tile. */
static inline void attention_bend_row(const attention_bend *bend, float *score, int32_t place,
                                      const int32_t *queries, int64_t n) {
  float slope = bend->slope, at = (float)place;
  if (bend->cap > 0) lanes_cap(score, n, bend->cap);
  if (slope != 0) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) score[i] += slope * (at - (float)queries[i]);
  }
  for (int64_t i = 0; bend->bias && i < n; i++)
    score[i] += bend->bias[attention_distance(place, queries[i], bend->last)];
}

/* Adds the slopes of a tile's row, by the distance of its scores. */
static inline void attention_bias_sums(const attention_bend *bend, const float *slope, int32_t place,
                                       const attention_mask *mask, double *sums) {
  for (int64_t i = 0; i < mask->n_queries; i++)
    sums[attention_distance(place, mask->query[i], bend->last)] += (double)slope[i];
}

/* What such sums of a head are of the table's gradient, added to [n_buckets, table_heads]. */
static inline void attention_table_sums(const attention_shape *s, int64_t head, const double *sums,
                                        double *table) {
  double factor = (double)(s->table_factor / s->scale);
  for (int64_t i = 0; i <= s->max_distance; i++) {
    int64_t bucket = nxk_relative_bucket(i, s->n_buckets, s->max_distance);
    table[bucket * s->table_heads + (int64_t)s->head_start + head] += factor * sums[i];
  }
}

/* Scores that are too low for any weight where a block is not read; each query reads a key of its own block,
 * so that no query is left with these alone. */
static inline void attention_block_row(const attention_shape *s, int64_t head, float *score, int32_t place,
                                       const int32_t *queries, int64_t n) {
  int64_t column = attention_block(s, place), last = -1;
  bool read = false;
  for (int64_t i = 0; i < n; i++) {
    int64_t row = attention_block(s, queries[i]);
    if (row != last) read = nxk_blocks_read(&s->blocks, (int64_t)s->head_start + head, row, column);
    last = row;
    if (!read) score[i] = -1e30F;
  }
}

_Static_assert((int)PHILOX_BLOCK == (int)SIDE, "a block of counters is a row of queries");

/* The words of a tile's mask, [keys, queries]: four keys at a time where their words stand together. */
static inline void draw_square(const attention_shape *s, int64_t batch, int64_t head,
                               const attention_mask *mask, uint32_t *words) {
  uint64_t sample = (uint64_t)s->samples[batch];
  uint32_t high = (s->head_start + (uint32_t)head) ^ (uint32_t)(sample >> 32) << 16;
  uint32_t k0 = (uint32_t)s->seed ^ (s->tensor_id * UINT32_C(0x9E3779B1));
  uint32_t k1 = (uint32_t)(s->seed >> 32) ^ s->tensor_id;
  vec_counters v;
  for (int64_t key = 0; key < SIDE; key += mask->in_fours ? 4 : 1) {
    uint32_t place = (uint32_t)mask->place[key];
#pragma omp simd
    for (int i = 0; i < SIDE; i++) {
      v.c[0][i] = place / 4;
      v.c[1][i] = (uint32_t)mask->low[i] + mask->reach[i];
      v.c[2][i] = (uint32_t)sample;
      v.c[3][i] = high;
    }
    vec_philox_rounds(&v, k0, k1);
    if (mask->in_fours) memcpy(words + key * SIDE, v.c, sizeof v.c);
    else memcpy(words + key * SIDE, v.c[place & 3], sizeof v.c[0]);
  }
}

/* The keys and queries of a tile that scores are of: [n_keys, n_queries]. */
typedef struct square_part {
  int64_t key, n_keys, query, n_queries;
} square_part;

static inline bool square_bends(const attention_bend *bend, attention_read read) {
  return bend->cap > 0 || bend->slope != 0 || bend->bias || read == READ_SOME;
}

static inline void square_bend(const attention_shape *s, const attention_bend *bend,
                               const attention_mask *mask, int64_t head, attention_read read,
                               square_part part, float *score) {
  const int32_t *queries = mask->query + part.query;
  if (!square_bends(bend, read)) return;
  for (int64_t i = 0; i < part.n_keys; i++) {
    float *row = score + i * part.n_queries;
    int32_t place = mask->place[part.key + i];
    attention_bend_row(bend, row, place, queries, part.n_queries);
    if (read == READ_SOME) attention_block_row(s, head, row, place, queries, part.n_queries);
  }
}

static const float log2_e = 1.44269504F;

/* What the queries of a tile bring to the backward pass: lse over ln 2, infinite behind the last query, so
 * that weights there are 0, and the sum of dout x o. */
typedef struct square_queries {
  float lse2[SIDE] __attribute__((aligned(64))), product[SIDE] __attribute__((aligned(64)));
} square_queries;

#endif
