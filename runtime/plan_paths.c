/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_paths.h"

#include "runtime/data/dataset.h"
#include "runtime/files/fence.h"

#include <stdio.h>
#include <unistd.h>

static bool allows(const char *path, const char *what, nxr_fault *fault) {
  return path == NULL || path[0] == '\0' || nxr_fence_allows_folder(path, what, fault);
}

/* It may be a name of something built in; what is not there is not read. */
static bool allows_tokenizer(const char *path, nxr_fault *fault) {
  return access(path, F_OK) != 0 || allows(path, "run.tokenizer", fault);
}

/* The files of a dataset are looked at when they are mapped; its tokenizer is a folder beside them. */
static bool allows_source(const nx_plan *plan, const nx_source *source, nxr_fault *fault) {
  const uint32_t prefixes[] = {source->prefix, source->rejected, source->labels, source->rejected_labels,
                               source->rewards};
  char tokenizer[4096];
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (!allows(nx_plan_string(plan, prefixes[i]), "data.path", fault)) return false;
  int n = snprintf(tokenizer, sizeof tokenizer, "%s%s", nx_plan_string(plan, source->prefix),
                   NXR_TOKENIZER_FOLDER);
  return n >= (int)sizeof tokenizer || allows(tokenizer, "data.path", fault);
}

bool nxr_plan_paths_allowed(const nx_plan *plan, const char *directory, const char *temporary,
                            nxr_fault *fault) {
  const nx_run_names *names = plan->run_names;
  const struct {
    const char *path, *what;
  } paths[] = {{directory, "run.directory"},
               {temporary, "checkpoint.temporary_directory"},
               {nx_plan_text(plan, names->checkpoints), "checkpoint.directory"},
               {nx_plan_text(plan, names->tensorboard), "run.tensorboard"},
               {nx_plan_text(plan, names->wandb), "run.wandb"},
               {nx_plan_text(plan, names->profile_directory), "run.profile_directory"},
               {nx_plan_text(plan, names->load), "checkpoint.load"},
               {nx_plan_string(plan, plan->run->init_from), "run.init_from"},
               {nx_plan_string(plan, plan->run->adapter_from), "lora.init_from"}};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    if (!allows(paths[i].path, paths[i].what, fault)) return false;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SOURCES]; i++)
    if (!allows_source(plan, &plan->sources[i], fault)) return false;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RECIPES]; i++)
    if (!allows_tokenizer(nx_plan_string(plan, plan->recipes[i].tokenizer), fault)) return false;
  return allows_tokenizer(nx_plan_text(plan, names->tokenizer), fault) &&
         allows_tokenizer(nx_plan_text(plan, names->tokenizer_merges), fault);
}
