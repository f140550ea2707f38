/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends share of muon. Whoever includes this says before in what it is computed: the type
 * `real`. */
#ifndef KERNELS_RULES_MUON_H
#define KERNELS_RULES_MUON_H

#include "kernels/rules/step.h"
#include "schema/bf16.h"
#include "schema/muon_scale.h"

static inline real rule_muon_rounded(real x) {
  return (real)nx_bf16_to_float(nx_bf16_from_float((float)x));
}

/* What rounded_momentum says: from when on the numbers of the momentum are those of bf16. */
enum { RULE_MUON_GRADIENT = 1, RULE_MUON_ALL };

/* Of muon: the mean of gradients, and the direction that is made orthogonal. */
static inline void rule_muon_direction(const rule_step *step, real *restrict m, const real *restrict g,
                                       real *restrict direction, int64_t n) {
  const real momentum = (real)step->number[NX_muon_momentum],
             rest = (real)(1 - step->number[NX_muon_momentum]);
  const real scale = (real)step->scale;
  const bool nesterov = step->number[NX_muon_nesterov] != 0;
  const int from = (int)step->number[NX_muon_rounded_momentum];
  const bool rounds_gradient = from >= RULE_MUON_GRADIENT, rounds_mean = from == RULE_MUON_ALL;
  const bool rounded = rounds_mean || step->number[NX_muon_rounded_update] != 0;
  const real of_gradient = nesterov ? rest : 0, of_mean = nesterov ? momentum : 1;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = rounds_gradient ? rule_muon_rounded(g[i] * scale) : g[i] * scale;
    real mean = momentum * m[i] + rest * gradient;
    m[i] = mean = rounds_mean ? rule_muon_rounded(mean) : mean;
    const real update = of_gradient * gradient + of_mean * mean;
    direction[i] = rounded ? rule_muon_rounded(update) : update;
  }
}

/* Of the update of a tensor of this shape. */
static inline double rule_muon_scale(const rule_step *step, double rows, double columns) {
  return step->number[NX_muon_update_factor] *
         nx_muon_scale((int)step->number[NX_muon_update_scale], rows, columns);
}

/* Where its decay is cautious, only what the update makes smaller is decayed. */
static inline void rule_muon_apply(const rule_step *step, double scale, real *restrict p,
                                   const real *restrict update, int64_t n) {
  const real rate = (real)(step->lr * scale), kept = (real)(1 - step->lr * step->decay);
  const bool cautious = step->number[NX_muon_cautious_decay] != 0;
  const bool rounded = step->number[NX_muon_rounded_update] != 0;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const real x = rounded ? rule_muon_rounded(update[i]) : update[i];
    p[i] = (cautious && x * p[i] < 0 ? p[i] : p[i] * kept) - rate * x;
  }
}

/* The second moment of each element of the update x. */
static inline void rule_adamuon(const rule_step *step, real *restrict x, real *restrict v, int64_t n) {
  const real beta = (real)step->number[NX_adaptive_muon_moment2_beta];
  const real rest = (real)(1 - step->number[NX_adaptive_muon_moment2_beta]);
  const real epsilon = (real)step->number[NX_adaptive_muon_moment2_epsilon];
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real second = beta * v[i] + rest * (x[i] * x[i]);
    v[i] = second;
    x[i] /= (real)sqrt(second) + epsilon;
  }
}

/* That of each row, where there are no more columns than rows, or else of each column; x keeps its norm.
 * `sums` has as many as there are rows or columns. */
static inline void rule_normuon(const rule_step *step, real *restrict x, real *restrict v,
                                double *restrict sums, int64_t rows, int64_t columns) {
  const double beta = step->number[NX_adaptive_muon_moment2_beta];
  const double epsilon = step->number[NX_adaptive_muon_moment2_epsilon];
  const bool by_rows = rows >= columns;
  const int64_t n_sums = by_rows ? rows : columns;
  double norm = 0, new_norm = 0;
  for (int64_t k = 0; k < n_sums; k++) sums[k] = 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      sums[by_rows ? i : j] += (double)x[i * columns + j] * (double)x[i * columns + j];
  for (int64_t k = 0; k < n_sums; k++) {
    const double mean = sums[k] / (double)(by_rows ? columns : rows);
    const double second = beta * (double)v[by_rows ? k * columns : k] + (1 - beta) * mean;
    const double least = fmax(second, epsilon);
    norm += sums[k];
    new_norm += sums[k] / least;
    sums[k] = second;
  }
  const double kept = sqrt(norm) / fmax(sqrt(new_norm), epsilon);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      const double second = sums[by_rows ? i : j];
      v[i * columns + j] = (real)second;
      x[i * columns + j] *= (real)(kept / sqrt(fmax(second, epsilon)));
    }
}

