/* SPDX-License-Identifier: Apache-2.0 */
/* add, vote, bias_add, cast, fill, and the boxes and sums that matmul and the collectives use. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/lanes.h"

static bool all_real(const nxk_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->operator.n_in + kernel->operator.n_out; i++)
    if (!cpu_is_real(&kernel->operator.args[i])) return false;
  return true;
}

bool CPU_NAME(cpu_bind_real)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return all_real(kernel);
}

void CPU_NAME(cpu_add)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *a = cpu_in_at(kernel, frame, 0), *b = cpu_in_at(kernel, frame, 1);
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype a_type = cpu_in(kernel, 0)->dtype, b_type = cpu_in(kernel, 1)->dtype,
           y_type = cpu_out(kernel, 0)->dtype;
  int64_t n = nxk_n_elements(cpu_out(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer a_buffer, b_buffer, y_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = vec_chunk_of(start, span.end);
      const float *p = vec_read(a, a_type, start, count, a_buffer),
                  *q = vec_read(b, b_type, start, count, b_buffer);
      float *r = vec_target(y, y_type, start, y_buffer);
#pragma omp simd
      for (int64_t i = 0; i < count; i++) r[i] = p[i] + q[i];
      vec_commit(y, y_type, start, count, r);
    }
  }
}

void CPU_NAME(cpu_vote)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *x = cpu_in_at(kernel, frame, 0);
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype x_type = cpu_in(kernel, 0)->dtype, y_type = cpu_out(kernel, 0)->dtype;
  int64_t n = nxk_n_elements(cpu_out(kernel, 0)), n_threads = kernel->device->n_threads;
  const float share = (float)cpu_real(kernel, NX_vote_share);
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, y_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = vec_chunk_of(start, span.end);
      const float *p = vec_read(x, x_type, start, count, x_buffer);
      float *r = vec_target(y, y_type, start, y_buffer);
#pragma omp simd
      for (int64_t i = 0; i < count; i++) r[i] = p[i] > 0 ? share : p[i] < 0 ? -share : p[i];
      vec_commit(y, y_type, start, count, r);
    }
  }
}

void CPU_NAME(cpu_bias_add)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *x = cpu_in_at(kernel, frame, 0), *b = cpu_in_at(kernel, frame, 1);
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype x_type = cpu_in(kernel, 0)->dtype, b_type = cpu_in(kernel, 1)->dtype,
           y_type = cpu_out(kernel, 0)->dtype;
  int64_t n = cpu_columns(cpu_in(kernel, 0)), n_rows = cpu_rows(cpu_in(kernel, 0));
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, b_buffer, y_buffer;
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++)
      for (int64_t j = 0; j < n; j += VEC_CHUNK) {
        int64_t count = vec_chunk_of(j, n);
        const float *p = vec_read(x, x_type, row * n + j, count, x_buffer);
        const float *q = vec_read(b, b_type, j, count, b_buffer);
        float *r = vec_target(y, y_type, row * n + j, y_buffer);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = p[i] + q[i];
        vec_commit(y, y_type, row * n + j, count, r);
      }
  }
}

/* Gates of a feature each: y = x sigmoid(g), and d, where it is not NULL, y's gradient by g. */
static void gate_features(const float *x, const float *g, const float *dy, float *y, float *d, int64_t n) {
  for (int64_t i = 0; i < n; i += LANES) {
    int64_t left = n - i;
    lanes share = lanes_sigmoid(lanes_first(g, NX_f32, i, left, 0)),
          of_x = lanes_first(x, NX_f32, i, left, 0), from = dy ? lanes_first(dy, NX_f32, i, left, 0) : of_x;
    lanes_keep(y, NX_f32, i, left, from * share);
    if (d) lanes_keep(d, NX_f32, i, left, from * of_x * share * (lanes_of(1) - share));
  }
}

static float gate_share(const void *g, nx_dtype type, int64_t at) {
  float x;
  vec_copy(&x, NX_f32, 0, g, type, at, 1);
  return 1.0F / (1.0F + one_exp(-x));
}

