/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, gated or not. An item has runs of elements, and reads all of what it overwrites, so
 * outputs may lie where inputs do. */

static float4 logistic(float4 x) {
  return 1 / (1 + exp(-x));
}

#define SQRT_2_OVER_PI 0.79788456080286535588f
#define CUBIC 0.044715f
#define SQRT_HALF 0.70710678118654752440f
#define INVERSE_SQRT_2_PI 0.39894228040143267794f
#define QUICK 1.702f
#define NONE ((float4)0)
#define ONE ((float4)1)

static float4 tanh_of_softplus(float4 x) {
  return tanh((x > 30) ? x : log1p(exp(x)));
}

static float4 value_of(long function, float4 x) {
  switch (function) {
  case function_gelu: return 0.5f * x * (1 + erf(x * SQRT_HALF));
  case function_gelu_tanh: return 0.5f * x * (1 + tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x)));
  case function_relu: return (x < 0) ? NONE : x;
  case function_squared_relu: return (x < 0) ? NONE : x * x;
  case function_silu: return x * logistic(x);
  case function_quick_gelu: return x * logistic(QUICK * x);
  case function_mish: return x * tanh_of_softplus(x);
  case function_softsign: return x / (1 + fabs(x));
  case function_sigmoid: return logistic(x);
  default: return x;
  }
}

static float4 gelu_tanh_slope(float4 x) {
  float4 t = tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
}

static float4 sigmoid_unit_slope(float4 x, float c) {
  float4 s = logistic(c * x);
  return s * (1 + c * x * (1 - s));
}

static float4 mish_slope(float4 x) {
  float4 t = tanh_of_softplus(x);
  return t + x * (1 - t * t) * logistic(x);
}

static float4 slope_of(long function, float4 x) {
  switch (function) {
  case function_gelu:
    return 0.5f * (1 + erf(x * SQRT_HALF)) + x * INVERSE_SQRT_2_PI * exp(-0.5f * x * x);
  case function_gelu_tanh: return gelu_tanh_slope(x);
  case function_relu: return (x > 0) ? ONE : NONE;
  case function_squared_relu: return (x > 0) ? 2 * x : NONE;
  case function_silu: return sigmoid_unit_slope(x, 1);
  case function_quick_gelu: return sigmoid_unit_slope(x, QUICK);
  case function_mish: return mish_slope(x);
  case function_softsign: return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
  case function_sigmoid: return logistic(x) * logistic(-x);
  default: return ONE;
  }
}

#ifdef IS_activation
kernel void activation(OPERANDS) {
  long i = RUN * (long)get_global_id(0), n = YN(0);
  if (i < n) SET_Y0_RUN(i, n, value_of(A_function, X0_RUN(i, n)));
}
#endif

#ifdef IS_activation_grad
kernel void activation_grad(OPERANDS) {
  long i = RUN * (long)get_global_id(0), n = YN(0);
  if (i < n) SET_Y0_RUN(i, n, X0_RUN(i, n) * slope_of(A_function, X1_RUN(i, n)));
}
#endif

/* The halves of a run of features; `*_moves`: 0 where a limit holds them. */
typedef struct gate {
  float4 gate, up, gate_moves, up_moves;
} gate;

#if defined IS_gated || defined IS_gated_grad
#ifdef IS_gated
#define HALF_RUN(i, end) X0_RUN(i, end)
#else
#define HALF_RUN(i, end) X1_RUN(i, end)
#endif

static gate gate_of(float4 own, float4 up, float limit, float offset) {
  gate g = {own, up, ONE, ONE};
  if (limit > 0) {
    g.gate_moves = (own > limit) ? NONE : ONE, g.up_moves = (fabs(up) > limit) ? NONE : ONE;
    g.gate = (own > limit) ? limit * ONE : own, g.up = (fabs(up) > limit) ? copysign(limit * ONE, up) : up;
  }
  g.up += offset;
  return g;
}

/* Those of the features from i on, of `width`, in a row that begins at `row`. */
#define GATE_OF(g, row, i, width) \
  long end = (row) + 2 * (width), at = (row) + (A_interleaved ? 2 * (i) : (i)); \
  long at_up = A_interleaved ? at + RUN : at + (width); \
  float4 low = HALF_RUN(at, A_interleaved ? end : (row) + (width)), high = HALF_RUN(at_up, end); \
  float4 own = A_interleaved ? (float4)(low.even, high.even) : low; \
  float4 up = A_interleaved ? (float4)(low.odd, high.odd) : high; \
  gate g = gate_of(own, up, (float)A_limit, (float)A_offset)
#endif

#ifdef IS_gated
kernel void gated(OPERANDS) {
  long t = get_group_id(0), width = YDIM(0, 3);
  for (long i = RUN * (long)get_local_id(0); i < width; i += RUN * LOCAL) {
    GATE_OF(g, 2 * t * width, i, width);
    SET_Y0_RUN(t * width + i, (t + 1) * width, value_of(A_function, g.gate) * g.up);
  }
}
#endif

#ifdef IS_gated_grad
kernel void gated_grad(OPERANDS) {
  long t = get_group_id(0), width = XDIM(0, 3), row = 2 * t * width;
  for (long i = RUN * (long)get_local_id(0); i < width; i += RUN * LOCAL) {
    GATE_OF(g, row, i, width);
    float4 dy = X0_RUN(t * width + i, (t + 1) * width);
    float4 dgate = g.gate_moves * dy * g.up * slope_of(A_function, g.gate);
    float4 dup = g.up_moves * dy * value_of(A_function, g.gate);
    float4 first = A_interleaved ? (float4)(dgate.x, dup.x, dgate.y, dup.y) : dgate;
    float4 second = A_interleaved ? (float4)(dgate.z, dup.z, dgate.w, dup.w) : dup;
    SET_Y0_RUN(at, A_interleaved ? end : row + width, first);
    SET_Y0_RUN(at_up, end, second);
  }
}
#endif
