/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata build. */
#include "datasets/build.h"
#include "datasets/command.h"
#include "datasets/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WORKERS = 256, END_OF_BYTES = 256 };
enum { TYPE_INT32 = 4, TYPE_UINT16 = 8 };
static const uint64_t MOST_UINT16 = 65500; /* of a vocabulary, as Megatron-LM chooses */

typedef struct build_options {
  const char *prefix, *field, *labels, *kind, *split;
  bool append_end, lines, force;
  int on_error, too_long;
  uint64_t n_workers, limit, max_tokens, vocab;
} build_options;

static bool read_options(int *n, char **arguments, build_options *o) {
  const nxd_option options[] = {
      {"-o", NXD_TEXT, &o->prefix, "a PREFIX"},
      {"--append-eod", NXD_FLAG, &o->append_end},
      {"--field", NXD_TEXT, &o->field, "the name of a field"},
      {"--force", NXD_FLAG, &o->force},
      {"--kind", NXD_TEXT, &o->kind, "a kind of input"},
      {"--labels", NXD_TEXT, &o->labels, "the name of a field"},
      {"--limit", NXD_NUMBER, &o->limit, "a number of records"},
      {"--lines", NXD_FLAG, &o->lines},
      {"--max-tokens", NXD_NUMBER, &o->max_tokens, "a number of tokens"},
      {"--on-error", NXD_CHOICE, &o->on_error, "stop|skip"},
      {"--split", NXD_TEXT, &o->split, "the name of a split"},
      {"--too-long", NXD_CHOICE, &o->too_long, "drop|cut"},
      {"--vocab", NXD_NUMBER, &o->vocab, "a number of token ids"},
      {"--workers", NXD_NUMBER, &o->n_workers, "a number of threads"},
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

static nxd_recipe recipe_of(const build_options *o) {
  nxd_recipe recipe = {.maker = o->labels ? &nxd_make_labelled : &nxd_make_documents, .end = -1,
                       .most_tokens = o->max_tokens, .cut = o->too_long == 1, .vocab = o->vocab};
  recipe.wanted.fields[recipe.wanted.n_fields++] = o->field ? o->field : "text";
  if (o->labels) recipe.wanted.fields[recipe.wanted.n_fields++] = o->labels;
  recipe.wanted.pieces = o->max_tokens == 0;
  if (o->append_end) recipe.end = END_OF_BYTES;
  if (o->field == NULL && o->vocab == 0) recipe.vocab = END_OF_BYTES + 1;
  recipe.type_code = recipe.vocab > 0 && recipe.vocab < MOST_UINT16 ? TYPE_UINT16 : TYPE_INT32;
  return recipe;
}

static void print_left_out(const nxd_standing *standing) {
  if (standing->n_empty > 0)
    printf("empty        %" PRIu64 " records without a token were left out\n", standing->n_empty);
  if (standing->n_long > 0)
    printf("too long     %" PRIu64 " documents were left out (--max-tokens)\n", standing->n_long);
  if (standing->n_skipped > 0)
    printf("skipped      %" PRIu64 " malformed records, the first: %s\n", standing->n_skipped,
           standing->first_skipped);
}

static int build(const build_options *o, const nxd_files *files, const char *prefix) {
  char key[65];
  nxr_fault fault = {""};
  nxd_standing standing;
  const nxd_recipe recipe = recipe_of(o);
  nxd_key_of(files, &recipe, o->limit, o->on_error, key);
  long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t n_workers = o->n_workers ? o->n_workers : n_cores > 0 ? (uint64_t)n_cores : 1;
  const nxd_build is = {.files = files, .recipe = &recipe, .prefix = prefix, .key = key,
                        .most_records = o->limit, .skip = o->on_error == 1, .force = o->force,
                        .n_workers = n_workers > MOST_WORKERS ? MOST_WORKERS : (uint32_t)n_workers,
                        .watched = isatty(STDERR_FILENO)};
  if (!nxd_build_run(&is, &standing, &fault)) return nxd_damaged(&fault);
  nxd_print_written(prefix, recipe.type_code, &standing);
  print_left_out(&standing);
  return STATUS_DONE;
}

int nxd_command_build(int n, char **arguments) {
  build_options options = {0};
  char prefix[NXD_MAX_PREFIX];
  nxd_files files = {0};
  if (!read_options(&n, arguments, &options)) return STATUS_USAGE;
  if (n == 0) return nxd_usage("which text? give at least one file, or - for standard input", "");
  if (options.prefix == NULL) return nxd_usage("where to? give -o PREFIX", "");
  if (!nxd_read_prefix(options.prefix, prefix)) return nxd_usage("no name for a dataset: ", options.prefix);
  int status = add_inputs(&files, &options, n, arguments);
  if (status == STATUS_DONE) status = build(&options, &files, prefix);
  nxd_files_free(&files);
  return status;
}
