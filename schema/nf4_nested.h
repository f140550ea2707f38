/* SPDX-License-Identifier: Apache-2.0 */
/* Double quantization (QLoRA, arXiv 2305.14314): the scales of NF4, less their mean, quantized once more as
 * bitsandbytes does it, in blocks of 256 that share the greatest magnitude, to the nearest of 256 numbers
 * that lie the closer the smaller they are (dynamic tree, arXiv 1511.04561). */
#ifndef NX_NF4_NESTED_H
#define NX_NF4_NESTED_H

#include <math.h>
#include <stdint.h>

enum { NX_NESTED_BLOCK = 256, NX_NESTED_CODES = 256 };

/* Of a decade's 2^power numbers of one sign the one at `place`, from the smallest: the middle of equal parts
 * of 0.1 to 1. */
static inline float nx_nested_fraction(int power, int place) {
  int parts = 1 << power;
  float step = (1.0f - 0.1f) / (float)parts, border[2];
  for (int i = 0; i < 2; i++) {
    int at = place + i;
    border[i] = at < (parts + 1) / 2 ? fmaf(step, (float)at, 0.1f) : fmaf(-step, (float)(parts - at), 1.0f);
  }
  return (border[0] + border[1]) / 2;
}

/* All of them, ascending: 127 of each sign, 0 and 1. */
static inline void nx_nested_values(float *values) {
  static const float decades[7] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1};
  int n = 0;
  for (int power = 0; power < 7; power++)
    for (int place = 0; place < 1 << power; place++, n++) {
      float value = decades[power] * nx_nested_fraction(power, place);
      values[128 + n] = value;
      values[126 - n] = -value;
    }
  values[127] = 0;
  values[255] = 1;
}

static inline float nx_nested_nearest(const float *values, float x) {
  int low = 0, high = NX_NESTED_CODES - 1;
  while (low < high) {
    int middle = (low + high) / 2;
    if (x > (values[middle] + values[middle + 1]) / 2) low = middle + 1;
    else high = middle;
  }
  return values[low];
}

/* The scales of a tensor become what their codes stand for. */
static inline void nx_nf4_nest(float *scales, uint64_t n) {
  float values[NX_NESTED_CODES];
  double sum = 0;
  nx_nested_values(values);
  for (uint64_t i = 0; i < n; i++) sum += (double)scales[i];
  const float mean = n ? (float)(sum / (double)n) : 0;
  for (uint64_t first = 0; first < n; first += NX_NESTED_BLOCK) {
    uint64_t end = n - first < NX_NESTED_BLOCK ? n : first + NX_NESTED_BLOCK;
    float most = 0;
    for (uint64_t i = first; i < end; i++) most = fmaxf(most, fabsf(scales[i] -= mean));
    for (uint64_t i = first; i < end; i++) {
      scales[i] = most > 0 ? nx_nested_nearest(values, scales[i] / most) * most : 0;
      scales[i] += mean;
    }
  }
}

#endif
