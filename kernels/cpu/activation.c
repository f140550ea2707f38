/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, gated or not, and dropout, with their gradients. Elementwise, so any output may be the input
 * it replaces. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"

static const float SQRT_2_OVER_PI = 0.797884560802865F;
static const float CUBIC = 0.044715F;
static const float QUICK = 1.702F;

/* 0.5 (1 + tanh(u)) = sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3): no tanh and no cancellation. */
static inline float gelu_gate(float x) {
  return 1.0F / (1.0F + vec_exp(x * (-2 * SQRT_2_OVER_PI * CUBIC * (x * x) - 2 * SQRT_2_OVER_PI)));
}

static inline float gelu_tanh_slope(float x) {
  float gate = gelu_gate(x), twice = x * (6 * SQRT_2_OVER_PI * CUBIC * (x * x) + 2 * SQRT_2_OVER_PI);
  return gate + gate * (1 - gate) * twice;
}

static inline float normal_cdf(float x) {
  return 0.5F + 0.5F * vec_erf(x * 0.707106781186548F);
}

static inline float gelu_erf_slope(float x) {
  return normal_cdf(x) + x * 0.398942280401433F * vec_exp(-0.5F * x * x);
}

/* The derivative of x sigmoid(c x). */
static inline float sigmoid_unit_slope(float x, float c) {
  float s = vec_sigmoid(c * x);
  return s * (1 + c * x * (1 - s));
}

/* With e = exp(x) and n = e (e + 2): tanh(log(1 + e)) = n / (n + 2), which is 1 in fp32 from 20 on. */
static inline float mish_gate(float x) {
  float e = vec_exp(x > 20 ? 20 : x), n = e * (e + 2);
  return n / (n + 2);
}

static inline float mish_slope(float x) {
  float e = vec_exp(x > 20 ? 20 : x), n = e * (e + 2), gate = n / (n + 2);
  return gate + x * 4 * (n + 1) / ((n + 2) * (n + 2)) * vec_sigmoid(x);
}

/* The functions that follow are inlined with a `function` that is known there, so that loops are vectors. */
#define INLINED static inline __attribute__((always_inline))

INLINED float value_of(nx_activation function, float x) {
  switch (function) {
  case NX_ACTIVATION_GELU: return x * normal_cdf(x);
  case NX_ACTIVATION_GELU_TANH: return x * gelu_gate(x);
  case NX_ACTIVATION_RELU: return x < 0 ? 0 : x;
  case NX_ACTIVATION_SQUARED_RELU: return x < 0 ? 0 : x * x;
  case NX_ACTIVATION_SILU: return x * vec_sigmoid(x);
  case NX_ACTIVATION_QUICK_GELU: return x * vec_sigmoid(QUICK * x);
  case NX_ACTIVATION_MISH: return x * mish_gate(x);
  case NX_ACTIVATION_SOFTSIGN: return x / (1 + __builtin_fabsf(x));
  case NX_ACTIVATION_SIGMOID: return vec_sigmoid(x);
  default: return x;
  }
}

INLINED float slope_of(nx_activation function, float x) {
  float s = 1 + __builtin_fabsf(x);
  switch (function) {
  case NX_ACTIVATION_GELU: return gelu_erf_slope(x);
  case NX_ACTIVATION_GELU_TANH: return gelu_tanh_slope(x);
  case NX_ACTIVATION_RELU: return x > 0 ? 1 : 0;
  case NX_ACTIVATION_SQUARED_RELU: return x > 0 ? 2 * x : 0;
  case NX_ACTIVATION_SILU: return sigmoid_unit_slope(x, 1);
  case NX_ACTIVATION_QUICK_GELU: return sigmoid_unit_slope(x, QUICK);
  case NX_ACTIVATION_MISH: return mish_slope(x);
  case NX_ACTIVATION_SOFTSIGN: return 1 / (s * s);
  case NX_ACTIVATION_SIGMOID: return vec_sigmoid(x) * vec_sigmoid(-x);
  default: return 1;
  }
}

/* One chunk, and what is made of it. */
typedef enum chunk_form { PLAIN, PLAIN_GRAD, GATED, GATED_GRAD } chunk_form;

typedef struct chunk {
  const float *dy, *x, *up; /* x: the gate, where there is one */
  float *y, *dup;           /* y: or dx */
  int64_t n;
} chunk;

