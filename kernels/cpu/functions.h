/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of activation and their derivatives, of vectors. */
#ifndef CPU_FUNCTIONS_H
#define CPU_FUNCTIONS_H

#include "kernels/cpu/lanes.h"

static const float SQRT_2_OVER_PI = 0.797884560802865F;
static const float CUBIC = 0.044715F;
static const float TWICE = -2 * 0.797884560802865F * 1.44269504F; /* -2 sqrt(2 / pi) log2(e) */
static const float QUICK = 1.702F;

/* c x^2 + b */
INLINED lanes parabola(lanes x, float c, float b) {
  return lanes_of(c) * (x * x) + lanes_of(b);
}

/* 0.5 (1 + tanh(u)) = sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3): no tanh and no cancellation.
 * This is 1 / sigmoid(2 u), with e^(-2 u) as a power of two. */
INLINED lanes gelu_wall(lanes x) {
  return lanes_of(1) + lanes_exp2(x * parabola(x, TWICE * CUBIC, TWICE));
}

INLINED lanes gelu_tanh_slope(lanes x) {
  lanes gate = lanes_of(1) / gelu_wall(x),
        twice = x * parabola(x, 6 * SQRT_2_OVER_PI * CUBIC, 2 * SQRT_2_OVER_PI);
  return gate + gate * (lanes_of(1) - gate) * twice;
}

INLINED lanes normal_cdf(lanes x) {
  return lanes_of(0.5F) + lanes_of(0.5F) * lanes_erf(x * lanes_of(0.707106781186548F));
}

INLINED lanes gelu_erf_slope(lanes x) {
  return normal_cdf(x) + x * lanes_of(0.398942280401433F) * lanes_exp(lanes_of(-0.5F) * x * x);
}

/* The derivative of x sigmoid(c x). */
INLINED lanes sigmoid_unit_slope(lanes x, float c) {
  lanes s = lanes_sigmoid(lanes_of(c) * x);
  return s * (lanes_of(1) + lanes_of(c) * x * (lanes_of(1) - s));
}

/* With e = exp(x) and n = e (e + 2): tanh(log(1 + e)) = n / (n + 2), which is 1 in fp32 from 20 on. */
INLINED lanes mish_n(lanes x) {
  lanes e = lanes_exp(lanes_below(lanes_of(20), x, lanes_of(20), x));
  return e * (e + lanes_of(2));
}

INLINED lanes mish_gate(lanes x) {
  lanes n = mish_n(x);
  return n / (n + lanes_of(2));
}

INLINED lanes mish_slope(lanes x) {
  lanes n = mish_n(x), more = n + lanes_of(2);
  return n / more + x * lanes_of(4) * (n + lanes_of(1)) / (more * more) * lanes_sigmoid(x);
}

INLINED lanes value_of(nx_activation function, lanes x) {
  const lanes zero = lanes_of(0);
  switch (function) {
  case NX_ACTIVATION_GELU: return x * normal_cdf(x);
  case NX_ACTIVATION_GELU_TANH: return x / gelu_wall(x);
  case NX_ACTIVATION_RELU: return lanes_max(zero, x);
  case NX_ACTIVATION_SQUARED_RELU: return lanes_below(x, zero, zero, x * x);
  case NX_ACTIVATION_SILU: return x * lanes_sigmoid(x);
  case NX_ACTIVATION_QUICK_GELU: return x * lanes_sigmoid(lanes_of(QUICK) * x);
  case NX_ACTIVATION_MISH: return x * mish_gate(x);
  case NX_ACTIVATION_SOFTSIGN: return x / (lanes_of(1) + lanes_abs(x));
  case NX_ACTIVATION_SIGMOID: return lanes_sigmoid(x);
  default: return x;
  }
}

INLINED lanes slope_of(nx_activation function, lanes x) {
  const lanes zero = lanes_of(0), one = lanes_of(1);
  lanes s = one + lanes_abs(x);
  switch (function) {
  case NX_ACTIVATION_GELU: return gelu_erf_slope(x);
  case NX_ACTIVATION_GELU_TANH: return gelu_tanh_slope(x);
  case NX_ACTIVATION_RELU: return lanes_below(zero, x, one, zero);
  case NX_ACTIVATION_SQUARED_RELU: return lanes_below(zero, x, x + x, zero);
  case NX_ACTIVATION_SILU: return sigmoid_unit_slope(x, 1);
  case NX_ACTIVATION_QUICK_GELU: return sigmoid_unit_slope(x, QUICK);
  case NX_ACTIVATION_MISH: return mish_slope(x);
  case NX_ACTIVATION_SOFTSIGN: return one / (s * s);
  case NX_ACTIVATION_SIGMOID: return lanes_sigmoid(x) * lanes_sigmoid(zero - x);
  default: return one;
  }
}

#endif
