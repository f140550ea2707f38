/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, gated or not, and dropout: element by element, each read before it is overwritten. */
#include "kernels/ref/ref.h"
#include "schema/normal.h"
#include "schema/philox.h"

#include <math.h>

static double logistic(double x) {
  return 1 / (1 + exp(-x));
}

static const double SQRT_2_OVER_PI = 0.79788456080286535588, CUBIC = 0.044715;
static const double SQRT_HALF = 0.70710678118654752440, INVERSE_SQRT_2_PI = 0.39894228040143267794;
static const double QUICK = 1.702;

static double tanh_of_softplus(double x) {
  return tanh(x > 30 ? x : log1p(exp(x)));
}

static double value_of(nx_activation function, double x) {
  switch (function) {
  case NX_ACTIVATION_GELU: return 0.5 * x * (1 + erf(x * SQRT_HALF));
  case NX_ACTIVATION_GELU_TANH: return 0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x)));
  case NX_ACTIVATION_RELU: return x < 0 ? 0 : x;
  case NX_ACTIVATION_SQUARED_RELU: return x < 0 ? 0 : x * x;
  case NX_ACTIVATION_SILU: return x * logistic(x);
  case NX_ACTIVATION_QUICK_GELU: return x * logistic(QUICK * x);
  case NX_ACTIVATION_MISH: return x * tanh_of_softplus(x);
  case NX_ACTIVATION_SOFTSIGN: return x / (1 + fabs(x));
  case NX_ACTIVATION_SIGMOID: return logistic(x);
  case NX_ACTIVATION_IDENTITY: return x;
  }
  return NAN;
}

static double gelu_tanh_slope(double x) {
  double t = tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
}

/* The derivative of x logistic(c x). */
static double sigmoid_unit_slope(double x, double c) {
  double s = logistic(c * x);
  return s * (1 + c * x * (1 - s));
}

static double mish_slope(double x) {
  double t = tanh_of_softplus(x);
  return t + x * (1 - t * t) * logistic(x);
}

static double slope_of(nx_activation function, double x) {
  switch (function) {
  case NX_ACTIVATION_GELU:
    return 0.5 * (1 + erf(x * SQRT_HALF)) + x * INVERSE_SQRT_2_PI * exp(-0.5 * x * x);
  case NX_ACTIVATION_GELU_TANH: return gelu_tanh_slope(x);
  case NX_ACTIVATION_RELU: return x > 0 ? 1 : 0;
  case NX_ACTIVATION_SQUARED_RELU: return x > 0 ? 2 * x : 0;
  case NX_ACTIVATION_SILU: return sigmoid_unit_slope(x, 1);
  case NX_ACTIVATION_QUICK_GELU: return sigmoid_unit_slope(x, QUICK);
  case NX_ACTIVATION_MISH: return mish_slope(x);
  case NX_ACTIVATION_SOFTSIGN: return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
  case NX_ACTIVATION_SIGMOID: return logistic(x) * logistic(-x);
  case NX_ACTIVATION_IDENTITY: return 1;
  }
  return NAN;
}

static nx_activation function_of(const ref_call *call) {
  return (nx_activation)ref_int(call, NX_activation_function);
}

/* Where the halves of a feature stand, and what they are; `*_moves`: 0 where a limit holds it. */
typedef struct gate {
  int64_t at_gate, at_up;
  double gate, up, gate_moves, up_moves;
} gate;

static gate gate_of(const ref_call *call, const ref_operand *x, int64_t i) {
  int64_t width = ref_last_dim(x) / 2, row = i / width * 2 * width, column = i % width;
  bool in_turn = ref_int(call, NX_gated_interleaved);
  double limit = ref_real(call, NX_gated_limit);
  gate g = {.at_gate = row + (in_turn ? 2 * column : column), .gate_moves = 1, .up_moves = 1};
  g.at_up = in_turn ? g.at_gate + 1 : g.at_gate + width;
  g.gate = ref_load(x, g.at_gate), g.up = ref_load(x, g.at_up);
  if (limit > 0 && g.gate > limit) g.gate = limit, g.gate_moves = 0;
  if (limit > 0 && fabs(g.up) > limit) g.up = g.up < 0 ? -limit : limit, g.up_moves = 0;
  g.up += ref_real(call, NX_gated_offset);
  return g;
}

void ref_row_gate(const ref_call *call) {
  ref_operand x = ref_in(call, 0), g = ref_in(call, 1), y = ref_out(call, 0);
  int64_t n = ref_last_dim(&x) / ref_last_dim(&g);
  for (int64_t i = 0; i < y.n_elements; i++)
    ref_store(&y, i, ref_load(&x, i) * logistic(ref_load(&g, i / n)));
}

