/* SPDX-License-Identifier: Apache-2.0 */
/* The vector work of attention16.c on a tile of scores, [keys, queries]: what the softmax and its gradient
 * make of them, rounded to bf16 in the layouts that the products read.
 *
 * A weight is 2 to the power of what a score stands above the base of its query. The base is a score that was
 * the largest once: it follows only where one stands more than SLACK powers of two above it, so that what is
 * summed is seldom scaled. Bits of a query's results hang on its own scores alone. */
#ifndef CPU_ATTENTION16_WEIGHTS_H
#define CPU_ATTENTION16_WEIGHTS_H

#include "kernels/cpu/attention16.h"

enum { COLUMNS = SIDE / 16, SLACK = 8 };

/* 2^x for finite x < 127, within 3e-6 of it, a thousandth of what rounding to bf16 does, and less than 2^-125
 * below -126: a polynomial of degree 4 for 2^r on |r| <= 1/2; 1 of 0, NaN of NaN. Beside tiles a core shifts,
 * and multiplies vectors, half as fast as it adds and permutes them: there it scales by one instruction. */
static inline __m512 weights_exp2(__m512 x) {
  const __m512 whole = _mm512_set1_ps(vec_whole);
#ifndef CPU_AMX
  x = _mm512_max_ps(_mm512_set1_ps(-126), x);
#endif
  __m512 shifted = _mm512_add_ps(x, whole), n = _mm512_sub_ps(shifted, whole), r = _mm512_sub_ps(x, n);
  __m512 p = _mm512_set1_ps(9.58284456e-3F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.59064373e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.40240991e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.93124175e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
#ifdef CPU_AMX
  return _mm512_scalef_ps(p, n);
#else
  return (__m512)_mm512_add_epi32((__m512i)p, _mm512_slli_epi32((__m512i)shifted, 23));
#endif
}

/* Which of the 16 queries from i on read a key. */
static inline __mmask16 weights_read(const attention_mask *mask, int i, int key) {
  __m512i behind = _mm512_sub_epi32(_mm512_set1_epi32(mask->place[key]), _mm512_load_si512(mask->low + i));
  return _mm512_cmple_epu32_mask(behind, _mm512_load_si512(mask->reach + i));
}

/* What stands in the upper halves is x rounded, halves up. */
static inline __m512i weights_rounded(__m512 x) {
  return _mm512_add_epi32((__m512i)x, _mm512_set1_epi32(0x8000));
}

/* Upper halves as words, the first in the low half. */
static inline __m512i weights_pair(__m512i low, __m512i high) {
  const __m512i upper =
      _mm512_broadcast_i32x4(_mm_setr_epi8(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15));
  return _mm512_mask_shuffle_epi8(high, UINT64_C(0x3333333333333333), low, upper);
}

/* ---- forward ---- */

/* The queries' largest scores of a tile; NaN counts as none. */
static inline __attribute__((always_inline)) void weights_max(const float *score, const attention_mask *mask,
                                                              const bool whole, __m512 max[COLUMNS]) {
  __m512 other[COLUMNS];
#pragma GCC unroll 4
  for (int c = 0; c < COLUMNS; c++) max[c] = other[c] = _mm512_set1_ps(-INFINITY);
  for (int key = 0; key < SIDE; key += 2)
#pragma GCC unroll 4
    for (int c = 0; c < COLUMNS; c++) {
      const float *at = score + key * SIDE + 16 * c;
      __mmask16 one = whole ? 0xFFFF : weights_read(mask, 16 * c, key),
                two = whole ? 0xFFFF : weights_read(mask, 16 * c, key + 1);
      max[c] = _mm512_mask_max_ps(max[c], one, _mm512_load_ps(at), max[c]);
      other[c] = _mm512_mask_max_ps(other[c], two, _mm512_load_ps(at + SIDE), other[c]);
    }
#pragma GCC unroll 4
  for (int c = 0; c < COLUMNS; c++) max[c] = _mm512_max_ps(other[c], max[c]);
}

/* Raises bases that a tile's largest scores stand too far above; scores of blocks that are not read are no
 * bases. Returns whether any was raised; `old` becomes the factor of everything before. */
static inline bool weights_raise(const __m512 max[COLUMNS], float scale2, square_run *run, float *old) {
  const __m512 none = _mm512_set1_ps(-INFINITY), least = _mm512_set1_ps(-1e29F),
               factor = _mm512_set1_ps(scale2);
  __mmask16 raised[COLUMNS], any = 0;
#pragma GCC unroll 4
  for (int c = 0; c < COLUMNS; c++) {
    __m512 base = _mm512_load_ps(run->max + 16 * c),
           above = _mm512_mul_ps(_mm512_sub_ps(max[c], base), factor);
    raised[c] = _mm512_cmp_ps_mask(above, _mm512_set1_ps(SLACK), _CMP_GT_OQ);
    raised[c] |= _mm512_cmp_ps_mask(base, none, _CMP_EQ_OQ);
    raised[c] &= _mm512_cmp_ps_mask(max[c], least, _CMP_GT_OQ);
    any |= raised[c];
  }
  if (!any) return false;
#pragma GCC unroll 4
  for (int c = 0; c < COLUMNS; c++) {
    __m512 base = _mm512_load_ps(run->max + 16 * c);
    __m512 x = _mm512_mul_ps(_mm512_sub_ps(base, max[c]), factor);
    __mmask16 met = raised[c] & _mm512_cmp_ps_mask(base, none, _CMP_GT_OQ);
    __m512 scale = _mm512_mask_mov_ps(_mm512_set1_ps(1), met, weights_exp2(x));
    _mm512_storeu_ps(old + 16 * c, scale);
    _mm512_store_ps(run->sum + 16 * c, _mm512_mul_ps(_mm512_load_ps(run->sum + 16 * c), scale));
    _mm512_store_ps(run->max + 16 * c, _mm512_mask_mov_ps(base, raised[c], max[c]));
  }
  return true;
}

/* Weights of a tile in pairs of keys; each query's sum grows by its own, undropped. */
static inline __attribute__((always_inline)) void
weights_pairs_as(const float *score, float scale2, const attention_mask *mask, const uint32_t *words,
                 uint32_t threshold, const bool whole, const bool drops, square_run *run, uint32_t *pairs) {
  const __m512 factor = _mm512_set1_ps(scale2);
  for (int i = 0; i < SIDE; i += 32) {
    __m512 base[2], sum[2]; /* bases as powers of two */
#pragma GCC unroll 2
    for (int c = 0; c < 2; c++) {
      __m512 at = _mm512_load_ps(run->max + i + 16 * c);
      base[c] = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(at, _mm512_set1_ps(-INFINITY), _CMP_NEQ_UQ),
                                    _mm512_mul_ps(at, factor));
      sum[c] = _mm512_load_ps(run->sum + i + 16 * c);
    }
    for (int key = 0; key < SIDE; key += 2)
#pragma GCC unroll 2
      for (int c = 0; c < 2; c++) {
        __m512i kept[2];
        int from = i + 16 * c;
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
          int64_t at = (key + k) * SIDE + from;
          __m512 x = _mm512_fmsub_ps(_mm512_load_ps(score + at), factor, base[c]);
          __m512 weight = weights_exp2(x);
          if (!whole) weight = _mm512_maskz_mov_ps(weights_read(mask, from, key + k), weight);
          sum[c] = _mm512_add_ps(sum[c], weight);
          if (drops) {
            __m512i drawn = _mm512_load_si512(words + at), least = _mm512_set1_epi32((int)threshold);
            weight = _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(drawn, least), weight);
          }
          kept[k] = weights_rounded(weight);
        }
        _mm512_store_si512(pairs + key / 2 * SIDE + from, weights_pair(kept[0], kept[1]));
      }
