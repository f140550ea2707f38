/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of a plan would take on a machine, from the plan's bytes and the machine's description alone.
 *
 * Every operator is given seconds: a product by its FLOP, everything else by the bytes that it moves, a
 * collective by the bytes that a rank receives and the steps of its way (routes.h), a transfer between
 * stages by its value, where it is waited for. Programs are sums over their operators, by class; with them
 * the prover's walk plays the stages' items against each other. `stage` is the one that works longest; what
 * it does not work is the bubble. All seconds are of one rank and one step. */
#ifndef NXC_COST_H
#define NXC_COST_H

#include "compiler/machine/machine.h"
#include "schema/plan.h"

typedef enum nxc_cost_class {
  NXC_COST_PRODUCTS,    /* matrix products and attention */
  NXC_COST_MEMORY,      /* operators that memory bounds */
  NXC_COST_COLLECTIVES, /* as far as the rank waits for them */
  NXC_COST_TRANSFERS,   /* between stages */
  NXC_COST_OPTIMIZER,   /* everything of the step but its collectives */
  NXC_N_COSTS
} nxc_cost_class;

/* All collectives of a step over one group. */
typedef struct nxc_group_cost {
  uint32_t group;
  uint32_t n_hosts; /* that its members stand on */
  uint64_t n_collectives, bytes, n_steps;
  double seconds; /* whether waited for or hidden */
} nxc_group_cost;

typedef struct nxc_forecast {
  double step_s; /* of a full batch */
  double training_s; /* all steps, of whatever batches */
  uint32_t stage;
  double class_s[NXC_N_COSTS]; /* of that stage */
  double bubble_s;
  double evaluation_s; /* of one batch of an evaluation, all stages; 0: there is none */
  double tokens_per_s;
  double peak_flops;  /* of one rank, in the type that most products have; 0: not known */
  double utilisation; /* of the peak of products in the type that most products have */
  nx_dtype type;
  uint32_t ranks_per_host;
  nxc_group_cost *groups;
  size_t n_groups;
} nxc_forecast;

extern const char *const nxc_cost_names[NXC_N_COSTS]; /* "products", ... */

/* NULL; or what the machine description would have to tell about this plan. */
const char *nxc_forecast_lacks(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena);
/* Only where it lacks nothing. */
nxc_forecast nxc_forecast_step(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena);

#endif
