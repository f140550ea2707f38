/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a value that was copied out of a backend's memory, as numbers. */
#ifndef NXR_NUMBER_H
#define NXR_NUMBER_H

#include "schema/bf16.h"
#include "schema/f16.h"
#include "schema/plan.h"

static inline double nxr_number_at(const void *elements, nx_dtype dtype, uint64_t i) {
  switch (dtype) {
    case NX_f32: return ((const float *)elements)[i];
    case NX_f64: return ((const double *)elements)[i];
    case NX_bf16: return nx_bf16_to_float(((const uint16_t *)elements)[i]);
    case NX_f16: return nx_f16_to_float(((const uint16_t *)elements)[i]);
    default: return 0; /* an integer */
  }
}

#endif
