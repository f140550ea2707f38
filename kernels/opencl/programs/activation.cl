/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, gated or not. An item reads all of what it overwrites, so outputs may lie where inputs do. */

static float logistic(float x) {
  return 1 / (1 + exp(-x));
}

#define SQRT_2_OVER_PI 0.79788456080286535588f
#define CUBIC 0.044715f
#define SQRT_HALF 0.70710678118654752440f
#define INVERSE_SQRT_2_PI 0.39894228040143267794f
#define QUICK 1.702f

static float tanh_of_softplus(float x) {
  return tanh(x > 30 ? x : log1p(exp(x)));
}

static float value_of(long function, float x) {
  switch (function) {
  case function_gelu: return 0.5f * x * (1 + erf(x * SQRT_HALF));
  case function_gelu_tanh: return 0.5f * x * (1 + tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x)));
  case function_relu: return x < 0 ? 0 : x;
  case function_squared_relu: return x < 0 ? 0 : x * x;
  case function_silu: return x * logistic(x);
  case function_quick_gelu: return x * logistic(QUICK * x);
  case function_mish: return x * tanh_of_softplus(x);
  case function_softsign: return x / (1 + fabs(x));
  case function_sigmoid: return logistic(x);
  default: return x;
  }
}

static float gelu_tanh_slope(float x) {
  float t = tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
}

static float sigmoid_unit_slope(float x, float c) {
  float s = logistic(c * x);
  return s * (1 + c * x * (1 - s));
}

static float mish_slope(float x) {
  float t = tanh_of_softplus(x);
  return t + x * (1 - t * t) * logistic(x);
}

static float slope_of(long function, float x) {
  switch (function) {
  case function_gelu:
    return 0.5f * (1 + erf(x * SQRT_HALF)) + x * INVERSE_SQRT_2_PI * exp(-0.5f * x * x);
  case function_gelu_tanh: return gelu_tanh_slope(x);
  case function_relu: return x > 0 ? 1 : 0;
  case function_squared_relu: return x > 0 ? 2 * x : 0;
  case function_silu: return sigmoid_unit_slope(x, 1);
  case function_quick_gelu: return sigmoid_unit_slope(x, QUICK);
  case function_mish: return mish_slope(x);
  case function_softsign: return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
  case function_sigmoid: return logistic(x) * logistic(-x);
  default: return 1;
  }
}

#ifdef IS_activation
kernel void activation(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, value_of(A_function, X0(i)));
}
#endif

#ifdef IS_activation_grad
kernel void activation_grad(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, X0(i) * slope_of(A_function, X1(i)));
}
#endif

/* Where the halves of a feature stand, and what they are; `*_moves`: 0 where a limit holds it. */
typedef struct gate {
  long at_gate, at_up;
  float gate, up, gate_moves, up_moves;
} gate;

#if defined IS_gated || defined IS_gated_grad
#ifdef IS_gated
#define HALF(i) X0(i)
#else
#define HALF(i) X1(i)
#endif
#define GATE_OF(g, i, width) \
  long row = i / width * 2 * width, column = i % width; \
  float limit = (float)A_limit; \
  gate g = {row + (A_interleaved ? 2 * column : column), 0, 0, 0, 1, 1}; \
  g.at_up = A_interleaved ? g.at_gate + 1 : g.at_gate + width; \
  g.gate = HALF(g.at_gate), g.up = HALF(g.at_up); \
  if (limit > 0 && g.gate > limit) g.gate = limit, g.gate_moves = 0; \
  if (limit > 0 && fabs(g.up) > limit) g.up = copysign(limit, g.up), g.up_moves = 0; \
  g.up += (float)A_offset
#endif

#ifdef IS_gated
kernel void gated(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
  GATE_OF(g, i, YDIM(0, 3));
  SET_Y0(i, value_of(A_function, g.gate) * g.up);
}
#endif

#ifdef IS_gated_grad
kernel void gated_grad(OPERANDS) {
  long i = get_global_id(0);
  if (i >= XN(0)) return;
  GATE_OF(g, i, XDIM(0, 3));
  float dy = X0(i), value = value_of(A_function, g.gate);
  SET_Y0(g.at_gate, g.gate_moves * dy * g.up * slope_of(A_function, g.gate));
  SET_Y0(g.at_up, g.up_moves * dy * value);
}
#endif
