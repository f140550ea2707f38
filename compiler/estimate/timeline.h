/* SPDX-License-Identifier: Apache-2.0 */
/* When the passes of a step run, stage by stage, with passes that last as long as their layers are many.
 * Transfers take no time; what is empty is the bubble. */
#ifndef NXC_TIMELINE_H
#define NXC_TIMELINE_H

#include "compiler/estimate/sizes.h"
#include "compiler/program/pipeline/play.h"

typedef struct nxc_timeline {
  nxc_timed_pass *passes; /* stage by stage, in forward passes of a layer */
  size_t n_passes;
  uint32_t n_stages, n_chunks;
  uint32_t n_shown;  /* micro-batches: the first ones of very many */
  double length;     /* of all passes together */
  double busiest;    /* one micro-batch, forward and backward, on the stage that works longest */
  double bubble;     /* share of the stages' time in which they wait */
  uint32_t *in_flight; /* [stages]: forward passes at most whose backward pass is not over */
} nxc_timeline;

/* False where the passes wait for one another. */
bool nxc_timeline_of(const nxc_training *training, const nxc_sizes *sizes, nxc_arena *arena,
                     nxc_timeline *out);

#endif
