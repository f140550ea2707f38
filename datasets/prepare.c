/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/prepare.h"

#include "datasets/build.h"
#include "datasets/command.h"
#include "datasets/key.h"
#include "datasets/merge.h"
#include "datasets/recipe.h"
#include "schema/regular.h"
#include "tokenizer/unsaid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make_folders(const char *prefix, nxr_fault *fault) {
  char path[NXD_PATH_BYTES];
  if (snprintf(path, sizeof path, "%s", prefix) >= (int)sizeof path)
    return nxr_fault_set(fault, "the name of the dataset is too long");
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
      return nxr_fault_set(fault, "cannot make the folder %s: %s", path, strerror(errno));
    *slash = '/';
  }
  return true;
}

/* -- which inputs it was made from --------------------------------------------------------------------------
 */

static bool key_path(const char *prefix, char path[NXD_PATH_BYTES]) {
  return snprintf(path, NXD_PATH_BYTES, "%s.key", prefix) < NXD_PATH_BYTES;
}

static bool is_made(const char *prefix, const char *key) {
  char path[NXD_PATH_BYTES], text[65] = "", index[NXD_PATH_BYTES];
  snprintf(index, sizeof index, "%s.idx", prefix);
  FILE *file = key_path(prefix, path) && access(index, R_OK) == 0 ? nx_regular_open(path) : NULL;
  bool same = file && fread(text, 1, 64, file) == 64 && strcmp(text, key) == 0;
  if (file) fclose(file);
  return same;
}

static bool write_key(const char *prefix, const char *key, nxr_fault *fault) {
  char path[NXD_PATH_BYTES];
  FILE *file = key_path(prefix, path) ? fopen(path, "wb") : NULL;
  bool good = file && fputs(key, file) >= 0;
  if (file && fclose(file) != 0) good = false;
  return good || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}

/* -- making -------------------------------------------------------------------------------------------------
 */

static bool add_inputs(const nx_plan *plan, const nx_recipe *recipe, nxd_files *files, nxr_fault *fault) {
  const char *input = nx_plan_string(plan, recipe->input), *part = nx_plan_string(plan, recipe->part);
  if (recipe->kind == NX_RECIPE_COUNTING) return nxd_files_add_made_up(files, &nxd_input_counting, fault);
  if (access(input, R_OK) == 0)
    return nxd_files_add(files, input, NULL, part[0] != '\0' ? part : NULL, fault);
  return nxr_fault_set(fault,
                       "cannot read %s: %s; a dataset that has this name on Hugging Face is to be "
                       "downloaded first: datasets.load_dataset('%s').save_to_disk('%s')",
                       input, strerror(errno), input, input);
}

/* What a kind of records is made by, how many fields it has, and which of them may be absent (a bit each). */
static const struct {
  const nxd_maker_kind *maker;
  uint32_t n_fields, optional;
} makers[] = {[NX_RECIPE_TEXTS] = {&nxd_make_documents, 1, 0},
              [NX_RECIPE_TOKENS] = {&nxd_make_documents, 1, 0},
              [NX_RECIPE_DIALOGUES] = {&nxd_make_dialogues, 2, 2},
              [NX_RECIPE_COMPLETIONS] = {&nxd_make_completions, 2, 0},
              [NX_RECIPE_COUNTING] = {&nxd_make_documents, 1, 0},
              [NX_RECIPE_PREFERENCES] = {&nxd_make_preferences, 3, 1}};

