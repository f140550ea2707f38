/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata build. */
#include "datasets/build.h"
#include "datasets/command.h"
#include "datasets/key.h"
#include "datasets/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct build_options {
  const char *prefix, *field, *labels, *kind, *split, *tokenizer, *eod, *completion, *messages, *template,
      *chosen, *rejected, *merges, *pattern, *reward;
  nxd_texts special;
  bool add_special, append_eod, lines, force, plain, last_counts;
  int on_error, too_long, loss_on, prompt_keeps;
  uint32_t n_workers, n_special;
  uint64_t limit, max_tokens, max_prompt_tokens, vocab;
} build_options;

static bool read_options(int *n, char **arguments, build_options *o) {
  const nxd_option options[] = {
      {"-o", NXD_TEXT, &o->prefix, "a PREFIX"},
      {"--add-special", NXD_FLAG, &o->add_special},
      {"--append-eod", NXD_FLAG, &o->append_eod},
      {"--chosen", NXD_TEXT, &o->chosen, "the name of a field"},
      {"--completion", NXD_TEXT, &o->completion, "the name of a field"},
      {"--eod", NXD_TEXT, &o->eod, "the text of a token"},
      {"--field", NXD_TEXT, &o->field, "the name of a field"},
      {"--force", NXD_FLAG, &o->force},
      {"--kind", NXD_TEXT, &o->kind, "a kind of input"},
      {"--labels", NXD_TEXT, &o->labels, "the name of a field"},
      {"--last-counts", NXD_FLAG, &o->last_counts},
      {"--limit", NXD_NUMBER, &o->limit, "a number of records"},
      {"--lines", NXD_FLAG, &o->lines},
      {"--loss-on", NXD_CHOICE, &o->loss_on, "answers|all"},
      {"--max-prompt-tokens", NXD_NUMBER, &o->max_prompt_tokens, "a number of tokens"},
      {"--max-tokens", NXD_NUMBER, &o->max_tokens, "a number of tokens"},
      {"--merges", NXD_TEXT, &o->merges, "a file of merges"},
      {"--messages", NXD_TEXT, &o->messages, "the name of a field"},
      {"--on-error", NXD_CHOICE, &o->on_error, "stop|skip"},
      {"--pattern", NXD_TEXT, &o->pattern, "a pattern of words"},
      {"--plain", NXD_FLAG, &o->plain},
      {"--prompt-keeps", NXD_CHOICE, &o->prompt_keeps, "start|end"},
      {"--rejected", NXD_TEXT, &o->rejected, "the name of a field"},
      {"--reward", NXD_TEXT, &o->reward, "the name of a field"},
      {"--special", NXD_TEXTS, &o->special, "the text of a token"},
      {"--special-ids", NXD_COUNT, &o->n_special, "a number of token ids"},
      {"--split", NXD_TEXT, &o->split, "the name of a split"},
      {"--template", NXD_TEXT, &o->template, "a chat template's file"},
      {"--tokenizer", NXD_TEXT, &o->tokenizer, "a tokenizer's file or folder"},
      {"--too-long", NXD_CHOICE, &o->too_long, "drop|cut"},
      {"--vocab", NXD_NUMBER, &o->vocab, "a number of token ids"},
      {"--workers", NXD_COUNT, &o->n_workers, "a number of threads"},
  };
  return nxd_options_read(n, arguments, options, sizeof options / sizeof *options);
}

static int add_inputs(nxd_files *files, const build_options *o, int n, char **arguments) {
  const char *name = o->lines ? "lines" : o->kind;
  const nxd_input_kind *kind = name ? nxd_input_kind_named(name) : NULL;
  nxr_fault fault = {""};
  if (name && kind == NULL) return nxd_usage("no kind of input: ", name);
  for (int i = 0; i < n; i++)
    if (!nxd_files_add(files, arguments[i], kind, o->split, &fault)) {
      fprintf(stderr, "nxdata: %s\n", fault.text);
      return STATUS_USAGE;
    }
  return STATUS_DONE;
}

static const nxd_maker_kind *maker_of(const build_options *o) {
  return o->chosen ? &nxd_make_preferences
         : o->messages ? &nxd_make_dialogues
         : o->completion ? &nxd_make_completions
         : o->labels ? &nxd_make_labelled
                     : &nxd_make_documents;
}