static void row_gate_features(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0), *g = cpu_in(kernel, 1), *y = cpu_out(kernel, 0);
  int64_t n = nxk_n_elements(x), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, g_buffer, y_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t at = span.begin; at < span.end; at += VEC_CHUNK) {
      int64_t count = vec_chunk_of(at, span.end);
      float *r = vec_target(cpu_out_at(kernel, frame, 0), y->dtype, at, y_buffer);
      gate_features(vec_read(cpu_in_at(kernel, frame, 0), x->dtype, at, count, x_buffer),
                    vec_read(cpu_in_at(kernel, frame, 1), g->dtype, at, count, g_buffer), NULL, r, NULL,
                    count);
      vec_commit(cpu_out_at(kernel, frame, 0), y->dtype, at, count, r);
    }
  }
}

static void row_gate_features_grad(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *dy = cpu_in(kernel, 0), *x = cpu_in(kernel, 1), *g = cpu_in(kernel, 2),
                   *dx = cpu_out(kernel, 0), *dg = cpu_out(kernel, 1);
  int64_t n = nxk_n_elements(x), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dy_buffer, x_buffer, g_buffer, dx_buffer, dg_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t at = span.begin; at < span.end; at += VEC_CHUNK) {
      int64_t count = vec_chunk_of(at, span.end);
      float *r = vec_target(cpu_out_at(kernel, frame, 0), dx->dtype, at, dx_buffer),
            *d = vec_target(cpu_out_at(kernel, frame, 1), dg->dtype, at, dg_buffer);
      const float *of_y = vec_read(cpu_in_at(kernel, frame, 0), dy->dtype, at, count, dy_buffer);
      gate_features(vec_read(cpu_in_at(kernel, frame, 1), x->dtype, at, count, x_buffer),
                    vec_read(cpu_in_at(kernel, frame, 2), g->dtype, at, count, g_buffer), of_y, r, d, count);
      vec_commit(cpu_out_at(kernel, frame, 0), dx->dtype, at, count, r);
      vec_commit(cpu_out_at(kernel, frame, 1), dg->dtype, at, count, d);
    }
  }
}

/* Elsewhere a gate is of a run of features, which is here a row. */
void CPU_NAME(cpu_row_gate)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x_tensor = cpu_in(kernel, 0), *g_tensor = cpu_in(kernel, 1),
                   *y_tensor = cpu_out(kernel, 0);
  const void *x = cpu_in_at(kernel, frame, 0), *g = cpu_in_at(kernel, frame, 1);
  void *y = cpu_out_at(kernel, frame, 0);
  int64_t n = cpu_columns(x_tensor) / cpu_columns(g_tensor), n_rows = nxk_n_elements(g_tensor),
          n_threads = kernel->device->n_threads;
  if (n == 1) {
    row_gate_features(kernel, frame);
    return;
  }
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, y_buffer;
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) {
      const float share = gate_share(g, g_tensor->dtype, row);
      for (int64_t at = row * n; at < (row + 1) * n; at += VEC_CHUNK) {
        int64_t count = vec_chunk_of(at, (row + 1) * n);
        const float *p = vec_read(x, x_tensor->dtype, at, count, x_buffer);
        float *r = vec_target(y, y_tensor->dtype, at, y_buffer);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = p[i] * share;
        vec_commit(y, y_tensor->dtype, at, count, r);
      }
    }
  }
}

/* The gradient of a row, and in fp64 the sum that its gate's is made of. */
static double row_gate_grad(const nxk_kernel *kernel, const nxk_frame *frame, int64_t row, float share) {
  const nxk_tensor *dy_tensor = cpu_in(kernel, 0), *x_tensor = cpu_in(kernel, 1),
                   *dx_tensor = cpu_out(kernel, 0);
  const void *dy = cpu_in_at(kernel, frame, 0), *x = cpu_in_at(kernel, frame, 1);
  void *dx = cpu_out_at(kernel, frame, 0);
  vec_buffer dy_buffer, x_buffer, dx_buffer;
  int64_t n = cpu_columns(x_tensor) / cpu_columns(cpu_in(kernel, 2));
  double sum = 0;
  for (int64_t at = row * n; at < (row + 1) * n; at += VEC_CHUNK) {
    int64_t count = vec_chunk_of(at, (row + 1) * n);
    const float *p = vec_read(dy, dy_tensor->dtype, at, count, dy_buffer);
    const float *q = vec_read(x, x_tensor->dtype, at, count, x_buffer);
    float *r = vec_target(dx, dx_tensor->dtype, at, dx_buffer);
    for (int64_t i = 0; i < count; i++) sum += (double)p[i] * (double)q[i];
#pragma omp simd
    for (int64_t i = 0; i < count; i++) r[i] = p[i] * share;
    vec_commit(dx, dx_tensor->dtype, at, count, r);
  }
  return sum;
}

