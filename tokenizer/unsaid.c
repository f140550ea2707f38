/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/unsaid.h"

#include "schema/plan_check.h"

#include <stdlib.h>
#include <string.h>

static const char *text_or_null(const nx_plan *plan, uint32_t text) {
  const char *said = nx_plan_text(plan, text);
  return said[0] != '\0' ? said : NULL;
}

bool nxt_unsaid_read(const nx_plan *plan, const char *path, nxt_unsaid *unsaid, nx_fault *fault) {
  const nx_run_names *names = plan->run_names;
  bool own = strcmp(path, nx_plan_text(plan, names->tokenizer)) == 0;
  size_t n;
  char **special = nx_plan_texts(plan, names->tokenizer_special, &n);
  if (special == NULL) return nx_fault_set(fault, 0, "out of memory");
  *unsaid = (nxt_unsaid){.merges = own ? text_or_null(plan, names->tokenizer_merges) : NULL,
                         .pattern = text_or_null(plan, names->tokenizer_pattern),
                         .special = n > 0 ? (const char *const *)special : NULL,
                         .n_special = names->tokenizer_n_special,
                         .n_ids = (uint32_t)plan->run->vocab};
  if (n == 0) free(special);
  return true;
}

void nxt_unsaid_free(nxt_unsaid *unsaid) {
  free((void *)(uintptr_t)unsaid->special);
  *unsaid = (nxt_unsaid){0};
}
