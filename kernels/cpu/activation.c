/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU, GELU and dropout, with their gradients. Elementwise, so any output may be the input it replaces. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"

static const float SQRT_2_OVER_PI = 0.797884560802865F;
static const float CUBIC = 0.044715F;

/* 0.5 (1 + tanh(u)) = sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3): no tanh and no cancellation. */
static inline float gelu_gate(float x) {
  return vec_sigmoid(2 * SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
}

static inline float gelu_tanh_slope(float x) {
  float gate = gelu_gate(x);
  return gate + x * gate * (1 - gate) * 2 * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
}

static inline float normal_cdf(float x) {
  return 0.5F + 0.5F * vec_erf(x * 0.707106781186548F);
}

static inline float gelu_erf_slope(float x) {
  return normal_cdf(x) + x * 0.398942280401433F * vec_exp(-0.5F * x * x);
}

void CPU_NAME(cpu_gelu)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *x = cpu_in_at(kernel, frame, 0);
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype x_type = cpu_in(kernel, 0)->dtype, y_type = cpu_out(kernel, 0)->dtype;
  bool tanh_form = cpu_int(kernel, frame, NX_gelu_tanh);
  int64_t n = nxk_n_elements(cpu_out(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, y_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = vec_chunk_of(start, span.end);
      const float *p = vec_read(x, x_type, start, count, x_buffer);
      float *r = vec_target(y, y_type, start, y_buffer);
      if (tanh_form) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = p[i] * gelu_gate(p[i]);
      } else {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = p[i] * normal_cdf(p[i]);
      }
      vec_commit(y, y_type, start, count, r);
    }
  }
}

void CPU_NAME(cpu_gelu_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *dy = cpu_in_at(kernel, frame, 0), *x = cpu_in_at(kernel, frame, 1);
  void *dx = cpu_out_at(kernel, frame, 0);
  nx_dtype dy_type = cpu_in(kernel, 0)->dtype, x_type = cpu_in(kernel, 1)->dtype,
           dx_type = cpu_out(kernel, 0)->dtype;
  bool tanh_form = cpu_int(kernel, frame, NX_gelu_grad_tanh);
  int64_t n = nxk_n_elements(cpu_out(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dy_buffer, x_buffer, dx_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = vec_chunk_of(start, span.end);
      const float *d = vec_read(dy, dy_type, start, count, dy_buffer);
      const float *p = vec_read(x, x_type, start, count, x_buffer);
      float *r = vec_target(dx, dx_type, start, dx_buffer);
      if (tanh_form) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = d[i] * gelu_tanh_slope(p[i]);
      } else {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = d[i] * gelu_erf_slope(p[i]);
      }
      vec_commit(dx, dx_type, start, count, r);
    }
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

void CPU_NAME(cpu_swiglu)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *x = cpu_in_at(kernel, frame, 0);
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype x_type = cpu_in(kernel, 0)->dtype, y_type = cpu_out(kernel, 0)->dtype;
  gated shape = gated_of(cpu_out(kernel, 0));
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer gate_buffer, up_buffer, y_buffer;
    cpu_span span = cpu_share(shape.n_chunks, 1, omp_get_thread_num(), n_threads);
    for (int64_t chunk = span.begin; chunk < span.end; chunk++) {
      int64_t row = chunk / shape.n_pieces, j = chunk % shape.n_pieces * VEC_CHUNK;
      int64_t count = vec_chunk_of(j, shape.n_columns), at = row * 2 * shape.n_columns + j;
      const float *gate = vec_read(x, x_type, at, count, gate_buffer);
      const float *up = vec_read(x, x_type, at + shape.n_columns, count, up_buffer);
      float *r = vec_target(y, y_type, row * shape.n_columns + j, y_buffer);
#pragma omp simd
      for (int64_t i = 0; i < count; i++) r[i] = gate[i] * vec_sigmoid(gate[i]) * up[i];
      vec_commit(y, y_type, row * shape.n_columns + j, count, r);
    }
  }
}

void CPU_NAME(cpu_swiglu_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *dy = cpu_in_at(kernel, frame, 0), *x = cpu_in_at(kernel, frame, 1);
  void *dx = cpu_out_at(kernel, frame, 0);
  nx_dtype dy_type = cpu_in(kernel, 0)->dtype, x_type = cpu_in(kernel, 1)->dtype,
           dx_type = cpu_out(kernel, 0)->dtype;
  gated shape = gated_of(cpu_in(kernel, 0));
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dy_buffer, gate_buffer, up_buffer, dgate_buffer, dup_buffer;
    cpu_span span = cpu_share(shape.n_chunks, 1, omp_get_thread_num(), n_threads);
    for (int64_t chunk = span.begin; chunk < span.end; chunk++) {
      int64_t row = chunk / shape.n_pieces, j = chunk % shape.n_pieces * VEC_CHUNK;
      int64_t count = vec_chunk_of(j, shape.n_columns), at = row * 2 * shape.n_columns + j;
      const float *d = vec_read(dy, dy_type, row * shape.n_columns + j, count, dy_buffer);
      const float *gate = vec_read(x, x_type, at, count, gate_buffer);
      const float *up = vec_read(x, x_type, at + shape.n_columns, count, up_buffer);
      float *dgate = vec_target(dx, dx_type, at, dgate_buffer);
      float *dup = vec_target(dx, dx_type, at + shape.n_columns, dup_buffer);
#pragma omp simd
      for (int64_t i = 0; i < count; i++) {
        float s = vec_sigmoid(gate[i]), z = gate[i], u = up[i];
        dup[i] = d[i] * z * s;
        dgate[i] = d[i] * u * s * (1 + z * (1 - s));
      }
      vec_commit(dx, dx_type, at, count, dgate);
      vec_commit(dx, dx_type, at + shape.n_columns, count, dup);
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
