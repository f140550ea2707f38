/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/megatron/launched.h"

#include "compiler/settings/catalogue.h"

#include <string.h>

bool nxc_names_training_option(const char *text, size_t n_bytes) {
  static const char *const telling[] = {"--num-layers", "--micro-batch-size", "--tensor-model-parallel-size",
                                        "--hidden-size", "--seq-length"};
  for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
    if (memmem(text, n_bytes, telling[i], strlen(telling[i])) != NULL) return true;
  return false;
}

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* A launcher's first argument is the program. */
static void look_behind(nxc_arena *arena, nxc_launched *found) {
  const nxc_launch_words *words = &found->launch->arguments;
  if (words->n_items == 0) return;
  const char *path = words->items[0].text;
  const nxc_program_row *behind =
      nxc_program_row_find(nxc_arena_printf(arena, "%s %s", found->launch->program, path));
  found->name = nxc_arena_printf(arena, "%s %s", found->name, file_name(path));
  if (behind != NULL) found->program = behind;
}

bool nxc_launched_has_option(const nxc_launched *launched) {
  const nxc_launch_words *words = &launched->launch->arguments;
  const nxc_dialect *dialect = nxc_dialect_find("megatron");
  for (size_t i = 0; i < words->n_items; i++) {
    const char *text = words->items[i].text;
    if (strncmp(text, "--", 2) != 0) continue;
    const char *name = nxc_arena_strndup(launched->arena, text + 2, strcspn(text + 2, "="));
    const nxc_option_row *row = nxc_option_find(dialect, name);
    if (row != NULL && strcmp(row->name, name) == 0) return true;
  }
  return false;
}

/* Of a program that is not known: its options tell, or it has none that is seen and may have any. */
static bool may_train(const nxc_launched *launched) {
  const nxc_launch_words *words = &launched->launch->arguments;
  bool options = false, many = false;
  for (size_t i = 0; i < words->n_items; i++) {
    const nxc_launch_word *word = &words->items[i];
    if (nxc_names_training_option(word->text, strlen(word->text))) return true;
    many = many || word->many;
    options = options || strncmp(word->text, "--", 2) == 0;
  }
  if (strstr(launched->launch->program, "pretrain") != NULL) return true;
  return many && (!options || nxc_launched_has_option(launched));
}

static nxc_launched look_at(nxc_arena *arena, const nxc_launch *launch) {
  nxc_launched found = {.arena = arena, .launch = launch};
  if (launch->program == NULL) {
    found.trains = true;
    return found;
  }
  found.name = file_name(launch->program);
  found.program = nxc_program_row_find(launch->program);
  found.own = found.program == NULL && strstr(found.name, "pretrain_gpt") == NULL;
  if (found.program != NULL && found.program->use == NXC_PROGRAM_STARTS) look_behind(arena, &found);
  if (found.program != NULL)
    found.trains = found.program->use == NXC_PROGRAM_TRAINS || found.program->use == NXC_PROGRAM_SHARES;
  else found.trains = may_train(&found);
  return found;
}

/* How much there is to judge: options of a training, those of a known program, or nothing. */
static int worth(const nxc_launched *found) {
  return found->trains ? 2 : found->program != NULL ? 1 : 0;
}

static bool same_words(const nxc_launch_words *a, const nxc_launch_words *b) {
  bool same = a->n_items == b->n_items;
  for (size_t i = 0; same && i < a->n_items; i++) same = strcmp(a->items[i].text, b->items[i].text) == 0;
  return same;
}

/* --nnodes, --nproc-per-node and what Slurm calls them, as text. */
static const char *ranks_of(nxc_arena *arena, const nxc_launch_words *words) {
  static const char *const beginnings[] = {"--nnodes",   "--nproc",     "--nodes", "--ntasks-per-node",
                                           "--num_gpus", "--num_nodes", "-N"};
  const char *found = "";
  for (size_t i = 0; i < words->n_items; i++) {
    const char *text = words->items[i].text, *next = i + 1 < words->n_items ? words->items[i + 1].text : "";
    bool ranks = false;
    for (size_t k = 0; k < sizeof beginnings / sizeof *beginnings; k++)
      ranks = ranks || strncmp(text, beginnings[k], strlen(beginnings[k])) == 0;
    if (ranks) found = nxc_arena_printf(arena, "%s %s %s", found, text, strchr(text, '=') ? "" : next);
  }
  return found;
}

/* Whether it is started before in another way, as beneath a debugger. */
static bool is_again(const nxc_script *script, size_t n_kept, const nxc_launch *launch) {
  for (size_t i = 0; i < n_kept; i++) {
    const nxc_launch *other = &script->launches[i];
    bool programs = other->program != NULL && launch->program != NULL;
    if (!programs || strcmp(other->program, launch->program) != 0) continue;
    if (!same_words(&other->arguments, &launch->arguments)) continue;
    const char *ranks = ranks_of(script->arena, &other->launcher);
    if (strcmp(ranks, ranks_of(script->arena, &launch->launcher)) == 0) return true;
  }
  return false;
}

nxc_launched nxc_launched_choose(nxc_script *script, size_t n) {
  int most = 0, *worths = nxc_arena_array(script->arena, script->n_launches + 1, sizeof *worths);
  for (size_t i = 0; i < script->n_launches; i++) {
    nxc_launched found = look_at(script->arena, &script->launches[i]);
    worths[i] = worth(&found);
    if (worths[i] > most) most = worths[i];
  }
  size_t n_kept = 0;
  for (size_t i = 0; i < script->n_launches; i++)
    if (worths[i] == most && !is_again(script, n_kept, &script->launches[i]))
      script->launches[n_kept++] = script->launches[i];
  script->n_launches = n_kept;
  return look_at(script->arena, &script->launches[n > 0 && n <= n_kept ? n - 1 : 0]);
}