INLINED void run_function(chunk_form form, nx_activation function, const chunk *c) {
  const float *dy = c->dy, *x = c->x, *up = c->up;
  float *y = c->y, *dup = c->dup;
  int64_t n = c->n;
  switch (form) {
  case PLAIN:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = value_of(function, x[i]);
    return;
  case PLAIN_GRAD:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = dy[i] * slope_of(function, x[i]);
    return;
  case GATED:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = value_of(function, x[i]) * up[i];
    return;
  case GATED_GRAD:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
      float z = x[i], u = up[i], d = dy[i];
      dup[i] = d * value_of(function, z);
      y[i] = d * u * slope_of(function, z);
    }
  }
}

INLINED void run_form(chunk_form form, nx_activation function, const chunk *c) {
  switch (function) {
  case NX_ACTIVATION_GELU: run_function(form, NX_ACTIVATION_GELU, c); return;
  case NX_ACTIVATION_GELU_TANH: run_function(form, NX_ACTIVATION_GELU_TANH, c); return;
  case NX_ACTIVATION_RELU: run_function(form, NX_ACTIVATION_RELU, c); return;
  case NX_ACTIVATION_SQUARED_RELU: run_function(form, NX_ACTIVATION_SQUARED_RELU, c); return;
  case NX_ACTIVATION_SILU: run_function(form, NX_ACTIVATION_SILU, c); return;
  case NX_ACTIVATION_QUICK_GELU: run_function(form, NX_ACTIVATION_QUICK_GELU, c); return;
  case NX_ACTIVATION_MISH: run_function(form, NX_ACTIVATION_MISH, c); return;
  case NX_ACTIVATION_SOFTSIGN: run_function(form, NX_ACTIVATION_SOFTSIGN, c); return;
  case NX_ACTIVATION_SIGMOID: run_function(form, NX_ACTIVATION_SIGMOID, c); return;
  case NX_ACTIVATION_IDENTITY: run_function(form, NX_ACTIVATION_IDENTITY, c); return;
  }
}

static nx_activation function_of(const nxk_kernel *kernel, const nxk_frame *frame) {
  return (nx_activation)cpu_int(kernel, frame, NX_activation_function);
}

void CPU_NAME(cpu_activation)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *x = cpu_in_at(kernel, frame, 0);
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype x_type = cpu_in(kernel, 0)->dtype, y_type = cpu_out(kernel, 0)->dtype;
  nx_activation function = function_of(kernel, frame);
  int64_t n = nxk_n_elements(cpu_out(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, y_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = vec_chunk_of(start, span.end);
      chunk c = {.x = vec_read(x, x_type, start, count, x_buffer),
                 .y = vec_target(y, y_type, start, y_buffer),
                 .n = count};
      run_form(PLAIN, function, &c);
      vec_commit(y, y_type, start, count, c.y);
    }
  }
}

void CPU_NAME(cpu_activation_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *dy = cpu_in_at(kernel, frame, 0), *x = cpu_in_at(kernel, frame, 1);
  void *dx = cpu_out_at(kernel, frame, 0);
  nx_dtype dy_type = cpu_in(kernel, 0)->dtype, x_type = cpu_in(kernel, 1)->dtype,
           dx_type = cpu_out(kernel, 0)->dtype;
  nx_activation function = function_of(kernel, frame);
  int64_t n = nxk_n_elements(cpu_out(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dy_buffer, x_buffer, dx_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = vec_chunk_of(start, span.end);
      chunk c = {.dy = vec_read(dy, dy_type, start, count, dy_buffer),
                 .x = vec_read(x, x_type, start, count, x_buffer),
                 .y = vec_target(dx, dx_type, start, dx_buffer),
                 .n = count};
      run_form(PLAIN_GRAD, function, &c);
      vec_commit(dx, dx_type, start, count, c.y);
    }
  }
}

/* What else is done to the halves before their product, and where they stand (ops.def). */
typedef struct halves {
  float limit, offset;
  bool in_turn, plain; /* plain: nothing is, and one half stands behind the other */
} halves;

static halves halves_of(const nxk_kernel *kernel) {
  const nxk_attr *a = kernel->operator.attrs;
  halves h = {(float)a[NX_gated_limit].real, (float)a[NX_gated_offset].real,
              a[NX_gated_interleaved].integer != 0, false};
  h.plain = h.limit == 0 && h.offset == 0 && !h.in_turn;
  return h;
}

/* The halves of a chunk as they are stored, and bounded, with the offset. */
typedef struct halves_chunk {
  vec_buffer gate, up, bounded_gate, bounded_up, dgate, dup;
} halves_chunk;

