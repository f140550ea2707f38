/* SPDX-License-Identifier: Apache-2.0 */
/* What quantized weights stand for. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"
#include "schema/quantized.h"

/* The attributes of noise stand in the same places of every format. */
typedef struct noise {
  float size; /* 0: none */
  uint32_t tensor_id;
  uint64_t seed, first;
  int64_t step;
} noise;

static noise noise_of(const nxk_kernel *kernel, const nxk_frame *frame, float half_step) {
  noise n = {0};
  if (kernel->operator.n_in < 3) return n;
  return (noise){.size = half_step * (float)cpu_real(kernel, NX_dequantize_nf4_noise),
                 .tensor_id = (uint32_t)cpu_int(kernel, frame, NX_dequantize_nf4_tensor_id),
                 .seed = frame->seed,
                 .first = (uint64_t)cpu_int(kernel, frame, NX_dequantize_nf4_first),
                 .step = *(const int64_t *)cpu_in_at(kernel, frame, 2)};
}

static void add_noise(const noise *n, float *y, int64_t start, int64_t count, float scale) {
  if (n->size <= 0) return;
  for (int64_t i = 0; i < count; i++)
    y[i] += n->size * scale *
            nx_quantization_noise(n->seed, n->tensor_id, n->first + (uint64_t)(start + i), n->step);
}

/* Codes of four bits in blocks of `size`. `high`: bits by which the first code of a byte is shifted. */
typedef struct format {
  const float *values; /* of the sixteen codes */
  int64_t size;
  int high;
  float half_step;
} format;

static inline float scale_at(const void *scales, nx_dtype type, int64_t block) {
  return type == NX_f32 ? ((const float *)scales)[block] : nx_e8m0_decode(((const uint8_t *)scales)[block]);
}

/* The values of a block are its sixteen, scaled once. */
static void dequantize(const nxk_kernel *kernel, const nxk_frame *frame, const format *f) {
  const uint8_t *codes = cpu_in_at(kernel, frame, 0);
  const void *scales = cpu_in_at(kernel, frame, 1);
  void *y = cpu_out_at(kernel, frame, 0);
  nx_dtype type = cpu_out(kernel, 0)->dtype, scale_type = cpu_in(kernel, 1)->dtype;
  const noise n = noise_of(kernel, frame, f->half_step);
  int64_t n_blocks = nxk_n_elements(cpu_in(kernel, 1)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer buffer;
    float values[16];
    cpu_span span = cpu_share(n_blocks, 1, omp_get_thread_num(), n_threads);
    for (int64_t block = span.begin; block < span.end; block++) {
      const uint8_t *from = codes + block * (f->size / 2);
      float *to = vec_target(y, type, block * f->size, buffer), scale = scale_at(scales, scale_type, block);
      for (int i = 0; i < 16; i++) values[i] = f->values[i] * scale;
      for (int64_t i = 0; i < f->size / 2; i++) {
        to[2 * i] = values[from[i] >> f->high & 15];
        to[2 * i + 1] = values[from[i] >> (4 - f->high) & 15];
      }
      add_noise(&n, to, block * f->size, f->size, scale);
      vec_commit(y, type, block * f->size, f->size, to);
    }
  }
}

static bool bind_dequantize(const nxk_kernel *kernel) {
  return cpu_is_real(cpu_out(kernel, 0));
}

bool CPU_NAME(cpu_dequantize_nf4_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return bind_dequantize(kernel);
}

void CPU_NAME(cpu_dequantize_nf4)(const nxk_kernel *kernel, const nxk_frame *frame) {
  dequantize(kernel, frame, &(format){nx_nf4_values, NX_NF4_BLOCK, 4, nx_nf4_noise});
}

bool CPU_NAME(cpu_dequantize_nvfp4_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return bind_dequantize(kernel);
}

void CPU_NAME(cpu_dequantize_nvfp4)(const nxk_kernel *kernel, const nxk_frame *frame) {
  dequantize(kernel, frame, &(format){nx_e2m1_values, NX_NVFP4_BLOCK, 0, nx_e2m1_noise});
}

bool CPU_NAME(cpu_dequantize_mxfp4_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return bind_dequantize(kernel);
}

void CPU_NAME(cpu_dequantize_mxfp4)(const nxk_kernel *kernel, const nxk_frame *frame) {
  dequantize(kernel, frame, &(format){nx_e2m1_values, NX_MXFP4_BLOCK, 0, nx_e2m1_noise});
}

bool CPU_NAME(cpu_dequantize_fp8_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return bind_dequantize(kernel);
}

/* Tile by tile of each row. */
void CPU_NAME(cpu_dequantize_fp8)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const uint8_t *codes = cpu_in_at(kernel, frame, 0);
  const float *scales = cpu_in_at(kernel, frame, 1);
  void *y = cpu_out_at(kernel, frame, 0);
  const nxk_tensor *shape = cpu_out(kernel, 0), *tiles = cpu_in(kernel, 1);
  int64_t columns = cpu_columns(shape), rows = shape->dims[shape->n_dims - 2], n_across = cpu_columns(tiles),
          n_down = tiles->dims[tiles->n_dims - 2], n_threads = kernel->device->n_threads;
  const noise n = noise_of(kernel, frame, nx_e4m3_noise);
  float values[256];
  for (int code = 0; code < 256; code++) values[code] = nx_e4m3_decode((uint8_t)code);
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer buffer;
    cpu_span span = cpu_share(cpu_rows(shape), 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++)
      for (int64_t tile = 0; tile < n_across; tile++) {
        int64_t first = tile * NX_FP8_TILE, start = row * columns + first;
        int64_t count = columns - first < NX_FP8_TILE ? columns - first : NX_FP8_TILE;
        float scale = scales[(row / rows * n_down + row % rows / NX_FP8_TILE) * n_across + tile];
        float *to = vec_target(y, shape->dtype, start, buffer);
        for (int64_t i = 0; i < count; i++) to[i] = values[codes[start + i]] * scale;
        add_noise(&n, to, start, count, scale);
        vec_commit(y, shape->dtype, start, count, to);
      }
  }
}
