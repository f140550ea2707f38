/* SPDX-License-Identifier: Apache-2.0 */
/* How long a step of a training takes on its own system and an accelerator, from sizes, the system's traits
 * and the machine's device.
 *
 * A pass of a layer is its products (by shape), its attention, what memory bounds, and what is exchanged;
 * traits say which exchanges hide beneath work, and only what does not is counted. Passes add up over the
 * layers and micro-batches of the slowest stage; that stages wait for one another (the bubble) follows from
 * the order of their passes (play.h). All seconds are of one rank and one step. Rules of products: the
 * device. */
#ifndef NXC_ESTIMATE_TIME_H
#define NXC_ESTIMATE_TIME_H

#include "compiler/estimate/system.h"
#include "compiler/machine/machine.h"

/* SPENT(id, name, meaning): where the time of a step goes. */
#define NXC_SPENT(SPENT)                                                                                     \
  SPENT(PRODUCTS, "products", "matrix products of weights")                                                  \
  SPENT(ATTENTION, "attention", "scores and sums of values")                                                 \
  SPENT(POINTWISE, "memory-bound", "norms, activations, residuals, casts")                                   \
  SPENT(LAUNCH, "launches", "work too small to hide the launch of its kernels")                              \
  SPENT(TENSOR, "tensor parallel", "sums and gathers over tensor-parallel ranks")                            \
  SPENT(CONTEXT, "context parallel", "keys and values on their way")                                         \
  SPENT(EXPERT, "expert parallel", "rows on their way to experts and back")                                  \
  SPENT(DATA, "data parallel", "gradients reduced and parameters gathered")                                  \
  SPENT(STAGES, "between stages", "activations on their way")                                                \
  SPENT(HOST, "to the host", "what waits in the host's memory on its way, and the update there")             \
  SPENT(UPDATE, "optimizer", "the update of the parameters")                                                 \
  SPENT(BUBBLE, "bubble", "stages that wait for others")

typedef enum nxc_spent {
#define SPENT(id, name, meaning) NXC_SPENT_##id,
  NXC_SPENT(SPENT)
#undef SPENT
  NXC_N_SPENT
} nxc_spent;

extern const char *const nxc_spent_names[NXC_N_SPENT];

typedef struct nxc_own_time {
  double step_s;
  double parts[NXC_N_SPENT]; /* add up to step_s */
  double evaluation_s;       /* of a batch of an evaluation: its forward passes; without those at both ends */
  double tokens_per_s;       /* of all ranks */
  double model_flops;        /* of a step and rank: forward and backward once, causal attention by half */
  double utilisation;        /* of the device's peak in the type of the products */
} nxc_own_time;

/* The machine has a device. */
nxc_own_time nxc_own_time_of(const nxc_system *system, const nxc_sizes *sizes, const nxc_training *training,
                             const nxc_machine *machine, nxc_arena *arena);
/* A step takes no less: every product at the peak, and stages that wait for one another. */
double nxc_own_time_least(const nxc_sizes *sizes, const nxc_layout *layout, const nxc_machine *machine);

#endif
