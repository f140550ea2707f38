/* SPDX-License-Identifier: Apache-2.0 */
/* Standard normal numbers from 32 random bits, the same bits everywhere.
 *
 * z = Phi^-1((word + 1/2) / 2^32), by Wichura's rational approximation (Algorithm AS 241, 1988, about 16
 * digits) and a logarithm by series. Only IEEE binary64 +, -, x, / and sqrt occur, each rounded on its own
 * (compile without contraction to fused multiply-add), so any backend that has them draws the same numbers.
 * |z| < 6.4. */
#ifndef NX_NORMAL_H
#define NX_NORMAL_H

#include "schema/philox.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static inline double nx_normal_ratio(const double *p, const double *q, double x) {
  double above = p[7], below = q[7];
  for (int i = 6; i >= 0; i--) above = above * x + p[i], below = below * x + q[i];
  return above / below;
}

static inline double nx_double_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* log x for 2^-40 < x <= 1/2: x = m 2^-e with m in [sqrt 1/2, sqrt 2), log m = 2 atanh((m - 1) / (m + 1)).
 * Without branches, and of what vectors of any processor have. */
static inline double nx_normal_log(double x) {
  const uint64_t least = UINT64_C(0x3FE6A09E667F3BCD); /* sqrt 1/2 */
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t e = (least - bits + UINT64_C(0xFFFFFFFFFFFFF)) >> 52;
  double m = nx_double_of(bits + (e << 52)), exponent = nx_double_of(e | UINT64_C(0x4330) << 48) - 0x1p52;
  double t = (m - 1) / (m + 1), square = t * t, sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return -exponent * 0.69314718055994530942 + 2 * t * sum;
}

static inline double nx_normal_probability(uint32_t word) {
  return ((double)word + 0.5) / 4294967296.0;
}

/* For probabilities q + 1/2 with |q| <= 0.425, which are 17 of 20. */
static inline double nx_normal_near(double q) {
  static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                              1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                              3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static const double b[8] = {1.0,
                              4.2313330701600911252e+1,
                              6.8718700749205790830e+2,
                              5.3941960214247511077e+3,
                              2.1213794301586595867e+4,
                              3.9307895800092710610e+4,
                              2.8729085735721942674e+4,
                              5.2264952788528545610e+3};
  return q * nx_normal_ratio(a, b, 0.180625 - q * q);
}

/* For all others: sqrt(-log) of them is below 5, so that the third part of AS 241 is not needed. */
static inline double nx_normal_far(double probability) {
  static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                              3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                              2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static const double d[8] = {1.0,
                              2.05319162663775882187e0,
                              1.67638483018380384940e0,
                              6.89767334985100004550e-1,
                              1.48103976427480074590e-1,
                              1.51986665636164571966e-2,
                              5.47593808499534494600e-4,
                              1.05075007164441684324e-9};
  double q = probability - 0.5, r = sqrt(-nx_normal_log(0.5 - fabs(q)));
  return copysign(nx_normal_ratio(c, d, r - 1.6), q);
}

/* Whether |q| <= 0.425. */
static inline bool nx_normal_is_near(uint32_t word) {
  return word - UINT32_C(322122547) <= UINT32_C(3650722201);
}

static inline double nx_normal(uint32_t word) {
  double probability = nx_normal_probability(word);
  return nx_normal_is_near(word) ? nx_normal_near(probability - 0.5) : nx_normal_far(probability);
}

enum { NX_NORMALS = 256 };

/* nx_normal of n words, at most NX_NORMALS: all as if they were near, then those that are not, both in
 * vectors. */
static inline void nx_normals(const uint32_t *words, int64_t n, double *z) {
  uint16_t far[NX_NORMALS];
  double values[NX_NORMALS];
  int64_t n_far = 0;
  for (int64_t i = 0; i < n; i++) z[i] = nx_normal_near(nx_normal_probability(words[i]) - 0.5);
  for (int64_t i = 0; i < n; i++) {
    far[n_far] = (uint16_t)i;
    n_far += !nx_normal_is_near(words[i]);
  }
  for (int64_t i = 0; i < n_far; i++) values[i] = nx_normal_probability(words[far[i]]);
  for (int64_t i = 0; i < n_far; i++) values[i] = nx_normal_far(values[i]);
  for (int64_t i = 0; i < n_far; i++) z[far[i]] = values[i];
}

/* Uniform numbers of mean 0 and deviation 1, from the same bits. */
static inline double nx_uniform(uint32_t word) {
  return 1.7320508075688772 * (2 * (((double)word + 0.5) / 4294967296.0) - 1);
}

/* The random bits of initial weights: those of element (row, column) of a logical tensor are word column % 4
 * of column4 = column / 4. The last counter keeps them apart from dropout's. */
static inline nx_philox nx_normal_bits(uint64_t seed, uint32_t tensor_id, uint64_t row, uint32_t column4) {
  return nx_philox_draw(seed, tensor_id, column4, (uint32_t)row, (uint32_t)(row >> 32), UINT32_C(0x77656967));
}

#endif
