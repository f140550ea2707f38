/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank of the file's own system would need with a setting changed, and how long a step would take
 * then.
 *
 * What tune may vary is said in the file's own options and judged by its system's rules, as tune does; where
 * the file has no place for them they are set over it, as the rest is as a setting. */
#ifndef NXC_COMMANDS_OWN_ADVICE_H
#define NXC_COMMANDS_OWN_ADVICE_H

#include "compiler/commands/estimate.h"
#include "compiler/tune/say.h"

typedef struct nxc_own_advice {
  const nxc_estimate_request *asked;
  const nxc_request *request;
  const nxc_own_estimate *own; /* of the file as it is */
  nxc_arena *arena, *scratch;
  nxc_speaker *speaker; /* NULL: nothing was asked yet */
  nxc_space space;
  uint16_t accepted[NXC_N_KNOBS]; /* the value of a knob that the system took alone; 0: none yet */
} nxc_own_advice;

/* What nxc_memory_need asks after; `context` is an nxc_own_advice. */
nxc_after nxc_own_after(void *context, const nxc_change *changes, size_t n_changes);

#endif