/* The fields of a record, in the order in which its maker reads them. */
static nxd_wanted wanted_of(const build_options *o) {
  bool asked = o->chosen || o->completion;
  const char *first = o->messages ? o->messages : o->field ? o->field : asked ? "prompt" : "text";
  const char *second = o->chosen       ? o->chosen
                       : o->messages   ? "tools"
                       : o->completion ? o->completion
                                       : o->labels;
  nxd_wanted wanted = {.fields = {first, second, o->rejected ? o->rejected : "rejected"},
                       .n_fields = o->chosen ? 3 : second ? 2 : 1};
  wanted.optional = o->chosen ? 1 : o->messages ? 2 : 0;
  if (o->reward) wanted.fields[wanted.n_fields++] = o->reward;
  return wanted;
}

static nxd_recipe recipe_of(const build_options *o) {
  return (nxd_recipe){
      .maker = maker_of(o),
      .wanted = wanted_of(o),
      .all_tokens = o->loss_on == 1,
      .most_tokens = o->max_tokens,
      .cut = o->too_long == 1,
      .prompt_tokens = o->max_prompt_tokens ? o->max_prompt_tokens : o->max_tokens / 2,
      .keep_end = o->prompt_keeps == 1,
      .last_counts = o->last_counts,
      .rewarded = o->reward != NULL,
      .vocab = o->vocab,
      .encoding = (o->add_special ? NXT_ADD_SPECIAL : 0u) | (o->plain ? NXT_PLAIN_TEXT : 0u)};
}

static int build(const build_options *o, const nxd_files *files, const nxd_recipe *recipe,
                 const char *prefix) {
  char key[65];
  nxr_fault fault = {""};
  nxd_standing standing;
  nxd_key_of(files, recipe, o->tokenizer, o->template, o->limit, &(nxd_piece){0}, o->on_error == 1, key);
  const nxd_build is = {.files = files,
                        .recipe = recipe,
                        .prefix = prefix,
                        .tokenizer = o->tokenizer,
                        .key = key,
                        .most_records = o->limit,
                        .skip = o->on_error == 1,
                        .force = o->force,
                        .n_workers = o->n_workers,
                        .watched = isatty(STDERR_FILENO)};
  if (!nxd_build_run(&is, &standing, &fault)) return nxd_damaged(&fault);
  nxd_print_written(prefix, recipe->type_code, &standing);
  return STATUS_DONE;
}

static int open_and_build(const build_options *o, const nxd_files *files, const char *prefix) {
  nxr_fault fault = {""};
  nxd_recipe recipe = recipe_of(o);
  const nxt_unsaid unsaid = {o->merges, o->pattern, o->special.items, o->n_special, (uint32_t)o->vocab};
  recipe.unsaid = &unsaid;
  const char *eod = o->eod ? o->eod : o->append_eod ? "" : NULL;
  nxj_style style = {0};
  int status = STATUS_USAGE;
  if (nxd_recipe_open(&recipe, o->tokenizer, eod, o->field == NULL, &fault) &&
      nxd_recipe_open_style(&recipe, o->tokenizer, o->template, &style, &fault))
    status = build(o, files, &recipe, prefix);
  else fprintf(stderr, "nxdata: %s\n", fault.text);
  nxj_style_close(&style);
  nxd_recipe_close(&recipe);
  return status;
}

int nxd_command_build(int n, char **arguments) {
  build_options options = {0};
  char prefix[NXD_MAX_PREFIX];
  nxd_files files = {0};
  int status = STATUS_USAGE;
  if (!read_options(&n, arguments, &options)) ; /* it was said */
  else if (n == 0) nxd_usage("which text? give at least one file, or - for standard input", "");
  else if (options.prefix == NULL) nxd_usage("where to? give -o PREFIX", "");
  else if (!nxd_read_prefix(options.prefix, prefix)) nxd_usage("no name for a dataset: ", options.prefix);
  else if (options.last_counts && !options.chosen)
    nxd_usage("--last-counts is of pairs of answers: give --chosen", "");
  else if (options.reward && (options.chosen || !(options.completion || options.messages)))
    nxd_usage("--reward is of single answers: give --completion or --messages", "");
  else status = add_inputs(&files, &options, n, arguments);
  if (status == STATUS_DONE) status = open_and_build(&options, &files, prefix);
  nxd_files_free(&files);
  free(options.special.items);
  return status;
}
