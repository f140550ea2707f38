/* SPDX-License-Identifier: Apache-2.0 */
/* A learning rate that is reduced while a loss gets no better, as PyTorch's ReduceLROnPlateau counts.
 *
 * A look at the loss finds it better than the best so far, or counts as a bad one; one bad look more than the
 * plan's patience is a reduction, and those behind it cool down, which count for nothing. It follows from
 * losses alone, which all ranks share. */
#ifndef NXR_PLATEAU_H
#define NXR_PLATEAU_H

#include "schema/plan.h"

#include <stdbool.h>

typedef struct nxr_plateau {
  double best, loss; /* NAN: none yet; the newest, which may be looked at again */
  uint64_t n_bad, n_cooling, n_reductions;
} nxr_plateau;

static inline bool nxr_plateau_is_used(const nx_run *run) {
  return run->reductions != NX_NONE;
}

nxr_plateau nxr_plateau_begin(void);
/* A look at the newest loss, of a step that was trained with this learning rate. */
void nxr_plateau_look(nxr_plateau *plateau, const nx_plateau *plan, double lr);

#endif
