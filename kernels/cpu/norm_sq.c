/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of squares that clipping needs: one pass over memory. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"
#include "schema/workspace.h"

/* A thread takes whole blocks, so the sum depends on nothing but the elements. */
bool CPU_NAME(cpu_norm_sq_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_reserve_said(kernel, fault);
}

static double block_square(const void *x, nx_dtype type, int64_t begin, int64_t end) {
  vec_buffer buffer;
  double sum = 0;
  for (int64_t start = begin; start < end; start += VEC_CHUNK) {
    int64_t count = vec_chunk_of(start, end);
    const float *p = vec_read(x, type, start, count, buffer);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) sum += (double)p[i] * (double)p[i];
  }
  return sum;
}

void CPU_NAME(cpu_norm_sq)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0);
  const void *source = cpu_in_at(kernel, frame, 0);
  double *result = cpu_out_at(kernel, frame, 0), total = 0;
  double *blocks = (double *)kernel->device->scratch;
  int64_t weight = cpu_int(kernel, frame, NX_norm_sq_weight);
  int64_t n = weight ? nxk_n_elements(x) : 0, n_blocks = (n + NX_CPU_BLOCK - 1) / NX_CPU_BLOCK;
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n_blocks, 1, omp_get_thread_num(), n_threads);
    for (int64_t block = span.begin; block < span.end; block++) {
      int64_t begin = block * NX_CPU_BLOCK, end = begin + NX_CPU_BLOCK < n ? begin + NX_CPU_BLOCK : n;
      blocks[block] = block_square(source, x->dtype, begin, end);
    }
  }
  for (int64_t block = 0; block < n_blocks; block++) total += blocks[block];
  *result = (cpu_int(kernel, frame, NX_norm_sq_accumulate) ? *result : 0) + (double)weight * total;
}
