/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate, step by step: segments in order, of which each holds from its first step on. Where they
 * go by samples, their steps are the sequences that were trained on before.
 *
 * Every named schedule (schema/schedules.def) is lowered to segments here; nothing behind this knows names.
 * The first begins at step 0. Numbers as in schema/segment.h. */
#ifndef NXC_RECORDS_LEARNING_RATE_H
#define NXC_RECORDS_LEARNING_RATE_H

#include "compiler/settings/settings.h"
#include "schema/segment.h"

enum { NXC_MAX_SEGMENTS = 8 };

typedef struct nxc_learning_rate {
  nx_segment segments[NXC_MAX_SEGMENTS];
  size_t n_segments;
  int64_t max_steps; /* of the training */
  bool by_samples;
  int64_t samples_late; /* the sequences are those before so many steps earlier */
  bool follows_loss; /* its steps are reductions, which come while a loss gets no better */
} nxc_learning_rate;

nxc_learning_rate nxc_learning_rate_read(const nxc_settings *settings);

/* The same schedule from another peak to another minimum. */
nxc_learning_rate nxc_learning_rate_between(const nxc_settings *settings, double peak, double least);

/* At a step, or number of sequences. */
double nxc_learning_rate_at(const nxc_learning_rate *rate, int64_t step);
/* How many of what the segments count a step of the settings is: 1, or the sequences of a full batch. */
int64_t nxc_learning_rate_unit(const nxc_settings *settings);

#endif