static nxd_recipe recipe_of(const nx_plan *plan, const nx_recipe *recipe) {
  const char *second = nx_plan_string(plan, recipe->labels);
  bool dialogues = recipe->kind == NX_RECIPE_DIALOGUES, made_up = recipe->kind == NX_RECIPE_COUNTING;
  nxd_recipe made = {.maker = makers[recipe->kind].maker,
                     .wanted = {.fields = {nx_plan_string(plan, recipe->field), dialogues ? "tools" : second,
                                           nx_plan_string(plan, recipe->rejected)},
                                .n_fields = makers[recipe->kind].n_fields,
                                .optional = makers[recipe->kind].optional,
                                .made_up_tokens = recipe->tokens},
                     .all_tokens = (recipe->flags & NX_RECIPE_ALL_TOKENS) != 0,
                     .most_tokens = made_up ? 0 : recipe->tokens,
                     .cut = (recipe->flags & NX_RECIPE_CUT) != 0,
                     .prompt_tokens = recipe->prompt_tokens,
                     .keep_end = (recipe->flags & NX_RECIPE_KEEP_END) != 0,
                     .whole = (recipe->flags & NX_RECIPE_WHOLE) != 0,
                     .last_counts = (recipe->flags & NX_RECIPE_LAST_COUNTS) != 0,
                     .rewarded = plan->strings[recipe->reward] != '\0',
                     .vocab = recipe->vocab};
  if (made.maker == &nxd_make_documents && second[0] != '\0')
    made.maker = &nxd_make_labelled, made.wanted.n_fields = 2;
  if (made.rewarded) made.wanted.fields[made.wanted.n_fields++] = nx_plan_string(plan, recipe->reward);
  return made;
}

static bool build(const nxd_build *is, nxr_fault *fault) {
  nxd_standing standing;
  if (is_made(is->prefix, is->key)) {
    printf("dataset      %s is there\n", is->prefix);
    return true;
  }
  if (!make_folders(is->prefix, fault) || !nxd_build_run(is, &standing, fault) ||
      !write_key(is->prefix, is->key, fault))
    return false;
  nxd_print_written(is->prefix, is->recipe->type_code, &standing);
  return true;
}

static bool merge(const nx_plan *plan, const nx_recipe *recipe, nxr_fault *fault) {
  nxd_standing standing;
  char key[65];
  const char *prefix = nx_plan_string(plan, recipe->prefix);
  const nxd_merge is = {.lines = nx_plan_string(plan, recipe->input),
                        .prefix = prefix,
                        .each = (recipe->flags & NX_RECIPE_SHUFFLE_EACH) != 0,
                        .all = (recipe->flags & NX_RECIPE_SHUFFLE_ALL) != 0,
                        .seed = recipe->seed,
                        .pieces = recipe->pieces,
                        .piece = recipe->piece};
  uint8_t type_code;
  nxd_merge_key(&is, key);
  if (is_made(prefix, key)) {
    printf("dataset      %s is there\n", prefix);
    return true;
  }
  if (!nxd_merge_run(&is, &type_code, &standing, fault) || !write_key(prefix, key, fault)) return false;
  nxd_print_written(prefix, type_code, &standing);
  return true;
}

bool nxd_prepare(const nx_plan *plan, const nx_recipe *recipe, uint32_t n_workers, bool watched,
                 nxr_fault *fault) {
  if (recipe->kind == NX_RECIPE_MERGE) return merge(plan, recipe, fault);
  const char *tokenizer = nx_plan_string(plan, recipe->tokenizer);
  const char *template = nx_plan_string(plan, recipe->template);
  char key[65];
  nxd_files files = {0};
  nxt_unsaid unsaid;
  nx_fault wrong = {.text = ""};
  nxd_recipe made = recipe_of(plan, recipe);
  nxj_style style = {0};
  const nxd_build is = {.files = &files,
                        .recipe = &made,
                        .prefix = nx_plan_string(plan, recipe->prefix),
                        .tokenizer = tokenizer,
                        .key = key,
                        .piece = {recipe->seed, recipe->pieces, recipe->piece},
                        .most_records = recipe->records,
                        .n_workers = n_workers,
                        .force = true,
                        .watched = watched};
  const char *eod = recipe->flags & NX_RECIPE_APPEND_EOD ? "" : NULL;
  if (!nxt_unsaid_read(plan, tokenizer, &unsaid, &wrong)) return nxr_fault_set(fault, "%s", wrong.text);
  made.unsaid = &unsaid;
  bool good = add_inputs(plan, recipe, &files, fault) &&
              nxd_recipe_open(&made, tokenizer, eod, false, fault) &&
              nxd_recipe_open_style(&made, tokenizer, template, &style, fault);
  if (good) {
    nxd_key_of(&files, &made, tokenizer, template, recipe->records, &is.piece, false, key);
    good = build(&is, fault);
  }
  nxj_style_close(&style);
  nxd_recipe_close(&made);
  nxd_files_free(&files);
  nxt_unsaid_free(&unsaid);
  return good;
}
