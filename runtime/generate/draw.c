/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/generate/draw.h"

#include "schema/philox.h"

#include <math.h>
#include <stdlib.h>

enum { KEY = 0x7E47 /* of no tensor: what is drawn for texts */ };

static int by_likelihood(const void *a, const void *b, void *logits) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  double left = ((const double *)logits)[x], right = ((const double *)logits)[y];
  return left != right ? (left > right ? -1 : 1) : (x > y) - (x < y);
}

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* In [0, 1). */
static double fraction(uint64_t seed, uint64_t index) {
  nx_philox drawn = nx_philox_draw(seed, KEY, (uint32_t)index, (uint32_t)(index >> 32), 0, 0);
  return (double)((uint64_t)drawn.word[0] << 21 | drawn.word[1] >> 11) * 0x1p-53;
}

static double weight(const nxr_drawing *drawing, double logit, double largest) {
  return exp((logit - largest) / drawing->temperature);
}

static uint32_t likeliest(const double *logits, uint32_t n) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < n; i++)
    if (logits[i] > logits[best]) best = i;
  return best;
}

/* Keeps the likeliest that have top_p of the probability together, by number: meshes round otherwise, and may
 * rank near equals otherwise. */
static uint32_t keep_likeliest(const nxr_drawing *drawing, const double *logits, double all, uint32_t n,
                               uint32_t *order) {
  qsort_r(order, n, sizeof *order, by_likelihood, (void *)(uintptr_t)logits);
  double largest = logits[order[0]], kept = 0;
  uint32_t n_kept = 0;
  while (n_kept < n && (n_kept == 0 || kept < drawing->top_p * all))
    kept += weight(drawing, logits[order[n_kept++]], largest);
  qsort(order, n_kept, sizeof *order, by_number);
  return n_kept;
}

uint32_t nxr_draw(const nxr_drawing *drawing, const double *logits, uint32_t n, uint64_t index,
                  uint32_t *order) {
  uint32_t best = likeliest(logits, n);
  if (drawing->temperature == 0) return best;
  double all = 0, kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    order[i] = i;
    all += weight(drawing, logits[i], logits[best]);
  }
  if (drawing->top_p < 1) n = keep_likeliest(drawing, logits, all, n, order);
  for (uint32_t i = 0; i < n; i++) kept += weight(drawing, logits[order[i]], logits[best]);
  double rest = fraction(drawing->seed, index) * kept;
  for (uint32_t i = 0; i + 1 < n; i++) {
    rest -= weight(drawing, logits[order[i]], logits[best]);
    if (rest < 0) return order[i];
  }
  return order[n - 1];
}