void CPU_NAME(cpu_row_gate_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *g_tensor = cpu_in(kernel, 2), *dg_tensor = cpu_out(kernel, 1);
  const void *g = cpu_in_at(kernel, frame, 2);
  void *dg = cpu_out_at(kernel, frame, 1);
  int64_t n_rows = nxk_n_elements(g_tensor), n_threads = kernel->device->n_threads;
  if (cpu_columns(g_tensor) == cpu_columns(cpu_in(kernel, 1))) {
    row_gate_features_grad(kernel, frame);
    return;
  }
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dg_buffer;
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) {
      const float share = gate_share(g, g_tensor->dtype, row);
      float *d = vec_target(dg, dg_tensor->dtype, row, dg_buffer);
      *d = (float)row_gate_grad(kernel, frame, row, share) * share * (1 - share);
      vec_commit(dg, dg_tensor->dtype, row, 1, d);
    }
  }
}

/* Only the columns are touched where y is x. */
void CPU_NAME(cpu_columns_add)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x_tensor = cpu_in(kernel, 0), *z_tensor = cpu_in(kernel, 1),
                   *y_tensor = cpu_out(kernel, 0);
  const void *x = cpu_in_at(kernel, frame, 0), *z = cpu_in_at(kernel, frame, 1);
  void *y = cpu_out_at(kernel, frame, 0);
  int64_t n = cpu_columns(x_tensor), m = cpu_columns(z_tensor), n_rows = cpu_rows(x_tensor);
  int64_t first = cpu_int(kernel, frame, NX_columns_add_first), n_threads = kernel->device->n_threads;
  float scale = (float)cpu_real(kernel, NX_columns_add_scale);
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, z_buffer, y_buffer;
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) {
      if (x != y) vec_copy(y, y_tensor->dtype, row * n, x, x_tensor->dtype, row * n, n);
      for (int64_t j = 0; j < m; j += VEC_CHUNK) {
        int64_t count = vec_chunk_of(j, m), at = row * n + first + j;
        const float *p = vec_read(x, x_tensor->dtype, at, count, x_buffer);
        const float *q = vec_read(z, z_tensor->dtype, row * m + j, count, z_buffer);
        float *r = vec_target(y, y_tensor->dtype, at, y_buffer);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = p[i] + scale * q[i];
        vec_commit(y, y_tensor->dtype, at, count, r);
      }
    }
  }
}

void CPU_NAME(cpu_columns)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x_tensor = cpu_in(kernel, 0), *y_tensor = cpu_out(kernel, 0);
  const void *x = cpu_in_at(kernel, frame, 0);
  void *y = cpu_out_at(kernel, frame, 0);
  int64_t n = cpu_columns(x_tensor), m = cpu_columns(y_tensor), n_rows = cpu_rows(x_tensor);
  int64_t first = cpu_int(kernel, frame, NX_columns_first), n_threads = kernel->device->n_threads;
  float scale = (float)cpu_real(kernel, NX_columns_scale);
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, y_buffer;
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++)
      for (int64_t j = 0; j < m; j += VEC_CHUNK) {
        int64_t count = vec_chunk_of(j, m);
        const float *p = vec_read(x, x_tensor->dtype, row * n + first + j, count, x_buffer);
        float *r = vec_target(y, y_tensor->dtype, row * m + j, y_buffer);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = scale * p[i];
        vec_commit(y, y_tensor->dtype, row * m + j, count, r);
      }
  }
}

void CPU_NAME(cpu_convert_box)(const nxk_device *device, void *y, nx_dtype y_type, int64_t y_stride,
                               const void *x, nx_dtype x_type, int64_t x_stride, int64_t n_rows,
                               int64_t n_columns) {
  int64_t n_threads = device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++)
      vec_copy(y, y_type, row * y_stride, x, x_type, row * x_stride, n_columns);
  }
}

