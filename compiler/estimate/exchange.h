/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds of exchanges between the devices of a machine.
 *
 * A group is `size` ranks that stand `stride` apart. Neighbours within a domain (a host, or several that one
 * switch joins) have the fast link; each device has its own port to what lies beyond, so members of one
 * domain carry a share each. Nothing over one rank takes no time. */
#ifndef NXC_EXCHANGE_H
#define NXC_EXCHANGE_H

#include "compiler/machine/machine.h"

typedef struct nxc_ranks {
  double size, stride;
} nxc_ranks;

/* A ring's gather of `bytes` in all, or its scattered sum; an all-reduce is both. */
double nxc_gather_s(const nxc_machine *machine, nxc_ranks group, double bytes);
/* Of so many places those that get one of the copies of a row, a share of the copies, on average. */
double nxc_places_of(double places, double copies);
/* Each rank has `bytes` and sends an equal part of them to each. Where they are `copies` of the same rows, a
 * row goes once to a domain, and once to each rank there. */
double nxc_all_to_all_s(const nxc_machine *machine, nxc_ranks group, double bytes, double copies);
/* To the next of the group. */
double nxc_send_s(const nxc_machine *machine, nxc_ranks group, double bytes);

#endif
