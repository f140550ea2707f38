/* SPDX-License-Identifier: Apache-2.0 */
/* What a launcher demands of plans that others made: who signed them (--trust), and where they may read and
 * write (--allow). What the command line itself names is allowed. */
#ifndef NXR_GUARD_H
#define NXR_GUARD_H

#include "runtime/files/fence.h"
#include "runtime/train.h"

typedef struct nxr_guard {
  const char *trust; /* file of keys; NULL: any plan runs */
  bool weights;      /* what a run begins with must be signed too */
  const char *allowed[NXR_MOST_ALLOWED];
  int n_allowed; /* 0: paths lie anywhere */
  nx_trusted_keys of_file;
  const nx_trusted_keys *keys; /* once it is open; NULL: anybody's */
} nxr_guard;

/* Before the plan is read. */
bool nxr_guard_open(nxr_guard *guard, nxr_options *options, nxr_fault *fault);

#endif
