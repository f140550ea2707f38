/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels read of quantized weights: what the code of an element stands for before it is scaled, the
 * least step between two such numbers that noise is measured by, and the noise itself. */
#ifndef NX_QUANTIZED_H
#define NX_QUANTIZED_H

#include "schema/mxfp4.h"
#include "schema/nf4.h"
#include "schema/normal.h"

enum { NX_FP8_TILE = 128 /* rows and columns that share a scale of weights in e4m3 */ };

/* NF4's step beside 0; of e2m1 0.5, halved as xorl halves it; of e4m3 the step at 1. Times the scale. */
static const float nx_nf4_noise = 0.5f * 0.07958029955625534f, nx_e2m1_noise = 0.5f, nx_e4m3_noise = 0.125f;

/* A normal number for an element of the weights with this key, of this step. */
static inline float nx_quantization_noise(uint64_t seed, uint32_t tensor_id, uint64_t element, int64_t step) {
  uint64_t quarter = element / 4;
  nx_philox words = nx_philox_draw(seed, tensor_id, (uint32_t)quarter, (uint32_t)(quarter >> 32),
                                   (uint32_t)step, UINT32_C(0x6E6F6973));
  return (float)nx_normal(words.word[element % 4]);
}

#endif
