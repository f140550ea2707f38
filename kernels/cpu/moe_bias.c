/* SPDX-License-Identifier: Apache-2.0 */
/* Biases of experts, and their gradients. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"
#include "kernels/moe.h"

/* The expert of a row in its block; -1: none. */
static int64_t expert_of_row(const int32_t *counts, int64_t n_experts, int64_t n_rows, int64_t row) {
  for (int64_t e = 0; e < n_experts; e++) {
    int64_t count = nxk_moe_count(counts[e], n_rows);
    if (row < count) return e;
    row -= count;
  }
  return -1;
}

bool CPU_NAME(cpu_grouped_bias_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_is_real(cpu_in(kernel, 2)) && cpu_is_real(cpu_out(kernel, 0));
}

void CPU_NAME(cpu_grouped_bias)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0), *b = cpu_in(kernel, 2), *y = cpu_out(kernel, 0);
  const void *source = cpu_in_at(kernel, frame, 0), *biases = cpu_in_at(kernel, frame, 2);
  const int32_t *counts = cpu_in_at(kernel, frame, 1);
  void *target = cpu_out_at(kernel, frame, 0);
  float share = (float)cpu_real(kernel, NX_grouped_bias_share);
  int64_t n_experts = cpu_columns(cpu_in(kernel, 1)), width = cpu_columns(x),
          n_threads = kernel->device->n_threads;
  int64_t n_rows = cpu_rows(x) * n_experts / nxk_n_elements(cpu_in(kernel, 1)); /* of a block */
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, b_buffer, y_buffer;
    cpu_span span = cpu_share(cpu_rows(x), 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) {
      int64_t expert = expert_of_row(counts + row / n_rows * n_experts, n_experts, n_rows, row % n_rows);
      for (int64_t start = 0; start < width; start += VEC_CHUNK) {
        int64_t n = vec_chunk_of(start, width);
        const float *p = vec_read(source, x->dtype, row * width + start, n, x_buffer);
        const float *q = expert < 0 ? NULL : vec_read(biases, b->dtype, expert * width + start, n, b_buffer);
        float *z = vec_target(target, y->dtype, row * width + start, y_buffer);
        for (int64_t i = 0; q == NULL && i < n; i++) z[i] = p[i];
#pragma omp simd
        for (int64_t i = 0; i < (q ? n : 0); i++) z[i] = p[i] + share * q[i];
        vec_commit(target, y->dtype, row * width + start, n, z);
      }
    }
  }
}

bool CPU_NAME(cpu_grouped_bias_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_is_real(cpu_out(kernel, 0));
}

/* Columns [j, j + count) of the rows of an expert in all blocks, added up. */
static void expert_sum(const nxk_kernel *kernel, const nxk_frame *frame, int64_t expert, int64_t j,
                       int64_t count, float *sum) {
  const nxk_tensor *dy = cpu_in(kernel, 0), *is = cpu_in(kernel, 1);
  const void *rows = cpu_in_at(kernel, frame, 0);
  const int32_t *counts = cpu_in_at(kernel, frame, 1);
  int64_t n_experts = cpu_columns(is), n_blocks = cpu_rows(is), n = cpu_rows(dy) / n_blocks;
  vec_buffer buffer;
  memset(sum, 0, (size_t)count * sizeof *sum);
  for (int64_t block = 0; block < n_blocks; block++, counts += n_experts) {
    int64_t row = block * n, end = row + n;
    for (int64_t e = 0; e < expert; e++) row += nxk_moe_count(counts[e], end - row);
    end = row + nxk_moe_count(counts[expert], end - row);
    for (; row < end; row++) {
      const float *p = vec_read(rows, dy->dtype, row * cpu_columns(dy) + j, count, buffer);
#pragma omp simd
      for (int64_t i = 0; i < count; i++) sum[i] += p[i];
    }
  }
}

/* A thread has some columns of all experts. */
void CPU_NAME(cpu_grouped_bias_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *db = cpu_out(kernel, 0);
  void *y = cpu_out_at(kernel, frame, 0);
  float share = (float)cpu_real(kernel, NX_grouped_bias_grad_share);
  bool adds = cpu_int(kernel, frame, NX_grouped_bias_grad_accumulate);
  int64_t width = cpu_columns(cpu_in(kernel, 0)), n_experts = cpu_columns(cpu_in(kernel, 1)),
          n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer sum, buffer, written;
    cpu_span span = cpu_share(width, 16, omp_get_thread_num(), n_threads);
    for (int64_t e = 0; e < n_experts; e++)
      for (int64_t j = span.begin; j < span.end; j += VEC_CHUNK) {
        int64_t count = vec_chunk_of(j, span.end), at = e * width + j;
        expert_sum(kernel, frame, e, j, count, sum);
        const float *old = vec_read(y, db->dtype, at, count, buffer);
        for (int64_t i = 0; i < count; i++) written[i] = (adds ? old[i] : 0) + share * sum[i];
        vec_copy(y, db->dtype, at, written, NX_f32, 0, count);
      }
  }
}
