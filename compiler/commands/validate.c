/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg validate: judges configurations for the system that they are written for (judged.h), mends them where
 * it is asked to, and tells at the end what there is in all. */
#include "compiler/commands/commands.h"
#include "compiler/commands/folders.h"
#include "compiler/commands/judged.h"
#include "compiler/commands/mend.h"
#include "compiler/commands/parallel.h"
#include "compiler/commands/tally.h"
#include "compiler/commands/watch.h"
#include "compiler/render/render.h"
#include "compiler/render/render_document.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg validate FILE... [options]\n"
    "Judges each FILE (- is standard input; a folder: the trainings below it) for the\n"
    "system that it is written for. Exit status: 0 no error, 1 an error, 2 a FILE\n"
    "that cannot be read, or wrong usage.\n"
    "  --format FORMAT      text, short, json, sarif, github, gitlab or junit\n"
    "  --fix                mend what has one safe repair: misspellings, moved keys,\n"
    "                       numbers read as text, words of other places\n"
    "  --unsafe             with --fix: make the other repairs too\n"
    "  --diff               print what --fix would change, and change nothing\n"
    "  --watch              judge again whenever a FILE changes\n"
    "  --statistics         count the findings of each kind at the end\n"
    "  -q                   print findings alone\n"
    "  --searched           FILEs that are named, too, are left alone where folders leave\n"
    "                       them out, or they are no training's\n"
    "  --for nxrun          what nxrun cannot execute is an error\n"
    "  --partial            the file is a part: what it lacks may stand elsewhere\n"
    "  --memory BYTES       demand that a rank needs no more, as 80GiB\n"
    "  --machine FILE       demand that a rank fits a device of this machine\n"
    "  --assume KEY=VALUE   assume it for the memory where nothing gives it (repeatable);\n"
    "                       none assumes nothing\n";

/* What is asked of the command, beside how a file is judged. */
typedef struct wish {
  nxc_standard standard;
  bool fix, unsafe, diff, quiet, statistics, watch, searched;
  bool silent; /* nothing but the text or the diff is printed */
} wish;

typedef struct validation {
  const nxc_options *options;
  const wish *asked;
  const bool *below;    /* each file: found below a folder; NULL: there are no files */
  nxc_judged *verdicts; /* one for each file; each has its own arena, until it is printed */
  json_t *document;     /* NULL where findings are printed one by one */
  nxc_fixes *fixes;
  bool written; /* they are in the files */
  nxc_tally tally;
  int status; /* the worst */
} validation;

/* -- one file -------------------------------------------------------------------------------------------- */

static void judge(void *context, size_t index) {
  const validation *all = context;
  const char *file = all->options->files.n_items ? all->options->files.items[index] : NULL;
  nxc_judged *v = &all->verdicts[index];
  v->arena = nxc_arena_new();
  nxc_judge(v, &all->asked->standard, file, all->below != NULL && all->below[index]);
}

static void gather(void *context, size_t index) {
  validation *all = context;
  nxc_judged *v = &all->verdicts[index];
  nxc_fixes_gather(all->fixes, v->sink, all->options->notes);
  nxc_arena_free(v->arena);
}

/* Notes are for those who ask: about nxrun, with --for nxrun; about memory, with what demands it. */
static void add_to_document(const validation *all, const nxc_judged *v) {
  bool notes = all->options->notes || all->asked->standard.for_nxrun;
  if (!notes) nxc_sink_drop_notes(v->sink, "NX31");
  nxc_findings_add(nxc_document_format_of(all->options->format), all->document, v->sink, v->file);
}

/* Runs in one thread, in the files' order. */
static void print(void *context, size_t index) {
  validation *all = context;
  nxc_judged *v = &all->verdicts[index];
  const nxc_options *options = all->options;
  nxc_tally_add(&all->tally, v);
  if (all->document != NULL && !v->compiled.foreign) {
    add_to_document(all, v);
  } else if (!v->compiled.foreign && !all->asked->silent) {
    nxc_render render = nxc_options_render(options);
    render.file = v->file;
    nxc_sink_print(v->sink, &render, stdout);
    if (options->format == NXC_FORMAT_TEXT && !all->asked->quiet) nxc_judged_print(v);
  }
  int own = nxc_sink_count(v->sink, NXC_SEVERITY_ERROR) > 0 ? NXC_EXIT_FOUND : NXC_EXIT_GOOD;
  if (v->compiled.unreadable) own = NXC_EXIT_USAGE;
  if (own > all->status) all->status = own;
  nxc_arena_free(v->arena);
}

