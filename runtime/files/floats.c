/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/safetensors.h"
#include "schema/bf16.h"
#include "schema/f16.h"

#include <string.h>

void nxr_floats(nx_dtype dtype, const uint8_t *from, uint64_t n, float *values) {
  if (dtype == NX_f32) {
    memcpy(values, from, n * sizeof *values);
    return;
  }
  for (uint64_t i = 0; i < n; i++) {
    uint16_t half;
    double wide;
    if (dtype == NX_f64) {
      memcpy(&wide, from + 8 * i, sizeof wide);
      values[i] = (float)wide;
    } else {
      memcpy(&half, from + 2 * i, sizeof half);
      values[i] = dtype == NX_bf16 ? nx_bf16_to_float(half) : nx_f16_to_float(half);
    }
  }
}