#pragma GCC unroll 2
    for (int c = 0; c < 2; c++) _mm512_store_ps(run->sum + i + 16 * c, sum[c]);
  }
}

static inline bool weights_whole(const attention_mask *mask) {
  return mask->whole && mask->n_queries == SIDE;
}

/* Whether bases were raised: `old` is the factor of everything before then. */
static inline bool weights_base(const attention_shape *s, const float *score, const attention_mask *mask,
                                square_run *run, float *old) {
  __m512 max[COLUMNS];
  if (weights_whole(mask)) weights_max(score, mask, true, max);
  else weights_max(score, mask, false, max);
  return weights_raise(max, s->scale * log2_e, run, old);
}

static inline void weights_pairs(const attention_shape *s, const float *score, const attention_mask *mask,
                                 const uint32_t *words, square_run *run, uint32_t *pairs) {
  float scale2 = s->scale * log2_e;
  uint32_t threshold = s->threshold;
  if (threshold) weights_pairs_as(score, scale2, mask, words, threshold, false, true, run, pairs);
  else if (weights_whole(mask)) weights_pairs_as(score, scale2, mask, words, 0, true, false, run, pairs);
  else weights_pairs_as(score, scale2, mask, words, 0, false, false, run, pairs);
}

/* ---- backward ---- */