/* -- all files ------------------------------------------------------------------------------------------- */

/* Below folders there must be something to judge. */
static int report_foreign(const validation *all, size_t n_files) {
  size_t n_foreign = all->tally.n_foreign;
  if (n_foreign == 0) return all->status;
  bool searched = all->asked->searched, none = n_foreign == n_files && !searched;
  bool quiet = all->asked->quiet || all->asked->silent;
  bool text = all->options->format == NXC_FORMAT_TEXT && !none;
  const char *where = searched ? "" : " below folders";
  const char *are = n_foreign == 1 ? "is no training configuration" : "are no training configurations";
  fflush(stdout);
  if (none || !quiet)
    fprintf(text ? stdout : stderr, "%s%zu file%s%s %s and not judged%s\n", none ? "nxcfg validate: " : "",
            n_foreign, n_foreign == 1 ? "" : "s", where, are,
            none       ? "; there is no other"
            : searched ? ""
                       : " (a file that is named is judged)");
  return none ? NXC_EXIT_USAGE : all->status;
}

/* A repair may uncover what another mends; what goes in circles ends. */
static void mend_all(nxc_arena *arena, validation *all, size_t n_files) {
  enum { PASSES_MAX = 100 };
  all->fixes = nxc_fixes_new(arena, all->asked->unsafe);
  for (int pass = 0; pass < PASSES_MAX; pass++) {
    nxc_parallel(n_files, judge, gather, all);
    if (!nxc_fixes_apply(all->fixes)) return;
  }
}

static void print_end(const validation *all) {
  bool lines = all->document == NULL && !all->asked->silent;
  bool text = lines && all->options->format == NXC_FORMAT_TEXT && !all->asked->quiet;
  const char *fixed = all->written ? nxc_fixes_show(all->fixes) : "";
  if (text && *fixed) puts(fixed);
  if (text) nxc_tally_print(&all->tally);
  if (lines && all->asked->statistics) nxc_tally_print_statistics(&all->tally);
}

static int validate_found(nxc_arena *arena, const nxc_options *options, const wish *asked,
                          const nxc_found_files *found) {
  const nxc_document_format *format = asked->silent ? NULL : nxc_document_format_of(options->format);
  size_t n_files = options->files.n_items > 0 || asked->searched ? options->files.n_items : 1;
  validation all = {.options = options,
                    .asked = asked,
                    .below = found->below,
                    .verdicts = nxc_arena_array(arena, n_files, sizeof *all.verdicts),
                    .document = format ? nxc_findings_begin(format) : NULL,
                    .tally = {.arena = arena, .notes = options->notes}};
  if (asked->fix) mend_all(arena, &all, n_files);
  bool writes = asked->fix && !asked->diff;
  all.written = writes && nxc_mend_finish(arena, all.fixes);
  nxc_parallel(n_files, judge, print, &all);
  if (all.document != NULL) nxc_findings_end(format, all.document, stdout);
  print_end(&all);
  all.status = report_foreign(&all, n_files);
  if (writes && !all.written) return NXC_EXIT_USAGE;
  if (!asked->diff) return all.status;
  return nxc_mend_show(arena, all.fixes, nxc_options_render(options).colour, all.status);
}

static int validate_all(nxc_arena *arena, const nxc_options *options, const wish *asked) {
  nxc_found_files found;
  bool all = nxc_folders_expand(arena, "validate", &options->files, &found);
  if (!all && found.names.n_items == 0) return NXC_EXIT_USAGE;
  if (asked->searched) nxc_folders_search(arena, &found);
  nxc_options own = *options;
  own.files = found.names;
  wish of_own = *asked;
  of_own.standard.options = &own;
  int status = validate_found(arena, &own, &of_own, &found);
  return all ? status : NXC_EXIT_USAGE;
}

