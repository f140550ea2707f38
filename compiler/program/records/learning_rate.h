/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate, step by step: segments in order, of which each holds from its first step on.
 *
 * Every named schedule is lowered to segments here; nothing behind this knows names. The first begins at step
 * 0. Numbers as in the operator `segment` (schema/ops.def). */
#ifndef NXC_RECORDS_LEARNING_RATE_H
#define NXC_RECORDS_LEARNING_RATE_H

#include "compiler/settings/settings.h"

typedef enum nxc_segment_kind { /* as in the operator */
  NXC_SEGMENT_CONSTANT,
  NXC_SEGMENT_LINEAR,
  NXC_SEGMENT_COSINE,
  NXC_SEGMENT_EXPONENTIAL,
  NXC_SEGMENT_POWER
} nxc_segment_kind;

typedef struct nxc_segment {
  nxc_segment_kind kind;
  int64_t first, origin, span;
  double from, to, exponent;
} nxc_segment;

enum { NXC_MAX_SEGMENTS = 4 };

typedef struct nxc_learning_rate {
  nxc_segment segments[NXC_MAX_SEGMENTS];
  size_t n_segments;
  int64_t max_steps; /* of the training */
} nxc_learning_rate;

nxc_learning_rate nxc_learning_rate_read(const nxc_settings *settings);
/* The same schedule with another peak and least. */
nxc_learning_rate nxc_learning_rate_between(const nxc_settings *settings, double lr, double least);

#endif
