/* SPDX-License-Identifier: Apache-2.0 */
/* Which way a collective goes between hosts (nx_way), and what each would take.
 *
 * A step is one latency; a member has MESSAGES of its messages under way at once, and what it sends to more
 * members takes as many steps more. Bytes are those that a rank receives, over the links within a host or
 * between hosts:
 *
 *   direct    far parts come L times to a host of L members, near ones within it
 *   ring      n - 1 steps, in each of which one member of a host receives from another host, with all of its
 * link doubling  log2 n steps; of an all_reduce n times all of x come, once hosts     far parts come once to
 * a host, and the rest is read within it
 *
 * The parts of an all_reduce go directly to who sums them, whatever the way, but for doubling. */
#ifndef NXC_ROUTES_H
#define NXC_ROUTES_H

#include "compiler/machine/machine.h"
#include "schema/plan.h"

/* Where the members of rank 0's group stand. */
typedef struct nxc_group_place {
  uint32_t n_local; /* on rank 0's host */
  uint32_t n_hosts;
} nxc_group_place;

typedef struct nxc_exchange {
  uint32_t n_steps;
  double seconds;
  double latency_s; /* of them, in which its bytes are on their way and the link takes others' */
} nxc_exchange;

/* One for each group. */
nxc_group_place *nxc_place_groups(const nx_plan *plan, uint32_t ranks_per_host, nxc_arena *arena);
/* Of one collective, by the way that its plan says, or else by the best. */
nxc_exchange nxc_exchange_of(const nx_plan *plan, const nxc_machine *machine, const nxc_group_place *places,
                             uint32_t operator);
/* For the collectives between hosts of a plan that has none, where another way than the direct one exists; by
 * usual figures where no machine is told of. */
const nx_route *nxc_routes_choose(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena,
                                  uint32_t *n_routes);

#endif
