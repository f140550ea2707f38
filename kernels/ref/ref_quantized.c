/* SPDX-License-Identifier: Apache-2.0 */
/* What quantized weights stand for. */
#include "kernels/ref/ref.h"
#include "schema/quantized.h"

/* The attributes are those of every format (NOISE), in the same places. */
static void store(const ref_call *call, const ref_operand *y, int64_t i, float value, float scale,
                  float half_step) {
  float w = value * scale;
  double noise = ref_real(call, NX_dequantize_nf4_noise);
  if (call->operator->n_in == 3 && noise > 0) {
    ref_operand step = ref_in(call, 2);
    uint64_t element = (uint64_t)(ref_int(call, NX_dequantize_nf4_first) + i);
    uint32_t tensor_id = (uint32_t)ref_int(call, NX_dequantize_nf4_tensor_id);
    w += (float)noise * half_step * scale *
         nx_quantization_noise(call->frame->seed, tensor_id, element, ref_index(&step, 0));
  }
  ref_store(y, i, (double)w);
}

void ref_dequantize_nf4(const ref_call *call) {
  ref_operand codes = ref_in(call, 0), absmax = ref_in(call, 1), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) {
    int byte = (int)ref_load(&codes, i / 2), code = i % 2 ? byte & 15 : byte >> 4;
    store(call, &y, i, nx_nf4_values[code], (float)ref_load(&absmax, i / NX_NF4_BLOCK), nx_nf4_noise);
  }
}

void ref_dequantize_nvfp4(const ref_call *call) {
  ref_operand codes = ref_in(call, 0), scales = ref_in(call, 1), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) {
    int byte = (int)ref_load(&codes, i / 2), code = i % 2 ? byte >> 4 : byte & 15;
    store(call, &y, i, nx_e2m1_values[code], (float)ref_load(&scales, i / NX_NVFP4_BLOCK), nx_e2m1_noise);
  }
}

void ref_dequantize_mxfp4(const ref_call *call) {
  ref_operand codes = ref_in(call, 0), scales = ref_in(call, 1), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) {
    int byte = (int)ref_load(&codes, i / 2), code = i % 2 ? byte >> 4 : byte & 15;
    float scale = nx_e8m0_decode((uint8_t)ref_load(&scales, i / NX_MXFP4_BLOCK));
    store(call, &y, i, nx_e2m1_values[code], scale, nx_e2m1_noise);
  }
}

void ref_dequantize_fp8(const ref_call *call) {
  ref_operand codes = ref_in(call, 0), scales = ref_in(call, 1), y = ref_out(call, 0);
  int64_t columns = ref_last_dim(&y), rows = y.dims[y.n_dims - 2], tiles = ref_last_dim(&scales),
          tile_rows = scales.dims[scales.n_dims - 2];
  for (int64_t i = 0; i < y.n_elements; i++) {
    int64_t matrix = i / columns / rows, row = i / columns % rows, column = i % columns;
    int64_t tile = (matrix * tile_rows + row / NX_FP8_TILE) * tiles + column / NX_FP8_TILE;
    store(call, &y, i, nx_e4m3_decode((uint8_t)ref_load(&codes, i)), (float)ref_load(&scales, tile),
          nx_e4m3_noise);
  }
}