/* n features of a row from `column` on; `row` is the row's first element. */
static void halves_read(const halves *h, const void *x, nx_dtype type, int64_t row, int64_t width,
                        int64_t column, int64_t n, halves_chunk *c) {
  if (h->in_turn) {
    float pairs[2 * VEC_CHUNK];
    vec_copy(pairs, NX_f32, 0, x, type, row + 2 * column, 2 * n);
    for (int64_t i = 0; i < n; i++) c->gate[i] = pairs[2 * i], c->up[i] = pairs[2 * i + 1];
  } else {
    vec_copy(c->gate, NX_f32, 0, x, type, row + column, n);
    vec_copy(c->up, NX_f32, 0, x, type, row + width + column, n);
  }
  float most = h->limit > 0 ? h->limit : INFINITY;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float gate = c->gate[i], up = c->up[i];
    up = up > most ? most : up;
    up = up < -most ? -most : up;
    c->bounded_gate[i] = gate > most ? most : gate;
    c->bounded_up[i] = up + h->offset;
  }
}

/* Gradients by the bounded halves become those by the stored ones, and are stored where these stand. */
static void halves_write(const halves *h, void *dx, nx_dtype type, int64_t row, int64_t width, int64_t column,
                         int64_t n, halves_chunk *c) {
  float most = h->limit > 0 ? h->limit : INFINITY;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    c->dgate[i] = c->gate[i] > most ? 0.0F : c->dgate[i];
    c->dup[i] = c->up[i] > most || c->up[i] < -most ? 0.0F : c->dup[i];
  }
  if (h->in_turn) {
    float pairs[2 * VEC_CHUNK];
    for (int64_t i = 0; i < n; i++) pairs[2 * i] = c->dgate[i], pairs[2 * i + 1] = c->dup[i];
    vec_copy(dx, type, row + 2 * column, pairs, NX_f32, 0, 2 * n);
  } else {
    vec_copy(dx, type, row + column, c->dgate, NX_f32, 0, n);
    vec_copy(dx, type, row + width + column, c->dup, NX_f32, 0, n);
  }
}

/* Work on x[T,2F] is split by chunks of a row's F columns: chunk i is columns of row i / n_pieces. */
typedef struct gated {
  int64_t n_columns, n_pieces, n_chunks;
} gated;

static gated gated_of(const nxk_tensor *half) {
  int64_t n_columns = cpu_columns(half), n_pieces = (n_columns + VEC_CHUNK - 1) / VEC_CHUNK;
  return (gated){n_columns, n_pieces, n_pieces * cpu_rows(half)};
}

void CPU_NAME(cpu_gated)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *x = cpu_in_at(kernel, frame, 0);
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype x_type = cpu_in(kernel, 0)->dtype, y_type = cpu_out(kernel, 0)->dtype;
  nx_activation function = function_of(kernel, frame);
  gated shape = gated_of(cpu_out(kernel, 0));
  halves form = halves_of(kernel);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer gate_buffer, up_buffer, y_buffer;
    halves_chunk room;
    cpu_span span = cpu_share(shape.n_chunks, 1, omp_get_thread_num(), n_threads);
    for (int64_t i = span.begin; i < span.end; i++) {
      int64_t row = i / shape.n_pieces, j = i % shape.n_pieces * VEC_CHUNK;
      int64_t count = vec_chunk_of(j, shape.n_columns), at = row * 2 * shape.n_columns + j;
      if (!form.plain) {
        halves_read(&form, x, x_type, row * 2 * shape.n_columns, shape.n_columns, j, count, &room);
        float *target = vec_target(y, y_type, row * shape.n_columns + j, y_buffer);
        run_form(GATED, function,
                 &(chunk){.x = room.bounded_gate, .up = room.bounded_up, .y = target, .n = count});
        vec_commit(y, y_type, row * shape.n_columns + j, count, target);
        continue;
      }
      chunk c = {.x = vec_read(x, x_type, at, count, gate_buffer),
                 .up = vec_read(x, x_type, at + shape.n_columns, count, up_buffer),
                 .y = vec_target(y, y_type, row * shape.n_columns + j, y_buffer),
                 .n = count};
      run_form(GATED, function, &c);
      vec_commit(y, y_type, row * shape.n_columns + j, count, c.y);
    }
  }
}

