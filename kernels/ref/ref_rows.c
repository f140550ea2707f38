/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of any type as doubles. */
#include "kernels/ref/ref.h"

void ref_load_row(const ref_operand *x, int64_t first, int64_t stride, int64_t n, double *row) {
  switch (x->dtype) {
  case NX_f32:
    for (int64_t k = 0; k < n; k++) row[k] = ((const float *)x->data)[first + k * stride];
    return;
  case NX_bf16:
    for (int64_t k = 0; k < n; k++)
      row[k] = nx_bf16_to_float(((const uint16_t *)x->data)[first + k * stride]);
    return;
  default:
    for (int64_t k = 0; k < n; k++) row[k] = ref_load(x, first + k * stride);
    return;
  }
}

void ref_store_row(const ref_operand *y, int64_t first, int64_t n, const double *row) {
  for (int64_t k = 0; k < n; k++) ref_store(y, first + k, row[k]);
}
