/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW, SGD and the sum of squares that clipping needs: one pass over memory each. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"

/* A thread takes whole blocks, so the sum depends on nothing but the elements. */
enum { NORM_BLOCK = 16384 };

bool CPU_NAME(cpu_norm_sq_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  uint64_t n_blocks = (uint64_t)(nxk_n_elements(cpu_in(kernel, 0)) + NORM_BLOCK - 1) / NORM_BLOCK;
  return cpu_is_real(cpu_in(kernel, 0)) &&
         cpu_reserve(kernel->device, n_blocks * sizeof(double), "norm_sq", fault);
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
  int64_t n = weight ? nxk_n_elements(x) : 0, n_blocks = (n + NORM_BLOCK - 1) / NORM_BLOCK;
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n_blocks, 1, omp_get_thread_num(), n_threads);
    for (int64_t block = span.begin; block < span.end; block++) {
      int64_t begin = block * NORM_BLOCK, end = begin + NORM_BLOCK < n ? begin + NORM_BLOCK : n;
      blocks[block] = block_square(source, x->dtype, begin, end);
    }
  }
  for (int64_t block = 0; block < n_blocks; block++) total += blocks[block];
  *result = (cpu_int(kernel, frame, NX_norm_sq_accumulate) ? *result : 0) + (double)weight * total;
}

/* The numbers of one step, the same for every element. */
typedef struct adamw_step {
  float scale, beta1, beta2, rest1, rest2, decay, rate, root, epsilon;
} adamw_step;

static adamw_step step_of(const nxk_kernel *kernel, const nxk_frame *frame) {
  double lr = *(const double *)cpu_in_at(kernel, frame, 4),
         scale = *(const double *)cpu_in_at(kernel, frame, 5);
  double step = (double)*(const int64_t *)cpu_in_at(kernel, frame, 6) + 1;
  double beta1 = cpu_real(kernel, NX_adamw_beta1), beta2 = cpu_real(kernel, NX_adamw_beta2);
  return (adamw_step){.scale = (float)scale,
                      .beta1 = (float)beta1,
                      .beta2 = (float)beta2,
                      .rest1 = (float)(1 - beta1),
                      .rest2 = (float)(1 - beta2),
                      .decay = (float)(1 - lr * cpu_real(kernel, NX_adamw_weight_decay)),
                      .rate = (float)(lr / (1 - pow(beta1, step))),
                      .root = (float)(1 / sqrt(1 - pow(beta2, step))),
                      .epsilon = (float)cpu_real(kernel, NX_adamw_epsilon)};
}

typedef struct adamw_args {
  void *p, *m, *v, *copy; /* copy may be NULL */
  const void *g;
  nx_dtype p_type, m_type, v_type, g_type, copy_type;
} adamw_args;

static void adamw_chunk(const adamw_args *a, const adamw_step *s, int64_t start, int64_t count) {
  vec_buffer p_buffer, m_buffer, v_buffer, g_buffer;
  float *p = (float *)vec_read(a->p, a->p_type, start, count, p_buffer);
  float *m = (float *)vec_read(a->m, a->m_type, start, count, m_buffer);
  float *v = (float *)vec_read(a->v, a->v_type, start, count, v_buffer);
  const float *g = vec_read(a->g, a->g_type, start, count, g_buffer);
  adamw_step k = *s;
#pragma omp simd
  for (int64_t i = 0; i < count; i++) {
    float gradient = g[i] * k.scale;
    float first = k.beta1 * m[i] + k.rest1 * gradient;
    float second = k.beta2 * v[i] + k.rest2 * (gradient * gradient);
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * k.decay - k.rate * (first / (__builtin_sqrtf(second) * k.root + k.epsilon));
  }
  vec_commit(a->p, a->p_type, start, count, p);
  vec_commit(a->m, a->m_type, start, count, m);
  vec_commit(a->v, a->v_type, start, count, v);
  if (!a->copy) return;
  if (a->copy_type == NX_bf16) vec_narrow((uint16_t *)a->copy + start, p, count);
  else memcpy((float *)a->copy + start, p, (size_t)count * sizeof *p);
}

void CPU_NAME(cpu_adamw)(const nxk_kernel *kernel, const nxk_frame *frame) {
  bool has_copy = kernel->operator.n_out> 3;
  adamw_args a = {.p = cpu_out_at(kernel, frame, 0),
                  .m = cpu_out_at(kernel, frame, 1),
                  .v = cpu_out_at(kernel, frame, 2),
                  .copy = has_copy ? cpu_out_at(kernel, frame, 3) : NULL,
                  .g = cpu_in_at(kernel, frame, 3),
                  .p_type = cpu_out(kernel, 0)->dtype,
                  .m_type = cpu_out(kernel, 1)->dtype,
                  .v_type = cpu_out(kernel, 2)->dtype,
                  .g_type = cpu_in(kernel, 3)->dtype,
                  .copy_type = has_copy ? cpu_out(kernel, 3)->dtype : NX_f32};
  adamw_step step = step_of(kernel, frame);
  int64_t n = nxk_n_elements(cpu_in(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK)
      adamw_chunk(&a, &step, start, vec_chunk_of(start, span.end));
  }
}

bool CPU_NAME(cpu_adamw_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  for (uint32_t i = 0; i < 4; i++)
    if (!cpu_is_real(cpu_in(kernel, i))) return false;
  for (uint32_t i = 0; i < kernel->operator.n_out; i++)
    if (!cpu_is_real(cpu_out(kernel, i))) return false;
  return true;
}

bool CPU_NAME(cpu_sgd_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_is_real(cpu_in(kernel, 1)) &&
         cpu_is_real(cpu_out(kernel, 0)) && (kernel->operator.n_out<2 || cpu_is_real(cpu_out(kernel, 1)));
}

void CPU_NAME(cpu_sgd)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *p_shape = cpu_out(kernel, 0), *g_shape = cpu_in(kernel, 1);
  void *params = cpu_out_at(kernel, frame, 0), *copy = NULL;
  const void *gradients = cpu_in_at(kernel, frame, 1);
  float lr = (float)*(const double *)cpu_in_at(kernel, frame, 2);
  float scale = (float)*(const double *)cpu_in_at(kernel, frame, 3),
        decay = (float)cpu_real(kernel, NX_sgd_weight_decay);
  nx_dtype copy_type = NX_f32;
  if (kernel->operator.n_out> 1) copy = cpu_out_at(kernel, frame, 1), copy_type = cpu_out(kernel, 1)->dtype;
  int64_t n = nxk_n_elements(p_shape), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer p_buffer, g_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = vec_chunk_of(start, span.end);
      float *p = (float *)vec_read(params, p_shape->dtype, start, count, p_buffer);
      const float *g = vec_read(gradients, g_shape->dtype, start, count, g_buffer);
#pragma omp simd
      for (int64_t i = 0; i < count; i++) p[i] -= lr * (g[i] * scale + decay * p[i]);
      vec_commit(params, p_shape->dtype, start, count, p);
      if (copy && copy_type == NX_bf16) vec_narrow((uint16_t *)copy + start, p, count);
      else if (copy) memcpy((float *)copy + start, p, (size_t)count * sizeof *p);
    }
  }
}
