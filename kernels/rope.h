/* SPDX-License-Identifier: Apache-2.0 */
/* Frequencies of rotary position embeddings, as every backend computes them: in double precision.
 *
 * Pair i of a head (features i and i + rotary_dims / 2) turns by position x frequency(i), which is
 * theta^(-2 i / rotary_dims), scaled. llama3 (Hugging Face, modeling_rope_utils.py,
 * _compute_llama3_parameters): wave lengths beyond original / low are divided by factor, those below original
 * / high are kept, and between them the two are mixed. */
#ifndef NXK_ROPE_H
#define NXK_ROPE_H

#include <math.h>
#include <stdint.h>

typedef enum nxk_rope_scaling { NXK_ROPE_PLAIN = 0, NXK_ROPE_LINEAR, NXK_ROPE_LLAMA3 } nxk_rope_scaling;

typedef struct nxk_rope {
  int64_t rotary_dims;
  double theta;
  int64_t scaling; /* nxk_rope_scaling */
  double factor, low_freq_factor, high_freq_factor;
  int64_t original_positions;
} nxk_rope;

static inline double nxk_rope_frequency(const nxk_rope *rope, int64_t pair) {
  double frequency = pow(rope->theta, -2.0 * (double)pair / (double)rope->rotary_dims);
  if (rope->scaling == NXK_ROPE_LINEAR) return frequency / rope->factor;
  if (rope->scaling != NXK_ROPE_LLAMA3) return frequency;
  /* turns within the original context */
  double turns = (double)rope->original_positions * frequency / (2 * 3.14159265358979323846);
  if (turns < rope->low_freq_factor) return frequency / rope->factor;
  if (turns > rope->high_freq_factor) return frequency;
  double smooth = (turns - rope->low_freq_factor) / (rope->high_freq_factor - rope->low_freq_factor);
  return (1 - smooth) * frequency / rope->factor + smooth * frequency;
}

#endif