/* The update, made orthogonal, of a rule that divides it by its second moment. */
static inline void rule_muon_adapt(const rule_step *step, double scale, real *restrict x, real *restrict v,
                                   double *restrict sums, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows * columns; i++) x[i] *= (real)scale;
  if (step->number[NX_adaptive_muon_moment2] == 0) rule_adamuon(step, x, v, rows * columns);
  else rule_normuon(step, x, v, sums, rows, columns);
}

/* X becomes a X + (b X X^T + c (X X^T)^2) X, time and again: its singular values come near 1. By
 * ns_coefficients: a row for each step, and behind the last again from the first, or the last time and
 * again. */
enum { RULE_MUON_ROWS = 10 };
typedef struct rule_muon_rows {
  int64_t n;
  bool last_stays;
  double rows[RULE_MUON_ROWS][3];
} rule_muon_rows;

#define RULE_MUON_SIMPLE {3.4445, -4.7750, 2.0315}
static const rule_muon_rows rule_muon_sets[] = {
    {1, false, {RULE_MUON_SIMPLE}},
    {5,
     false,
     {{4.0848, -6.8946, 2.9270},
      {3.9505, -6.3029, 2.6377},
      {3.7418, -5.5913, 2.3037},
      {2.8769, -3.1427, 1.2046},
      {2.8366, -3.0525, 1.2012}}},
    {8, /* arXiv:2505.16932 */
     true,
     {{8.2051, -22.9019, 16.4607},
      {4.0664, -2.8612, 0.5184},
      {3.9096, -2.8234, 0.5250},
      {3.2856, -2.4153, 0.4853},
      {2.2779, -1.6198, 0.3985},
      {1.8726, -1.2307, 0.3585},
      {1.8564, -1.2132, 0.3568},
      {1.8750, -1.2500, 0.3750}}},
    {5, /* arXiv:2506.10935 */
     true,
     {{8.4703, -25.1081, 18.6293},
      {4.1828, -3.1087, 0.5806},
      {3.9619, -2.9541, 0.5630},
      {3.2866, -2.4647, 0.5074},
      {2.2737, -1.6447, 0.4162}}},
    {4,
     false,
     {{4.0098, -7.0585, 2.4635},
      {3.4585, -5.5479, 2.5959},
      {2.7573, -3.2939, 1.4254},
      {2.7215, -3.0494, 1.3169}}},
    {10,
     true,
     {RULE_MUON_SIMPLE,
      RULE_MUON_SIMPLE,
      RULE_MUON_SIMPLE,
      RULE_MUON_SIMPLE,
      RULE_MUON_SIMPLE,
      RULE_MUON_SIMPLE,
      RULE_MUON_SIMPLE,
      RULE_MUON_SIMPLE,
      {2.0, -1.5, 0.5},
      {2.0, -1.5, 0.5}}},
    {5, /* arXiv:2606.00371 */
     false,
     {{3.3656576, -3.3420992, 0},
      {2.5744352, -1.4957376, 0},
      {2.5368962, -1.4312570, 0},
      {2.4418906, -1.2764040, 0},
      {2.2230472, -0.9630650, 0}}},
};

static inline const double *rule_muon_coefficients(int64_t set, int64_t iteration) {
  const rule_muon_rows *of = &rule_muon_sets[set];
  int64_t row = of->last_stays ? (iteration < of->n ? iteration : of->n - 1) : iteration % of->n;
  return of->rows[row];
}

static inline const double *rule_muon_coefficients_of(const rule_step *step, int64_t iteration) {
  return rule_muon_coefficients((int64_t)step->number[NX_muon_ns_coefficients], iteration);
}

static const double rule_muon_epsilon = 1e-7; /* the norm that it is first divided by is no less */

#endif
