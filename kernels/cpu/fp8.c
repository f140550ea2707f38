/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to fp8, and the maxima that its scales follow. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"
#include "schema/fp8.h"

/* The greatest magnitude by its bits: a NaN's are above all others'. */
static uint32_t greatest_bits(const float *x, int64_t n, uint32_t most) {
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits = vec_bits(x[i]) & UINT32_C(0x7FFFFFFF);
    most = bits > most ? bits : most;
  }
  return most;
}

void CPU_NAME(cpu_fp8_amax)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const void *x = cpu_in_at(kernel, frame, 0);
  float *y = cpu_out_at(kernel, frame, 0);
  nx_dtype type = cpu_in(kernel, 0)->dtype;
  int64_t n = nxk_n_elements(cpu_in(kernel, 0)), n_threads = kernel->device->n_threads;
  uint32_t most = 0;
#pragma omp parallel num_threads(n_threads) reduction(max : most)
  {
    vec_buffer buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = vec_chunk_of(start, span.end);
      most = greatest_bits(vec_read(x, type, start, count, buffer), count, most);
    }
  }
  *y = vec_float(most);
}

typedef struct rounding {
  const void *x;
  void *y;
  nx_dtype x_type, y_type;
  int64_t rows, columns, block_rows, block_columns;
  nx_fp8_row format;
  nx_fp8_scaling scaling;
  int margin;
} rounding;

static inline void round_chunk(const nx_fp8_row *format, const float *x, const float *up, const float *down,
                               float *y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = nx_fp8_round(format, x[i] * up[i]) * down[i];
}

static inline void divide_chunk(const nx_fp8_row *format, const float *x, const float *down, float *y,
                                int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = nx_fp8_round(format, x[i] / down[i]) * down[i];
}

/* `n` columns of some rows, whose scales are there. */
static void round_columns(const rounding *r, int64_t row, int64_t n_rows, int64_t column, int64_t n,
                          const float *up, const float *down) {
  vec_buffer x_buffer, y_buffer;
  for (int64_t i = row; i < row + n_rows; i++) {
    const float *x = vec_read(r->x, r->x_type, i * r->columns + column, n, x_buffer);
    float *y = vec_target(r->y, r->y_type, i * r->columns + column, y_buffer);
    if (r->scaling == NX_FP8_SCALE_DIVIDE) divide_chunk(&r->format, x, down, y, n);
    else round_chunk(&r->format, x, up, down, y, n);
    vec_commit(r->y, r->y_type, i * r->columns + column, n, y);
  }
}

/* The scales of each column of a chunk, which begins with a block. */
static void scales_of_columns(const rounding *r, int64_t row, int64_t n_rows, int64_t column, int64_t n,
                              float *up, float *down) {
  vec_buffer most = {0}, buffer;
  for (int64_t i = row; i < row + n_rows; i++) {
    const float *x = vec_read(r->x, r->x_type, i * r->columns + column, n, buffer);
#pragma omp simd
    for (int64_t j = 0; j < n; j++) most[j] = fabsf(x[j]) > most[j] ? fabsf(x[j]) : most[j];
  }
  for (int64_t block = 0; block < n; block += r->block_columns) {
    int64_t end = block + r->block_columns < n ? block + r->block_columns : n;
    float of_block = 0;
    for (int64_t j = block; j < end; j++) of_block = most[j] > of_block ? most[j] : of_block;
    nx_fp8_scale scale = nx_fp8_scale_of(r->scaling, &r->format, of_block, r->margin);
    for (int64_t j = block; j < end; j++) up[j] = scale.up, down[j] = scale.down;
  }
}

static void round_blocks(const rounding *r, int64_t n_threads) {
  int64_t width = VEC_CHUNK / r->block_columns * r->block_columns;
  int64_t n_across = (r->columns + width - 1) / width, n_down = (r->rows + r->block_rows - 1) / r->block_rows;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer up, down;
    cpu_span span = cpu_share(n_across * n_down, 1, omp_get_thread_num(), n_threads);
    for (int64_t at = span.begin; at < span.end; at++) {
      int64_t row = at / n_across * r->block_rows, column = at % n_across * width;
      int64_t n_rows = r->rows - row < r->block_rows ? r->rows - row : r->block_rows;
      int64_t n = r->columns - column < width ? r->columns - column : width;
      scales_of_columns(r, row, n_rows, column, n, up, down);
      round_columns(r, row, n_rows, column, n, up, down);
    }
  }
}

/* One scale: the matrix is one long row. */
static void round_whole(const rounding *of, const float *maxima, int64_t n_maxima, int64_t n_threads) {
  rounding r = *of;
  float most = 0;
  for (int64_t i = 0; i < n_maxima; i++) most = maxima[i] > most ? maxima[i] : most;
  nx_fp8_scale scale = nx_fp8_scale_of(r.scaling, &r.format, most, r.margin);
  r.columns *= r.rows;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer up, down;
    for (int64_t i = 0; i < VEC_CHUNK; i++) up[i] = scale.up, down[i] = scale.down;
    cpu_span span = cpu_share(r.columns, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK)
      round_columns(&r, 0, 1, start, vec_chunk_of(start, span.end), up, down);
  }
}

bool CPU_NAME(cpu_fp8_round_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_is_real(cpu_out(kernel, 0));
}

void CPU_NAME(cpu_fp8_round)(const nxk_kernel *kernel, const nxk_frame *frame) {
  int64_t n_threads = kernel->device->n_threads;
  rounding r = {.x = cpu_in_at(kernel, frame, 0),
                .y = cpu_out_at(kernel, frame, 0),
                .x_type = cpu_in(kernel, 0)->dtype,
                .y_type = cpu_out(kernel, 0)->dtype,
                .rows = cpu_rows(cpu_in(kernel, 0)),
                .columns = cpu_columns(cpu_in(kernel, 0)),
                .block_rows = cpu_int(kernel, frame, NX_fp8_round_block_rows),
                .block_columns = cpu_int(kernel, frame, NX_fp8_round_block_columns),
                .format = nx_fp8_rows[cpu_int(kernel, frame, NX_fp8_round_format)],
                .scaling = (nx_fp8_scaling)cpu_int(kernel, frame, NX_fp8_round_scaling),
                .margin = (int)cpu_int(kernel, frame, NX_fp8_round_margin)};
  if (r.block_rows > 0) round_blocks(&r, n_threads);
  else round_whole(&r, cpu_in_at(kernel, frame, 1), nxk_n_elements(cpu_in(kernel, 1)), n_threads);
}
