/* SPDX-License-Identifier: Apache-2.0 */
/* The softmax of attention in fp32 on a tile of scores, [keys, queries], and its gradient: a vector holds
 * queries, so that maxima and sums run down the rows. A few vectors of queries go over all keys at a time;
 * what they sum stays in registers. */
#ifndef CPU_ATTENTION32_SOFTMAX_H
#define CPU_ATTENTION32_SOFTMAX_H

#include "kernels/cpu/attention_square.h"
#include "kernels/cpu/lanes.h"

enum { COLUMNS = 4, COLUMN_QUERIES = COLUMNS * LANES };
_Static_assert((int)SIDE % (int)COLUMN_QUERIES == 0, "a tile has whole columns");

/* Running softmax of the tile's queries. */
typedef struct square_run {
  float max[SIDE] __attribute__((aligned(64))), sum[SIDE] __attribute__((aligned(64)));
} square_run;

static inline void square_run_begin(square_run *run) {
  for (int i = 0; i < SIDE; i++) run->max[i] = -INFINITY, run->sum[i] = 0;
}

/* a for queries from i on that read the key, b for others. */
static inline lanes square_read(const attention_mask *mask, int i, int key, lanes a, lanes b) {
  lanes_words place = lanes_words_of((uint32_t)mask->place[key]);
  return lanes_at_most(place - lanes_words_read(mask->low + i), lanes_words_read(mask->reach + i), a, b);
}

/* Maxima of COLUMNS vectors of queries; NaN counts as none. */
INLINED void square_maxima(const float *score, const attention_mask *mask, int i, const bool whole,
                           lanes *max) {
  for (int key = 0; key < SIDE; key++)
#pragma GCC unroll 4
    for (int c = 0; c < COLUMNS; c++) {
      int at = i + c * LANES;
      lanes x = lanes_read_f32(score + key * SIDE + at);
      if (!whole) x = square_read(mask, at, key, x, lanes_of(-INFINITY));
      max[c] = lanes_max(x, max[c]);
    }
}

/* Scores become weights, which are added to `sum`. */
INLINED void square_weights(float *score, const attention_mask *mask, int i, const bool whole, lanes scale2,
                            const lanes *base, lanes *sum) {
  for (int key = 0; key < SIDE; key++)
#pragma GCC unroll 4
    for (int c = 0; c < COLUMNS; c++) {
      int at = i + c * LANES;
      float *x = score + key * SIDE + at;
      lanes weight = lanes_exp2((lanes_read_f32(x) - base[c]) * scale2);
      if (!whole) weight = square_read(mask, at, key, weight, lanes_of(0));
      lanes_write_f32(x, weight);
      sum[c] += weight;
    }
}

INLINED void square_softmax_as(float *score, float scale, const attention_mask *mask, const bool whole,
                               square_run *run, float *old) {
  const lanes scale2 = lanes_of(scale * log2_e), none = lanes_of(-INFINITY);
  for (int i = 0; i < SIDE; i += COLUMN_QUERIES) {
    lanes max[COLUMNS], base[COLUMNS] /* finite where nothing was read yet */, sum[COLUMNS];
#pragma GCC unroll 4
    for (int c = 0; c < COLUMNS; c++) max[c] = lanes_read_f32(run->max + i + c * LANES);
    square_maxima(score, mask, i, whole, max);
#pragma GCC unroll 4
    for (int c = 0; c < COLUMNS; c++) {
      int at = i + c * LANES;
      base[c] = lanes_below(none, max[c], max[c], lanes_of(0));
      lanes fall = lanes_exp2((lanes_read_f32(run->max + at) - base[c]) * scale2);
      sum[c] = lanes_of(0); /* that of the tile alone rounds less */
      lanes_write_f32(old + at, fall);
      lanes_write_f32(run->max + at, max[c]);
    }
    square_weights(score, mask, i, whole, scale2, base, sum);
#pragma GCC unroll 4
    for (int c = 0; c < COLUMNS; c++) {
      int at = i + c * LANES;
      lanes before = lanes_read_f32(run->sum + at) * lanes_read_f32(old + at);
      lanes_write_f32(run->sum + at, before + sum[c]);
    }
  }
}

/* Turns scores into weights relative to the new maxima; `old` becomes the factor of everything before. */
static inline void square_softmax(float *score, float scale, const attention_mask *mask, square_run *run,
                                  float *old) {
  if (mask->whole && mask->n_queries == SIDE) square_softmax_as(score, scale, mask, true, run, old);
  else square_softmax_as(score, scale, mask, false, run, old);
}

static inline void square_drop(float *weight, const uint32_t *words, uint32_t threshold) {
#pragma omp simd
  for (int i = 0; i < SIDE * SIDE; i++) weight[i] = words[i] >= threshold ? weight[i] : 0.0F;
}

/* What turns the scores of a tile and the gradients of its weights. */
typedef struct square_slope {
  const attention_mask *mask;
  const square_queries *queries;
  const uint32_t *words;
  uint32_t threshold;
  float scale, scale2, inverse, kept; /* inverse: of the cap, 0 without one */
} square_slope;

/* A vector of queries with a key: the weight (0 where it was dropped) for the score, the score's gradient for
 * that of the weight. */
INLINED void square_slope_one(const square_slope *f, float *score, float *slope, int key, int i,
                              const bool whole, const bool bent) {
  lanes x = lanes_read_f32(score), gradient = lanes_read_f32(slope), factor = lanes_of(f->scale);
  lanes product = lanes_read_f32(f->queries->product + i), kept;
  lanes weight = lanes_exp2(lanes_less(x, lanes_of(f->scale2), lanes_read_f32(f->queries->lse2 + i)));
  if (!whole) weight = square_read(f->mask, i, key, weight, lanes_of(0));
  kept = weight;
  if (bent) {
    lanes capped = x * lanes_of(f->inverse), keep = lanes_of(f->kept);
    lanes_words words = lanes_words_read(f->words + key * SIDE + i);
    if (f->threshold) keep = lanes_at_most(lanes_words_of(f->threshold), words, keep, lanes_of(0));
    factor *= lanes_of(1) - capped * capped;
    gradient *= keep;
    kept *= keep;
  }
  lanes_write_f32(score, kept);
  lanes_write_f32(slope, weight * (gradient - product) * factor);
}

INLINED void square_slopes_as(const square_slope *f, float *score, float *slope, const bool whole,
                              const bool bent) {
  for (int key = 0; key < SIDE; key++)
#pragma GCC unroll 4
    for (int i = 0; i < SIDE; i += LANES)
      square_slope_one(f, score + key * SIDE + i, slope + key * SIDE + i, key, i, whole, bent);
}

static inline void square_slopes(const attention_shape *s, float *score, float *slope, const uint32_t *words,
                                 const square_queries *queries, const attention_mask *mask,
                                 const attention_bend *bend) {
  const square_slope form = {.mask = mask,
                             .queries = queries,
                             .words = words,
                             .threshold = s->threshold,
                             .scale = s->scale,
                             .scale2 = s->scale * log2_e,
                             .inverse = bend->cap > 0 ? 1 / bend->cap : 0,
                             .kept = (float)(1 / (1 - s->dropout))};
  if (s->threshold || form.inverse != 0) square_slopes_as(&form, score, slope, false, true);
  else if (mask->whole && mask->n_queries == SIDE) square_slopes_as(&form, score, slope, true, false);
  else square_slopes_as(&form, score, slope, false, false);
}

#endif