void ref_row_gate_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), x = ref_in(call, 1), g = ref_in(call, 2);
  ref_operand dx = ref_out(call, 0), dg = ref_out(call, 1);
  int64_t n = ref_last_dim(&x) / ref_last_dim(&g);
  for (int64_t row = 0; row < g.n_elements; row++) {
    double share = logistic(ref_load(&g, row)), sum = 0;
    for (int64_t i = row * n; i < (row + 1) * n; i++) {
      double dyi = ref_load(&dy, i);
      sum += dyi * ref_load(&x, i);
      ref_store(&dx, i, dyi * share);
    }
    ref_store(&dg, row, sum * share * (1 - share));
  }
}

void ref_gated(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) {
    gate g = gate_of(call, &x, i);
    ref_store(&y, i, value_of(function_of(call), g.gate) * g.up);
  }
}

void ref_gated_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), x = ref_in(call, 1), dx = ref_out(call, 0);
  nx_activation function = function_of(call);
  for (int64_t i = 0; i < dy.n_elements; i++) {
    gate g = gate_of(call, &x, i);
    double dyi = ref_load(&dy, i);
    ref_store(&dx, g.at_gate, g.gate_moves * dyi * g.up * slope_of(function, g.gate));
    ref_store(&dx, g.at_up, g.up_moves * dyi * value_of(function, g.gate));
  }
}

void ref_activation(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) ref_store(&y, i, value_of(function_of(call), ref_load(&x, i)));
}

void ref_activation_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), x = ref_in(call, 1), dx = ref_out(call, 0);
  for (int64_t i = 0; i < dx.n_elements; i++)
    ref_store(&dx, i, ref_load(&dy, i) * slope_of(function_of(call), ref_load(&x, i)));
}

void ref_clamp(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  double limit = ref_real(call, NX_clamp_limit);
  for (int64_t i = 0; i < y.n_elements; i++) {
    double value = ref_load(&x, i);
    ref_store(&y, i, fabs(value) > limit ? copysign(limit, value) : value);
  }
}

void ref_clamp_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), x = ref_in(call, 1), dx = ref_out(call, 0);
  double limit = ref_real(call, NX_clamp_grad_limit);
  for (int64_t i = 0; i < dx.n_elements; i++)
    ref_store(&dx, i, fabs(ref_load(&x, i)) > limit ? 0 : ref_load(&dy, i));
}

/* What each element becomes by the random word that its sample, token and feature have. All these operators
 * have their attributes at the same places. */
static void change_randomly(const ref_call *call,
                            double (*changed)(double x, uint32_t word, double attribute)) {
  ref_operand x = ref_in(call, 0), samples = ref_in(call, 1), y = ref_out(call, 0);
  ref_operand places = call->operator->n_in > 2 ? ref_in(call, 2) : samples;
  double attribute = ref_real(call, 0);
  uint32_t tensor_id = (uint32_t)ref_int(call, NX_dropout_tensor_id);
  int64_t seq_start = ref_int(call, NX_dropout_seq_start), first = ref_int(call, NX_dropout_feature_start);
  int64_t width = ref_last_dim(&x), n_batches = samples.n_elements;
  int64_t n_tokens = n_batches && width ? x.n_elements / (n_batches * width) : 0;
  for (int64_t row = 0; row < n_batches * n_tokens; row++) {
    uint64_t sample = (uint64_t)ref_index(&samples, row / n_tokens);
    int64_t place = seq_start + row % n_tokens;
    uint32_t token = (uint32_t)(call->operator->n_in > 2 ? ref_index(&places, place) : place);
    nx_philox words = {{0}};
    for (int64_t col = 0; col < width; col++) {
      int64_t feature = first + col;
      if (col == 0 || feature % 4 == 0)
        words = nx_philox_dropout(call->frame->seed, tensor_id, sample, token, (uint32_t)(feature / 4));
      int64_t at = row * width + col;
      ref_store(&y, at, changed(ref_load(&x, at), words.word[feature % 4], attribute));
    }
  }
}

static double kept(double x, uint32_t word, double probability) {
  return nx_philox_keeps(word, nx_philox_threshold(probability)) ? x * (1 / (1 - probability)) : 0;
}

void ref_dropout(const ref_call *call) {
  change_randomly(call, kept);
}

static double noisy(double x, uint32_t word, double width) {
  return x * (1 + width * ((word + 0.5) / 2147483648.0 - 1));
}

void ref_jitter(const ref_call *call) {
  change_randomly(call, noisy);
}

static double drawn(double x, uint32_t word, double deviation) {
  (void)x;
  return deviation * nx_normal(word);
}

void ref_random_logits(const ref_call *call) {
  change_randomly(call, drawn);
}
