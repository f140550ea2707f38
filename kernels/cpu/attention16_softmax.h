/* SPDX-License-Identifier: Apache-2.0 */
/* The softmax of attention16.c on a strip of scores, [STRIP queries, keys], a query in a row: weights rounded
 * to bf16 as rows that the product with the values reads.
 *
 * A weight is 2 to the power of what a score stands above the base of its query. The base is a score that was
 * the largest once: it follows only where one stands more than SLACK powers of two above it, so that what is
 * summed is seldom scaled. Bits of a query's results hang on its own scores alone. */
#ifndef CPU_ATTENTION16_SOFTMAX_H
#define CPU_ATTENTION16_SOFTMAX_H

#include "kernels/cpu/attention16_weights.h"

enum { STRIP = 32, SLACK = 8 };

/* Of the queries of a strip. Scores of blocks that are not read are no bases. */
typedef struct softmax_run {
  float base[STRIP] __attribute__((aligned(64)));    /* -infinity: none yet */
  float base2[STRIP] __attribute__((aligned(64)));   /* as a power of two; 0: none */
  float limit[STRIP] __attribute__((aligned(64)));   /* a score above it raises the base */
  float sum[STRIP][16] __attribute__((aligned(64))); /* of the weights, in 16 parts */
} softmax_run;

/* What a strip reads of a tile of keys. */
typedef struct softmax_part {
  const attention_mask *mask;
  int first;   /* the strip's first query */
  bool whole;  /* every query reads every key */
  bool narrow; /* none reads the second half of the keys */
} softmax_part;

static inline void softmax_begin(softmax_run *run) {
  for (int i = 0; i < STRIP; i++) run->base[i] = -INFINITY, run->base2[i] = 0, run->limit[i] = -1e29F;
  memset(run->sum, 0, sizeof run->sum);
}

static inline softmax_part softmax_part_of(const attention_mask *mask, int first) {
  int64_t last = first + STRIP < mask->n_queries ? first + STRIP - 1 : mask->n_queries - 1;
  int32_t middle = mask->place[SIDE / 2];
  return (softmax_part){mask, first, weights_whole(mask), middle == INT32_MIN || middle > mask->query[last]};
}

/* Which of the 16 keys from `key` on a query reads. */
static inline __mmask16 softmax_read(const softmax_part *part, int query, int key) {
  const attention_mask *mask = part->mask;
  __m512i low = _mm512_set1_epi32(mask->low[part->first + query]);
  return _mm512_cmple_epu32_mask(_mm512_sub_epi32(_mm512_load_si512(mask->place + key), low),
                                 _mm512_set1_epi32((int)mask->reach[part->first + query]));
}

/* The largest of a row of scores, in 16 parts; NaN counts as none. */
INLINED __m512 softmax_row_max(const float *row, const softmax_part *part, int query, const bool whole,
                               const int n_keys) {
  const __m512 none = _mm512_set1_ps(-INFINITY);
  __m512 max[2] = {none, none};
#pragma GCC unroll 4
  for (int key = 0; key < n_keys; key += 16) {
    __mmask16 read = whole ? 0xFFFF : softmax_read(part, query, key);
    __m512 *most = &max[key / 16 % 2];
    *most = _mm512_mask_max_ps(*most, read, _mm512_load_ps(row + key), *most);
  }
  return _mm512_max_ps(max[0], max[1]);
}

