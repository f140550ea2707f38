/* SPDX-License-Identifier: Apache-2.0 */
/* NormalFloat of 4 bits (QLoRA, arXiv 2305.14314, appendix E), in blocks of 64 that share the greatest
 * magnitude of their elements, as bitsandbytes has it: an element stands for code x absmax. Two codes make a
 * byte, the first in its high half. */
#ifndef NX_NF4_H
#define NX_NF4_H

#include <math.h>
#include <stdint.h>

enum { NX_NF4_BLOCK = 64 };

static const float nx_nf4_values[16] = {-1.0f,
                                        -0.6961928009986877f,
                                        -0.5250730514526367f,
                                        -0.39491748809814453f,
                                        -0.28444138169288635f,
                                        -0.18477343022823334f,
                                        -0.09105003625154495f,
                                        0.0f,
                                        0.07958029955625534f,
                                        0.16093020141124725f,
                                        0.24611230194568634f,
                                        0.33791524171829224f,
                                        0.44070982933044434f,
                                        0.5626170039176941f,
                                        0.7229568362236023f,
                                        1.0f};

/* Of one block, or of what there is of it. */
static inline float nx_nf4_absmax(const float *x, int64_t n) {
  float most = 0;
  for (int64_t i = 0; i < n; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  return most;
}

/* The nearest value; of two that are equally near the smaller. */
static inline uint8_t nx_nf4_code(float scaled) {
  uint8_t code = 0;
  while (code < 15 && scaled > (nx_nf4_values[code] + nx_nf4_values[code + 1]) / 2) code++;
  return code;
}

/* n elements, whole blocks, to n / 2 bytes. */
static inline void nx_nf4_encode(const float *x, int64_t n, uint8_t *codes) {
  for (int64_t block = 0; block < n; block += NX_NF4_BLOCK) {
    float absmax = nx_nf4_absmax(x + block, NX_NF4_BLOCK),
          factor = 1.0f / (absmax > 1e-38f ? absmax : 1e-38f);
    for (int64_t i = block; i < block + NX_NF4_BLOCK; i += 2)
      codes[i / 2] = (uint8_t)(nx_nf4_code(x[i] * factor) << 4 | nx_nf4_code(x[i + 1] * factor));
  }
}

#endif
