/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout, which is its own gradient: what is kept hangs on the place of an element alone. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"

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
