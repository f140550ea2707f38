/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over some keys joined with attention over others: each side weighs as much as the sum of its
 * exponentials, of which lse is the logarithm. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/lanes.h"

/* The weights of the two sides of one row, which sum to 1, and the logarithm of the sum. */
typedef struct merge_row {
  float left, right, lse;
} merge_row;

static merge_row merge_weights(float left, float right) {
  float largest = left > right ? left : right;
  if (largest == -INFINITY) return (merge_row){0, 0, largest};
  float x = one_exp(left - largest), y = one_exp(right - largest);
  return (merge_row){x / (x + y), y / (x + y), (float)((double)largest + log((double)(x + y)))};
}

bool CPU_NAME(cpu_attention_merge_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  const nxk_tensor *lse = cpu_out(kernel, 1);
  const nxk_tensor *a = cpu_in(kernel, 0), *b = cpu_in(kernel, 2), *o = cpu_out(kernel, 0);
  return cpu_is_real(a) && cpu_is_real(b) && cpu_is_real(o) && lse->dtype == NX_f32 &&
         cpu_columns(o) / lse->dims[1] <= VEC_CHUNK;
}

void CPU_NAME(cpu_attention_merge)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *shape = cpu_out(kernel, 1);
  int64_t heads = shape->dims[1], tokens = shape->dims[2], d = cpu_columns(cpu_out(kernel, 0)) / heads;
  const void *a = cpu_in_at(kernel, frame, 0), *b = cpu_in_at(kernel, frame, 2);
  const float *lse_a = cpu_in_at(kernel, frame, 1), *lse_b = cpu_in_at(kernel, frame, 3);
  void *o = cpu_out_at(kernel, frame, 0);
  float *lse = cpu_out_at(kernel, frame, 1);
  nx_dtype a_type = cpu_in(kernel, 0)->dtype, b_type = cpu_in(kernel, 2)->dtype;
  nx_dtype o_type = cpu_out(kernel, 0)->dtype;
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer a_buffer, b_buffer, o_buffer;
    cpu_span span = cpu_share(shape->dims[0] * tokens * heads, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) { /* rows of o: sequence, token, head */
      int64_t at = (row / heads / tokens * heads + row % heads) * tokens + row / heads % tokens;
      merge_row weights = merge_weights(lse_a[at], lse_b[at]);
      const float *left = vec_read(a, a_type, row * d, d, a_buffer);
      const float *right = vec_read(b, b_type, row * d, d, b_buffer);
      float *target = vec_target(o, o_type, row * d, o_buffer);
#pragma omp simd
      for (int64_t j = 0; j < d; j++) target[j] = weights.left * left[j] + weights.right * right[j];
      vec_commit(o, o_type, row * d, d, target);
      lse[at] = weights.lse;
    }
  }
}

/* ---- sinks ---- */

bool CPU_NAME(cpu_attention_sink_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  const nxk_tensor *lse = cpu_in(kernel, 1), *o = cpu_in(kernel, 0);
  return cpu_is_real(o) && cpu_is_real(cpu_out(kernel, 0)) && cpu_is_real(cpu_in(kernel, 2)) &&
         lse->dtype == NX_f32 && cpu_columns(o) / lse->dims[1] <= VEC_CHUNK;
}

/* One more key of this score, whose value is 0: what is read keeps its share of the sum. */
void CPU_NAME(cpu_attention_sink)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *shape = cpu_in(kernel, 1), *o = cpu_in(kernel, 0), *y = cpu_out(kernel, 0);
  int64_t heads = shape->dims[1], tokens = shape->dims[2], d = cpu_columns(o) / heads;
  int64_t first = cpu_int(kernel, frame, NX_attention_sink_first), n_threads = kernel->device->n_threads;
  const void *source = cpu_in_at(kernel, frame, 0), *sinks = cpu_in_at(kernel, frame, 2);
  const float *lse = cpu_in_at(kernel, frame, 1);
  void *target = cpu_out_at(kernel, frame, 0);
  float *all = cpu_out_at(kernel, frame, 1);
  nx_dtype sink_type = cpu_in(kernel, 2)->dtype;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer o_buffer, y_buffer;
    cpu_span span = cpu_share(shape->dims[0] * tokens * heads, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) { /* rows of o: sequence, token, head */
      int64_t at = (row / heads / tokens * heads + row % heads) * tokens + row / heads % tokens;
      float sink;
      vec_copy(&sink, NX_f32, 0, sinks, sink_type, first + row % heads, 1);
      merge_row weights = merge_weights(lse[at], sink);
      const float *x = vec_read(source, o->dtype, row * d, d, o_buffer);
      float *z = vec_target(target, y->dtype, row * d, y_buffer);
#pragma omp simd
      for (int64_t j = 0; j < d; j++) z[j] = weights.left * x[j];
      vec_commit(target, y->dtype, row * d, d, z);
      all[at] = weights.lse;
    }
  }
}