/* What becomes of a vector of scores and of the gradients of their weights. */
typedef struct weights_slope {
  __m512 weight, slope;
} weights_slope;

typedef struct weights_form {
  float scale2, kept, inverse; /* inverse: of a cap; 0: none */
  uint32_t threshold;
} weights_form;

/* 16 queries, from i on, of a key; `at` is where they stand in the tile. The scale is left to what slopes are
 * multiplied to. */
static inline __attribute__((always_inline)) weights_slope
weights_slope_of(const weights_form *f, const float *score, const float *slope, const uint32_t *words,
                 const square_queries *q, const attention_mask *mask, const bool whole, const bool bent,
                 int i, int key) {
  int at = key * SIDE + i;
  __m512 scores = _mm512_load_ps(score + at), gradient = _mm512_load_ps(slope + at);
  __m512 x = _mm512_fmsub_ps(scores, _mm512_set1_ps(f->scale2), _mm512_load_ps(q->lse2 + i));
  __m512 weight = weights_exp2(x), kept = weight;
  if (!whole) weight = kept = _mm512_maskz_mov_ps(weights_read(mask, i, key), weight);
  if (bent) {
    __mmask16 stays = f->threshold == 0 ? 0xFFFF
                                        : _mm512_cmpge_epu32_mask(_mm512_load_si512(words + at),
                                                                  _mm512_set1_epi32((int)f->threshold));
    __m512 keep = _mm512_maskz_mov_ps(stays, _mm512_set1_ps(f->kept));
    __m512 capped = _mm512_mul_ps(scores, _mm512_set1_ps(f->inverse));
    kept = _mm512_mul_ps(weight, keep);
    gradient = _mm512_mul_ps(gradient, keep);
    weight = _mm512_mul_ps(weight, _mm512_fnmadd_ps(capped, capped, _mm512_set1_ps(1)));
  }
  gradient = _mm512_sub_ps(gradient, _mm512_load_ps(q->product + i));
  return (weights_slope){kept, _mm512_mul_ps(weight, gradient)};
}

/* Weights and slopes of a tile as rows of keys, a query and the sixteenth behind it in a word (rows_paired),
 * and slopes in pairs of keys too. */
static inline __attribute__((always_inline)) void
weights_slopes_as(const weights_form *f, const float *score, const float *slope, const uint32_t *words,
                  const square_queries *q, const attention_mask *mask, const bool whole, const bool bent,
                  uint32_t *weight_rows, uint32_t *slope_rows, uint32_t *pairs) {
  for (int i = 0; i < SIDE; i += 32)
    for (int key = 0; key < SIDE; key += 2) {
      __m512i slopes[2][2];
#pragma GCC unroll 2
      for (int k = 0; k < 2; k++) {
        weights_slope low = weights_slope_of(f, score, slope, words, q, mask, whole, bent, i, key + k);
        weights_slope high = weights_slope_of(f, score, slope, words, q, mask, whole, bent, i + 16, key + k);
        slopes[k][0] = weights_rounded(low.slope);
        slopes[k][1] = weights_rounded(high.slope);
        int at = (key + k) * PAIRS + i / 2;
        _mm512_store_si512(weight_rows + at,
                           weights_pair(weights_rounded(low.weight), weights_rounded(high.weight)));
        _mm512_store_si512(slope_rows + at, weights_pair(slopes[k][0], slopes[k][1]));
      }
      _mm512_store_si512(pairs + key / 2 * SIDE + i, weights_pair(slopes[0][0], slopes[1][0]));
      _mm512_store_si512(pairs + key / 2 * SIDE + i + 16, weights_pair(slopes[0][1], slopes[1][1]));
    }
}

static inline void weights_slopes(const attention_shape *s, const float *score, const float *slope,
                                  const uint32_t *words, const square_queries *q, const attention_mask *mask,
                                  const attention_bend *bend, uint32_t *weight_rows, uint32_t *slope_rows,
                                  uint32_t *pairs) {
  const weights_form form = {.scale2 = s->scale * log2_e,
                             .kept = (float)(1 / (1 - s->dropout)),
                             .inverse = bend->cap > 0 ? 1 / bend->cap : 0,
                             .threshold = s->threshold};
  if (form.threshold || form.inverse != 0)
    weights_slopes_as(&form, score, slope, words, q, mask, false, true, weight_rows, slope_rows, pairs);
  else if (weights_whole(mask))
    weights_slopes_as(&form, score, slope, words, q, mask, true, false, weight_rows, slope_rows, pairs);
  else weights_slopes_as(&form, score, slope, words, q, mask, false, false, weight_rows, slope_rows, pairs);
}

#endif
