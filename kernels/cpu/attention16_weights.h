/* SPDX-License-Identifier: Apache-2.0 */
/* The vector work of attention16.c and attention16_grad.c: powers of two, rounding to bf16, and what the
 * gradient makes of a tile of scores, [keys, queries], in the layouts that the products read. */
#ifndef CPU_ATTENTION16_WEIGHTS_H
#define CPU_ATTENTION16_WEIGHTS_H

#include "kernels/cpu/attention16_sides.h"
#include "schema/inlined.h"

/* 2^x for x < 127, within 3e-6 of it, a thousandth of what rounding to bf16 does, and below -126 at most
 * 2^-126 (0 of minus infinity): a polynomial of degree 4 for 2^r; 1 of 0, NaN of NaN. Beside tiles a core
 * shifts, and multiplies vectors, half as fast as it adds and permutes them: there r, from 0 to 1, is what
 * stands above the next whole number below, by which one instruction scales. */
#ifdef CPU_AMX
static inline __m512 weights_exp2(__m512 x) {
  enum { BELOW = 0x9 /* the whole number that is taken away, without faults */ };
  __m512 r = _mm512_reduce_ps(x, BELOW), p = _mm512_set1_ps(1.34267006E-2F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.22424467e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.41280213e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.93044841e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, x);
}
#else
static inline __m512 weights_exp2(__m512 x) {
  const __m512 whole = _mm512_set1_ps(12582912); /* 1.5 x 2^23: the lowest bits of a sum are a whole number */
  const __mmask16 normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126), _CMP_NLT_UQ);
  __m512 shifted = _mm512_add_ps(x, whole), n = _mm512_sub_ps(shifted, whole), r = _mm512_sub_ps(x, n);
  __m512 p = _mm512_set1_ps(9.58284456e-3F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.59064373e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.40240991e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.93124175e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  return (__m512)_mm512_maskz_add_epi32(normal, (__m512i)p, _mm512_slli_epi32((__m512i)shifted, 23));
}
#endif

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

static inline bool weights_whole(const attention_mask *mask) {
  return mask->whole && mask->n_queries == SIDE;
}

/* What becomes of a vector of scores and of the gradients of their weights. */
typedef struct weights_slope {
  __m512 weight, slope;
} weights_slope;

typedef struct weights_form {
  float scale2, kept, inverse; /* inverse: of a cap; 0: none */
  uint32_t threshold;
} weights_form;

enum { HALF = SIDE / 2 };

/* HALF keys of a tile with HALF of its queries: scores and slopes, [HALF, HALF], and the words of the tile's
 * mask. */
typedef struct weights_quarter {
  const float *score, *slope;
  const uint32_t *words;
  int key, query; /* the first */
  attention_read read;
} weights_quarter;

/* Places ascend, and so do the first that queries read; behind the last key there is none. */
static inline attention_read weights_quarter_read(const attention_mask *mask, int key, int query) {
  int64_t last = query + HALF < mask->n_queries ? query + HALF - 1 : mask->n_queries - 1;
  int32_t from = mask->place[key], to = mask->place[key + HALF - 1];
  if (last < query || from == INT32_MIN || from > mask->query[last]) return READ_NOTHING;
  if (to == INT32_MIN || to > mask->query[query] || last < query + HALF - 1) return READ_SOME;
  return to < mask->low[query] ? READ_NOTHING : from >= mask->low[last] ? READ_ALL : READ_SOME;
}

/* 16 queries, from i on, of a key. The scale is left to what slopes are multiplied to. */
INLINED weights_slope weights_slope_of(const weights_form *f, const weights_quarter *x,
                                       const square_queries *q, const attention_mask *mask, const bool whole,
                                       const bool bent, int i, int key) {
  int at = (key - x->key) * HALF + i - x->query;
  __m512 scores = _mm512_load_ps(x->score + at), gradient = _mm512_load_ps(x->slope + at);
  __m512 power = _mm512_fmsub_ps(scores, _mm512_set1_ps(f->scale2), _mm512_load_ps(q->lse2 + i));
  __m512 weight = weights_exp2(power), kept = weight;
  if (!whole) weight = kept = _mm512_maskz_mov_ps(weights_read(mask, i, key), weight);
  if (bent) {
    __mmask16 stays = f->threshold == 0
                          ? 0xFFFF
                          : _mm512_cmpge_epu32_mask(_mm512_load_si512(x->words + key * SIDE + i),
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

/* Where weights and slopes of a tile go: as rows of keys, a query and the sixteenth behind it in a word
 * (rows_paired), and slopes in pairs of keys too. */
typedef struct weights_places {
  uint32_t *weight_rows, *slope_rows; /* [SIDE, PAIRS] */
  uint32_t *pairs;                    /* [PAIRS, SIDE] */
} weights_places;

/* A quarter of which nothing is read. */
static inline void weights_none(const weights_quarter *x, const weights_places *y) {
  for (int key = x->key; key < x->key + HALF; key += 2) {
    for (int at = key * PAIRS + x->query / 2; at < (key + 2) * PAIRS; at += PAIRS) {
      _mm512_store_si512(y->weight_rows + at, _mm512_setzero_si512());
      _mm512_store_si512(y->slope_rows + at, _mm512_setzero_si512());
    }
    _mm512_store_si512(y->pairs + key / 2 * SIDE + x->query, _mm512_setzero_si512());
    _mm512_store_si512(y->pairs + key / 2 * SIDE + x->query + 16, _mm512_setzero_si512());
  }
}

INLINED void weights_slopes_as(const weights_form *f, const weights_quarter *x, const square_queries *q,
                               const attention_mask *mask, const bool whole, const bool bent,
                               const weights_places *y) {
  int i = x->query;
  for (int key = x->key; key < x->key + HALF; key += 2) {
    __m512i slopes[2][2];
#pragma GCC unroll 2
    for (int k = 0; k < 2; k++) {
      weights_slope low = weights_slope_of(f, x, q, mask, whole, bent, i, key + k);
      weights_slope high = weights_slope_of(f, x, q, mask, whole, bent, i + 16, key + k);
      slopes[k][0] = weights_rounded(low.slope);
      slopes[k][1] = weights_rounded(high.slope);
      int at = (key + k) * PAIRS + i / 2;
      _mm512_store_si512(y->weight_rows + at,
                         weights_pair(weights_rounded(low.weight), weights_rounded(high.weight)));
      _mm512_store_si512(y->slope_rows + at, weights_pair(slopes[k][0], slopes[k][1]));
    }
    _mm512_store_si512(y->pairs + key / 2 * SIDE + i, weights_pair(slopes[0][0], slopes[1][0]));
    _mm512_store_si512(y->pairs + key / 2 * SIDE + i + 16, weights_pair(slopes[0][1], slopes[1][1]));
  }
}

static inline void weights_slopes(const attention_shape *s, const weights_quarter *x, const square_queries *q,
                                  const attention_mask *mask, const attention_bend *bend,
                                  const weights_places *y) {
  const weights_form form = {.scale2 = s->scale * log2_e,
                             .kept = (float)(1 / (1 - s->dropout)),
                             .inverse = bend->cap > 0 ? 1 / bend->cap : 0,
                             .threshold = s->threshold};
  if (form.threshold || form.inverse != 0) weights_slopes_as(&form, x, q, mask, false, true, y);
  else if (x->read == READ_ALL) weights_slopes_as(&form, x, q, mask, true, false, y);
  else weights_slopes_as(&form, x, q, mask, false, false, y);
}

#endif