void CPU_NAME(cpu_gated_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *dy = cpu_in_at(kernel, frame, 0), *x = cpu_in_at(kernel, frame, 1);
  void *dx = cpu_out_at(kernel, frame, 0);
  nx_dtype dy_type = cpu_in(kernel, 0)->dtype, x_type = cpu_in(kernel, 1)->dtype,
           dx_type = cpu_out(kernel, 0)->dtype;
  nx_activation function = function_of(kernel, frame);
  gated shape = gated_of(cpu_in(kernel, 0));
  halves form = halves_of(kernel);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dy_buffer, gate_buffer, up_buffer, dgate_buffer, dup_buffer;
    halves_chunk room;
    cpu_span span = cpu_share(shape.n_chunks, 1, omp_get_thread_num(), n_threads);
    for (int64_t i = span.begin; i < span.end; i++) {
      int64_t row = i / shape.n_pieces, j = i % shape.n_pieces * VEC_CHUNK;
      int64_t count = vec_chunk_of(j, shape.n_columns), at = row * 2 * shape.n_columns + j;
      if (!form.plain) {
        int64_t begin = row * 2 * shape.n_columns;
        halves_read(&form, x, x_type, begin, shape.n_columns, j, count, &room);
        const chunk c = {.dy = vec_read(dy, dy_type, row * shape.n_columns + j, count, dy_buffer),
                         .x = room.bounded_gate,
                         .up = room.bounded_up,
                         .y = room.dgate,
                         .dup = room.dup,
                         .n = count};
        run_form(GATED_GRAD, function, &c);
        halves_write(&form, dx, dx_type, begin, shape.n_columns, j, count, &room);
        continue;
      }
      chunk c = {.dy = vec_read(dy, dy_type, row * shape.n_columns + j, count, dy_buffer),
                 .x = vec_read(x, x_type, at, count, gate_buffer),
                 .up = vec_read(x, x_type, at + shape.n_columns, count, up_buffer),
                 .y = vec_target(dx, dx_type, at, dgate_buffer),
                 .dup = vec_target(dx, dx_type, at + shape.n_columns, dup_buffer),
                 .n = count};
      run_form(GATED_GRAD, function, &c);
      vec_commit(dx, dx_type, at, count, c.y);
      vec_commit(dx, dx_type, at + shape.n_columns, count, c.dup);
    }
  }
}

/* One chunk of a row: features [feature, feature + count) of the logical row. */
static void dropout_chunk(const float *x, float *y, int64_t count, const uint32_t *words, uint32_t threshold,
                          float scale) {
#pragma omp simd
  for (int64_t i = 0; i < count; i++) y[i] = words[i] >= threshold ? x[i] * scale : 0.0F;
}

bool CPU_NAME(cpu_dropout_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_is_real(cpu_out(kernel, 0));
}

void CPU_NAME(cpu_dropout)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *shape = cpu_in(kernel, 0);
  const void *x = cpu_in_at(kernel, frame, 0);
  const int64_t *samples = cpu_in_at(kernel, frame, 1);
  const int32_t *places = kernel->operator.n_in > 2 ? cpu_in_at(kernel, frame, 2) : NULL;
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype x_type = shape->dtype, y_type = cpu_out(kernel, 0)->dtype;
  double p = cpu_real(kernel, NX_dropout_probability);
  uint32_t threshold = nx_philox_threshold(p),
           tensor_id = (uint32_t)cpu_int(kernel, frame, NX_dropout_tensor_id);
  float scale = (float)(1 / (1 - p));
  int64_t token0 = cpu_int(kernel, frame, NX_dropout_seq_start);
  int64_t feature0 = cpu_int(kernel, frame, NX_dropout_feature_start);
  int64_t n_rows = shape->dims[0] * shape->dims[1], n = shape->dims[2], n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, y_buffer;
    uint32_t words[VEC_CHUNK + 8];
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) {
      uint64_t sample = (uint64_t)samples[row / shape->dims[1]];
      int64_t place = token0 + row % shape->dims[1];
      uint32_t token = (uint32_t)(places ? places[place] : place);
      for (int64_t j = 0; j < n; j += VEC_CHUNK) {
        int64_t count = vec_chunk_of(j, n), feature = feature0 + j, lead = feature % 4;
        vec_philox(words, (lead + count + 3) / 4, frame->seed, tensor_id, (uint32_t)(feature / 4), token,
                   (uint32_t)sample, (uint32_t)(sample >> 32));
        const float *source = vec_read(x, x_type, row * n + j, count, x_buffer);
        float *target = vec_target(y, y_type, row * n + j, y_buffer);
        dropout_chunk(source, target, count, words + lead, threshold, scale);
        vec_commit(y, y_type, row * n + j, count, target);
      }
    }
  }
}
