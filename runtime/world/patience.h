/* SPDX-License-Identifier: Apache-2.0 */
/* Since when one whom a wait is for has given no sign of life: whoever counts on says so with each count. */
#ifndef NXR_PATIENCE_H
#define NXR_PATIENCE_H

#include "runtime/world/clock.h"
#include "schema/plan.h"

/* Begins as {.with = NX_NONE}: with nobody. */
typedef struct nxr_patience {
  uint32_t with;
  uint64_t n_signs; /* that he had given */
  double since_s;
} nxr_patience;

/* A look at him; seconds since he was seen to go on. */
static inline double nxr_patience_look(nxr_patience *patience, uint32_t with, uint64_t n_signs) {
  double now_s = nxr_clock_s();
  if (with != patience->with || n_signs != patience->n_signs)
    *patience = (nxr_patience){with, n_signs, now_s};
  return now_s - patience->since_s;
}

#endif