/* Standard input is read once, whatever is read again: what is mended of it goes to standard output. */
static int mend_stdin(nxc_arena *arena, const nxc_options *options, const wish *asked) {
  if (options->files.n_items != 1) {
    fprintf(stderr, "nxcfg validate: --fix takes - alone, without other FILEs\n");
    return NXC_EXIT_USAGE;
  }
  if (!nxc_mend_read_stdin(arena)) return NXC_EXIT_USAGE;
  return validate_all(arena, options, asked);
}

static bool has_stdin(const nxc_options *options) {
  for (size_t i = 0; i < options->files.n_items; i++)
    if (strcmp(options->files.items[i], "-") == 0) return true;
  return false;
}

typedef struct one_run {
  const nxc_options *options;
  const wish *asked;
} one_run;

static int validate_once(void *context) {
  const one_run *r = context;
  nxc_arena *arena = nxc_arena_new();
  int status = validate_all(arena, r->options, r->asked);
  nxc_arena_free(arena);
  return status;
}

static int start(nxc_arena *arena, nxc_options *options, wish *asked) {
  if (asked->unsafe && !asked->fix) {
    fprintf(stderr, "nxcfg validate: --unsafe goes with --fix or --diff\n");
    return NXC_EXIT_USAGE;
  }
  if (asked->watch && (asked->fix || has_stdin(options) || options->files.n_items == 0)) {
    fprintf(stderr, "nxcfg validate: --watch takes FILEs, and neither - nor --fix\n");
    return NXC_EXIT_USAGE;
  }
  const nxc_texts all = asked->watch ? nxc_options_inputs(arena, options) : (nxc_texts){0};
  if (asked->watch) return nxc_watch(&all, validate_once, &(one_run){options, asked});
  if (asked->fix && has_stdin(options)) return mend_stdin(arena, options, asked);
  return validate_all(arena, options, asked);
}

int nxc_command_validate(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  const char *target = NULL, *memory = NULL, *machine = NULL;
  nxc_texts assume = {0};
  wish asked = {.standard = {.options = &options}};
  const nxc_extra_option extras[] = {{.name = "--for", .text = &target},
                                     {.name = "--partial", .flag = &asked.standard.partial},
                                     {.name = "--fix", .flag = &asked.fix},
                                     {.name = "--unsafe", .flag = &asked.unsafe},
                                     {.name = "--diff", .flag = &asked.diff},
                                     {.name = "--watch", .flag = &asked.watch},
                                     {.name = "--statistics", .flag = &asked.statistics},
                                     {.name = "-q", .flag = &asked.quiet},
                                     {.name = "--searched", .flag = &asked.searched},
                                     {.name = "--memory", .text = &memory},
                                     {.name = "--machine", .text = &machine},
                                     {.name = "--assume", .list = &assume},
                                     {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (!nxc_options_parse(arena, &options, "validate", argc - 1, argv + 1, extras, false)) {
    status = NXC_EXIT_USAGE;
  } else if (options.help) {
    nxc_options_print_usage(usage, stdout);
    status = NXC_EXIT_GOOD;
  } else if (target != NULL && strcmp(target, "nxrun") != 0) {
    fprintf(stderr, "nxcfg validate: --for takes nxrun, not %s\n", target);
  } else if (options.files.n_items == 0 && options.arguments.n_items == 0) {
    fputs("nxcfg validate: no FILE is named; nxcfg validate . judges what is below this folder "
          "(nxcfg validate --help)\n",
          stderr);
  } else if (nxc_estimate_read(arena, "validate", memory, machine, &asked.standard.estimate) &&
             nxc_estimate_assume(arena, "validate", &assume, &asked.standard.estimate)) {
    asked.standard.for_nxrun = target != NULL;
    asked.fix = asked.fix || asked.diff;
    asked.silent = asked.diff || (asked.fix && has_stdin(&options));
    status = start(arena, &options, &asked);
  }
  nxc_arena_free(arena);
  return status;
}
