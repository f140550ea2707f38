/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer's files leave unsaid, as a plan says it. */
#ifndef NXT_UNSAID_H
#define NXT_UNSAID_H

#include "schema/plan.h"
#include "tokenizer/tokenizer.h"

/* Of the tokenizer at `path`: run.tokenizer's merges stand beside it alone. False: there is nothing to free.
 */
bool nxt_unsaid_read(const nx_plan *plan, const char *path, nxt_unsaid *unsaid, nx_fault *fault);
void nxt_unsaid_free(nxt_unsaid *unsaid);

#endif
