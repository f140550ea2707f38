/* SPDX-License-Identifier: Apache-2.0 */
/* Trains with a checked and proved plan in this process, as one of its ranks, all alone. */
#ifndef TESTS_FUZZ_LONE_RANK_H
#define TESTS_FUZZ_LONE_RANK_H

#include "runtime/train.h"

/* The exit status of nxrun. A run that is ended from within leaks what it held. */
int lone_rank_train(const nx_plan *plan, uint32_t rank, const nxr_options *options);

#endif
