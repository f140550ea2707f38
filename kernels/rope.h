/* SPDX-License-Identifier: Apache-2.0 */
/* Frequencies of rotary position embeddings, as every backend computes them: in double precision.
 *
 * Pair i of a head turns by position x frequency(i), which is
 * theta^(-2 i / rotary_dims), scaled. llama3 (Hugging Face, modeling_rope_utils.py,
 * _compute_llama3_parameters): wave lengths beyond original / low are divided by factor, those below original
 * / high are kept, and between them the two are mixed. */
#ifndef NXK_ROPE_H
#define NXK_ROPE_H

#include "kernels/backend.h"

#include <math.h>
#include <stdint.h>

typedef enum nxk_rope_scaling {
  NXK_ROPE_PLAIN,
  NXK_ROPE_LINEAR,
  NXK_ROPE_LLAMA3,
  NXK_ROPE_YARN,
  NXK_ROPE_YARN_SMOOTH
} nxk_rope_scaling;

typedef struct nxk_rope {
  int64_t rotary_dims;
  double theta;
  int64_t scaling; /* nxk_rope_scaling */
  double factor, low_freq_factor, high_freq_factor;
  int64_t original_positions;
  double amplitude; /* of cosines and sines */
  int64_t interleaved;
  int64_t rotary_start; /* first feature of a head that is rotated */
  const double *frequencies; /* of the pairs; NULL: those by theta and its scaling */
} nxk_rope;

/* Attributes from rotary_dims on, in the order of ops.def. */
static inline nxk_rope nxk_rope_of(const nxk_attr *a) {
  return (nxk_rope){a[0].integer, a[1].real,    a[2].integer, a[3].real,    a[4].real,
                    a[5].real,    a[6].integer, a[7].real,    a[8].integer, a[9].integer, NULL};
}

/* The features of a pair, from the first of the head on. */
static inline int64_t nxk_rope_first(const nxk_rope *rope, int64_t pair) {
  return rope->rotary_start + (rope->interleaved ? 2 * pair : pair);
}

static inline int64_t nxk_rope_second(const nxk_rope *rope, int64_t pair) {
  return rope->rotary_start + (rope->interleaved ? 2 * pair + 1 : pair + rope->rotary_dims / 2);
}

/* The pair whose frequency turns so often within the original context, as a real number. */
static inline double nxk_rope_pair_of(const nxk_rope *rope, double turns) {
  double lengths = (double)rope->original_positions / (turns * 2 * 3.14159265358979323846);
  return (double)rope->rotary_dims * log(lengths) / (2 * log(rope->theta));
}

/* YaRN (arXiv:2309.00071): pairs that turn often are kept, slow ones are divided by factor, and the ramp
 * between the two runs over whole pairs, as Hugging Face computes it unless it is smooth. */
static inline double nxk_rope_yarn(const nxk_rope *rope, double frequency, int64_t pair) {
  double low = nxk_rope_pair_of(rope, rope->high_freq_factor);
  double high = nxk_rope_pair_of(rope, rope->low_freq_factor);
  if (rope->scaling == NXK_ROPE_YARN) low = floor(low), high = ceil(high);
  low = fmax(low, 0), high = fmin(high, (double)rope->rotary_dims - 1);
  double ramp = ((double)pair - low) / (high == low ? 0.001 : high - low);
  ramp = fmin(fmax(ramp, 0), 1);
  return frequency / rope->factor * ramp + frequency * (1 - ramp);
}

static inline double nxk_rope_frequency(const nxk_rope *rope, int64_t pair) {
  if (rope->frequencies) return rope->frequencies[pair];
  double frequency = pow(rope->theta, -2.0 * (double)pair / (double)rope->rotary_dims);
  if (rope->scaling == NXK_ROPE_LINEAR) return frequency / rope->factor;
  if (rope->scaling == NXK_ROPE_YARN || rope->scaling == NXK_ROPE_YARN_SMOOTH)
    return nxk_rope_yarn(rope, frequency, pair);
  if (rope->scaling != NXK_ROPE_LLAMA3) return frequency;
  /* turns within the original context */
  double turns = (double)rope->original_positions * frequency / (2 * 3.14159265358979323846);
  if (turns < rope->low_freq_factor) return frequency / rope->factor;
  if (turns > rope->high_freq_factor) return frequency;
  double smooth = (turns - rope->low_freq_factor) / (rope->high_freq_factor - rope->low_freq_factor);
  return (1 - smooth) * frequency / rope->factor + smooth * frequency;
}

#endif
