/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_tokenizer.h"

#include "runtime/data/dataset.h"
#include "tokenizer/files.h"

#include <stdio.h>

/* PATH with `rest` behind it ("/": it must be a folder), where a tokenizer is there. */
static bool take(const char *there, const char *rest, char path[NXR_PATH_BYTES]) {
  int n = there && there[0] != '\0' ? snprintf(path, NXR_PATH_BYTES, "%s%s", there, rest) : NXR_PATH_BYTES;
  if (n < NXR_PATH_BYTES && nxt_is_there(path)) return true;
  path[0] = '\0';
  return false;
}

void nxr_tokenizer_find(const nx_plan *plan, const char *first, char path[NXR_PATH_BYTES]) {
  if (take(first, "/", path) || take(nx_plan_text(plan, plan->run_names->tokenizer), "", path)) return;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RECIPES]; i++)
    if (take(nx_plan_string(plan, plan->recipes[i].tokenizer), "", path)) return;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SOURCES]; i++)
    if (take(nx_plan_string(plan, plan->sources[i].prefix), NXR_TOKENIZER_FOLDER, path)) return;
  take(nx_plan_string(plan, plan->run->init_from), "/", path);
}