void CPU_NAME(cpu_cast)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0), *y = cpu_out(kernel, 0);
  int64_t n = nxk_n_elements(y), n_threads = kernel->device->n_threads;
  const void *source = cpu_in_at(kernel, frame, 0);
  void *target = cpu_out_at(kernel, frame, 0);
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    vec_copy(target, y->dtype, span.begin, source, x->dtype, span.begin, span.end - span.begin);
  }
}

bool CPU_NAME(cpu_fill_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_out(kernel, 0)) && kernel->operator.attrs[NX_fill_value].kind == NXK_REAL;
}

typedef struct filling {
  void *y;
  nx_dtype type;
  float value;
  uint16_t narrow; /* the value in a type of two bytes */
} filling;

static void fill_span(const filling *f, int64_t begin, int64_t end) {
  if (f->type == NX_f32) {
#pragma omp simd
    for (int64_t i = begin; i < end; i++) ((float *)f->y)[i] = f->value;
  } else {
#pragma omp simd
    for (int64_t i = begin; i < end; i++) ((uint16_t *)f->y)[i] = f->narrow;
  }
}

/* Past the caches, which else read the memory before it is overwritten. */
static void fill_past(const filling *f, int64_t begin, int64_t end) {
  const int64_t unit = f->type == NX_f32 ? 8 : 16; /* elements of 32 bytes */
  __m256i words = f->type == NX_f32 ? (__m256i)_mm256_set1_ps(f->value) : _mm256_set1_epi16((short)f->narrow);
  int64_t i = begin;
  while (i < end && (uintptr_t)vec_at(f->y, f->type, i) % 32) i++;
  fill_span(f, begin, i);
  for (; i + unit <= end; i += unit) _mm256_stream_si256(vec_at(f->y, f->type, i), words);
  fill_span(f, i, end);
  _mm_sfence();
}

enum { FILL_PAST = 1 << 18 /* elements of a thread, from which on the caches would not keep them */ };

void CPU_NAME(cpu_fill)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *y = cpu_out(kernel, 0);
  float value = (float)cpu_real(kernel, NX_fill_value);
  const filling f = {cpu_out_at(kernel, frame, 0), y->dtype, value,
                     y->dtype == NX_f16 ? nx_f16_from_float(value) : vec_to_bf16(value)};
  int64_t n = nxk_n_elements(y), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    (span.end - span.begin < FILL_PAST ? fill_span : fill_past)(&f, span.begin, span.end);
  }
}

static void sum_chunk(void *y, nx_dtype y_type, const void *const *x, uint32_t n_sources, nx_dtype x_type,
                      int64_t start, int64_t count) {
  vec_buffer sum, buffer;
  memcpy(sum, vec_read(x[0], x_type, start, count, buffer), (size_t)count * sizeof *sum);
  for (uint32_t source = 1; source < n_sources; source++) {
    const float *p = vec_read(x[source], x_type, start, count, buffer);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) sum[i] += p[i];
  }
  vec_copy(y, y_type, start, sum, NX_f32, 0, count);
}

static void sum_span(void *y, nx_dtype y_type, const void *const *x, uint32_t n_sources, nx_dtype x_type,
                     cpu_span span) {
  for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK)
    sum_chunk(y, y_type, x, n_sources, x_type, start, vec_chunk_of(start, span.end));
}

static void sum_f64(double *y, const void *const *x, uint32_t n_sources, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double sum = ((const double *)x[0])[i];
    for (uint32_t source = 1; source < n_sources; source++) sum += ((const double *)x[source])[i];
    y[i] = sum;
  }
}

void CPU_NAME(cpu_sum)(const nxk_device *device, void *y, nx_dtype y_type, const void *const *x,
                       uint32_t n_sources, nx_dtype x_type, uint64_t n_elements) {
  int64_t n = (int64_t)n_elements, n_threads = device->n_threads;
  if (x_type == NX_f64) {
    sum_f64(y, x, n_sources, n);
    return;
  }
  if (n_threads == 1 || n <= VEC_CHUNK) { /* a team, even of one, takes longer than a small sum */
    sum_span(y, y_type, x, n_sources, x_type, (cpu_span){0, n});
    return;
  }
#pragma omp parallel num_threads(n_threads)
  sum_span(y, y_type, x, n_sources, x_type, cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads));
}