/* Whether a score stands above its query's limit. */
INLINED bool softmax_above_as(const float *score, const softmax_part *part, const softmax_run *run,
                              const bool whole, const int n_keys) {
  __m512 above[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (int i = 0; i < STRIP; i += 2)
#pragma GCC unroll 2
    for (int k = 0; k < 2; k++) {
      __m512 max = softmax_row_max(score + (i + k) * SIDE, part, i + k, whole, n_keys);
      above[k] = _mm512_max_ps(_mm512_sub_ps(max, _mm512_set1_ps(run->limit[i + k])), above[k]);
    }
  return _mm512_cmp_ps_mask(_mm512_max_ps(above[0], above[1]), _mm512_setzero_ps(), _CMP_GT_OQ) != 0;
}

/* Raises the bases of those; `old` becomes the factor of everything before. */
static inline void softmax_raise(const float *score, const softmax_part *part, float scale2, softmax_run *run,
                                 float *old) {
  float max[STRIP] __attribute__((aligned(64)));
  const __m512 none = _mm512_set1_ps(-INFINITY), factor = _mm512_set1_ps(scale2);
  for (int i = 0; i < STRIP; i++)
    max[i] = _mm512_reduce_max_ps(softmax_row_max(score + i * SIDE, part, i, false, SIDE));
  for (int i = 0; i < STRIP; i += 16) {
    __m512 most = _mm512_load_ps(max + i), base = _mm512_load_ps(run->base + i);
    __mmask16 raised = _mm512_cmp_ps_mask(most, _mm512_load_ps(run->limit + i), _CMP_GT_OQ);
    __mmask16 met = raised & _mm512_cmp_ps_mask(base, none, _CMP_GT_OQ);
    __m512 fall = _mm512_mul_ps(_mm512_sub_ps(base, most), factor);
    _mm512_storeu_ps(old + i, _mm512_mask_mov_ps(_mm512_set1_ps(1), met, weights_exp2(fall)));
    _mm512_mask_store_ps(run->base + i, raised, most);
    _mm512_mask_store_ps(run->base2 + i, raised, _mm512_mul_ps(most, factor));
    _mm512_mask_store_ps(run->limit + i, raised, _mm512_add_ps(most, _mm512_set1_ps(SLACK / scale2)));
  }
  for (int i = 0; i < STRIP; i++)
    _mm512_store_ps(run->sum[i], _mm512_mul_ps(_mm512_load_ps(run->sum[i]), _mm512_set1_ps(old[i])));
}

/* Whether bases were raised. */
static inline bool softmax_base(const float *score, const softmax_part *part, float scale2, softmax_run *run,
                                float *old) {
  bool above = part->whole    ? softmax_above_as(score, part, run, true, SIDE)
               : part->narrow ? softmax_above_as(score, part, run, false, SIDE / 2)
                              : softmax_above_as(score, part, run, false, SIDE);
  if (above) softmax_raise(score, part, scale2, run, old);
  return above;
}

/* Weights of a strip as rows of queries, a key and the sixteenth behind it in a word (rows_paired); sums grow
 * by those that are not dropped, too. */
INLINED void softmax_weights_as(const float *score, const softmax_part *part, float scale2,
                                const uint32_t *words, uint32_t threshold, const bool whole, const bool drops,
                                const int n_keys, softmax_run *run, uint32_t *rows) {
  const __m512 factor = _mm512_set1_ps(scale2);
  for (int i = 0; i < STRIP; i++) {
    __m512 base2 = _mm512_set1_ps(run->base2[i]), sum[2] = {_mm512_load_ps(run->sum[i]), _mm512_setzero_ps()};
#pragma GCC unroll 2
    for (int key = 0; key < n_keys; key += 32) {
      __m512i kept[2];
#pragma GCC unroll 2
      for (int k = 0; k < 2; k++) {
        int at = i * SIDE + key + 16 * k;
        __m512 weight = weights_exp2(_mm512_fmsub_ps(_mm512_load_ps(score + at), factor, base2));
        if (!whole) weight = _mm512_maskz_mov_ps(softmax_read(part, i, key + 16 * k), weight);
        sum[k] = _mm512_add_ps(sum[k], weight);
        if (drops) {
          __m512i drawn = _mm512_load_si512(words + at), least = _mm512_set1_epi32((int)threshold);
          weight = _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(drawn, least), weight);
        }
        kept[k] = weights_rounded(weight);
      }
      _mm512_store_si512(rows + i * PAIRS + key / 2, weights_pair(kept[0], kept[1]));
    }
    if (n_keys < SIDE) _mm512_store_si512(rows + i * PAIRS + PAIRS / 2, _mm512_setzero_si512());
    _mm512_store_ps(run->sum[i], _mm512_add_ps(sum[0], sum[1]));
  }
}

/* `words` are those of the strip's first query. */
static inline void softmax_weights(const attention_shape *s, const float *score, const softmax_part *part,
                                   const uint32_t *words, softmax_run *run, uint32_t *rows) {
  float scale2 = s->scale * log2_e;
  uint32_t least = s->threshold;
  if (least) softmax_weights_as(score, part, scale2, words, least, false, true, SIDE, run, rows);
  else if (part->whole) softmax_weights_as(score, part, scale2, words, 0, true, false, SIDE, run, rows);
  else if (part->narrow) softmax_weights_as(score, part, scale2, words, 0, false, false, SIDE / 2, run, rows);
  else softmax_weights_as(score, part, scale2, words, 0, false, false, SIDE, run, rows);
}

/* Sums of the 16 parts of each query's. */
static inline void softmax_sums(const softmax_run *run, float *sums) {
  for (int i = 0; i < STRIP; i += 16)
    _mm512_storeu_ps(sums + i, vectors_sums((const __m512 *)(const void *)run->sum[i]));
}

#endif
