/* SPDX-License-Identifier: Apache-2.0 */
/* What each operator of a program takes, as the program runs through them.
 *
 * A product takes its FLOP, what moves numbers its bytes at the speed of memory, a collective its way's time
 * (routes.h). Where a machine tells of an operator's own speed, it is not faster than that. What an earlier
 * program left in memory (weights, gradients, states, activations) is far away when it is first touched: what
 * the whole program moves has driven it there. */
#ifndef NXC_OPERATOR_COST_H
#define NXC_OPERATOR_COST_H

#include "compiler/program/forecast/routes.h"

typedef struct nxc_operator_costs {
  const nx_plan *plan;
  const nxc_machine *machine;
  const nxc_group_place *places; /* [group] */
  bool *touched;                 /* [value] by the operators so far */
  const nx_program *program;
  double program_bytes; /* that it moves */
} nxc_operator_costs;

bool nxc_cost_multiplies(const nx_operator *op);
/* In which kernels multiply it. */
nx_dtype nxc_cost_type(const nx_plan *plan, const nx_operator *op);
/* That moves something: no wait, and of a group. */
bool nxc_cost_is_collective(const nx_operator *op);
uint32_t nxc_cost_index(const nx_plan *plan, const nx_operator *op);

/* Before the operators of `when` are asked for, in their order. */
void nxc_costs_begin(nxc_operator_costs *costs, const nx_program *program, uint8_t when);
double nxc_operator_seconds(nxc_operator_costs *costs, const nx_operator *op);

#endif
