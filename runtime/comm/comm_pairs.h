/* SPDX-License-Identifier: Apache-2.0 */
/* Sums whose order does not hang on how many ranks share a batch. */
#ifndef NXR_COMM_PAIRS_H
#define NXR_COMM_PAIRS_H

#include "runtime/comm/comm_transport.h"

/* In which order the members of a group of the plan are summed, where they share a batch and the plan says
 * so. False: out of memory, or the plan is none. */
bool nxr_pairs_open(const nx_plan *plan, uint32_t index, nxr_comm_group *group);
/* Whether the operands have a type that is summed so. */
bool nxr_pairs_can_sum(const nxr_collective_spec *spec);
/* y[0..n) = sum of the collective's sources. */
void nxr_pairs_sum(const nxr_collective *collective, void *y, uint64_t n);

#endif
