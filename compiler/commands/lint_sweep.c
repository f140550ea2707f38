/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg lint-sweep: the variants of a configuration that a file names, judged and estimated as a whole. */
#include "compiler/commands/commands.h"
#include "compiler/commands/judged.h"
#include "compiler/commands/parallel.h"
#include "compiler/commands/summary.h"
#include "compiler/commands/sweep_print.h"
#include "compiler/compare/beyond.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg lint-sweep SWEEP [options]\n"
    "Judges every run of a sweep for the system that its file is written for, and prints\n"
    "one table: verdict, memory of a rank and, with --machine, time of a step. SWEEP is\n"
    "YAML:\n"
    "  file: base.yaml              the configuration, beside SWEEP\n"
    "  set: {KEY: VALUE}            for every run, as --set\n"
    "  sweep: {KEY: [VALUE, ...]}   every combination\n"
    "  runs: [{KEY: VALUE}, ...]    a table of overrides, a run in each row\n"
    "Exit status: 0 every run is valid, 1 some are not.\n"
    "  --format FORMAT      text or json\n"
    "  --for nxrun          what nxrun cannot execute is an error\n"
    "  --memory BYTES       demand that a rank needs no more, as 80GiB\n"
    "  --machine FILE       demand that a rank fits a device of this machine, and time a step\n"
    "  --assume KEY=VALUE   assume it for the memory where nothing gives it (repeatable)\n";

typedef struct job {
  nxc_arena *arena;
  nxc_options options;
  nxc_standard standard;
  nxc_sweep sweep;
  nxc_options *of_runs; /* the command line's, with what each run sets */
  nxc_standard *standards;
  nxc_judged *judged; /* each has its own arena, until it is kept */
  nxc_swept *swept;
} job;

static int complain(const char *what, const char *about) {
  fprintf(stderr, "nxcfg lint-sweep: %s%s (nxcfg lint-sweep --help)\n", what, about);
  return NXC_EXIT_USAGE;
}

/* ---- one run ---- */

static void append(nxc_arena *arena, nxc_texts *to, const nxc_texts *from) {
  for (size_t i = 0; i < from->n_items; i++) {
    to->items = nxc_arena_grow(arena, to->items, to->n_items, sizeof *to->items);
    to->items[to->n_items++] = from->items[i];
  }
}

static void judge(void *context, size_t index) {
  const job *j = context;
  j->judged[index].arena = nxc_arena_new();
  nxc_judge(&j->judged[index], &j->standards[index], j->sweep.file, false);
}

/* What the training depends on, so that runs that train the same are told. */
static const char *fingerprint(nxc_arena *arena, const nxc_compiled *compiled) {
  const nxc_settings *settings = compiled->settings;
  const char *text = "";
  size_t n;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++)
    if (nxc_setting_rows[id].meaning && nxc_has(settings, id))
      text = nxc_arena_printf(arena, "%s%d=%s\n", text, (int)id,
                              nxc_value_show(arena, nxc_settings_value(settings, id)));
  const nxc_beyond *beyond = nxc_beyond_unfollowed(arena, compiled, &n);
  for (size_t i = 0; i < n; i++)
    text = nxc_arena_printf(arena, "%s%s=%s\n", text, beyond[i].name,
                            beyond[i].value ? beyond[i].value : "?");
  return text;
}

/* In the order of the runs, in one thread. */
static void keep(void *context, size_t index) {
  const job *j = context;
  nxc_judged *v = &j->judged[index];
  nxc_swept *run = &j->swept[index];
  const nxc_settings *settings = v->compiled.settings;
  run->sink = nxc_sink_new(j->arena);
  for (size_t i = 0; i < nxc_sink_n_findings(v->sink); i++) {
    nxc_finding finding = *nxc_sink_finding(v->sink, i);
    finding.at = (nxc_span){0}; /* the texts go with the run's arena */
    finding.repair = (nxc_repair){0};
    finding.n_remarks = 0;
    nxc_sink_report(run->sink, &finding);
  }
  run->unreadable = v->compiled.unreadable;
  run->n_errors = nxc_sink_count(v->sink, NXC_SEVERITY_ERROR);
  run->n_warnings = nxc_sink_count(v->sink, NXC_SEVERITY_WARNING);
  run->column = v->column;
  if (run->column.whose) run->column.whose = nxc_arena_strdup(j->arena, run->column.whose);
  if (settings != NULL) {
    run->mesh = nxc_arena_strdup(j->arena, nxc_mesh_show(v->arena, settings));
    run->batches = nxc_arena_strdup(j->arena, nxc_batches_show(v->arena, settings));
    run->fingerprint = nxc_arena_strdup(j->arena, fingerprint(v->arena, &v->compiled));
  }
  for (size_t i = 0; i < index && run->fingerprint && run->same_as == 0; i++)
    if (j->swept[i].fingerprint && strcmp(j->swept[i].fingerprint, run->fingerprint) == 0)
      run->same_as = i + 1;
  nxc_arena_free(v->arena);
}

/* ---- all of them ---- */

static void prepare(job *j) {
  size_t n = j->sweep.n_runs;
  j->of_runs = nxc_arena_array(j->arena, n, sizeof *j->of_runs);
  j->standards = nxc_arena_array(j->arena, n, sizeof *j->standards);
  j->judged = nxc_arena_array(j->arena, n, sizeof *j->judged);
  j->swept = nxc_arena_array(j->arena, n, sizeof *j->swept);
  for (size_t i = 0; i < n; i++) {
    nxc_texts sets = {0};
    append(j->arena, &sets, &j->sweep.sets);
    append(j->arena, &sets, &j->options.sets);
    append(j->arena, &sets, &j->sweep.runs[i].sets);
    j->of_runs[i] = j->options;
    j->of_runs[i].sets = sets;
    j->standards[i] = j->standard;
    j->standards[i].options = &j->of_runs[i];
  }
}

static int lint(job *j) {
  nxc_sink *sink = nxc_sink_new(j->arena);
  const char *path = j->options.files.items[0];
  bool unreadable;
  if (!nxc_sweep_read(j->arena, path, sink, &j->sweep, &unreadable)) {
    if (unreadable)
      return complain("cannot read ", nxc_arena_printf(j->arena, "%s: %s", path, strerror(errno)));
    const nxc_render render = nxc_options_render(&j->options);
    nxc_sink_print(sink, &render, stderr);
    return NXC_EXIT_FOUND;
  }
  prepare(j);
  nxc_parallel(j->sweep.n_runs, judge, keep, j);
  const nxc_sweep_report report = {j->arena, &j->sweep, j->swept, j->options.notes};
  bool json = j->options.format_name && strcmp(j->options.format_name, "json") == 0;
  (json ? nxc_sweep_print_json : nxc_sweep_print)(&report, stdout);
  int status = NXC_EXIT_GOOD;
  for (size_t i = 0; i < j->sweep.n_runs; i++) {
    const nxc_swept *run = &j->swept[i];
    if (run->n_errors > 0 && status == NXC_EXIT_GOOD) status = NXC_EXIT_FOUND;
    if (run->unreadable) status = NXC_EXIT_USAGE;
  }
  return status;
}

static int check_and_lint(job *j, const char *target, const char *memory, const char *machine,
                          const nxc_texts *assume) {
  const char *format = j->options.format_name ? j->options.format_name : "text";
  if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
    return complain("--format takes text or json, not ", format);
  if (j->options.files.n_items != 1) return complain("one SWEEP is judged at a time", "");
  if (target != NULL && strcmp(target, "nxrun") != 0) return complain("--for takes nxrun, not ", target);
  j->standard.for_nxrun = target != NULL;
  j->standard.measures = true;
  if (!nxc_estimate_read(j->arena, "lint-sweep", memory, machine, &j->standard.estimate) ||
      !nxc_estimate_assume(j->arena, "lint-sweep", assume, &j->standard.estimate))
    return NXC_EXIT_USAGE;
  return lint(j);
}

int nxc_command_lint_sweep(int argc, char **argv) {
  job j = {.arena = nxc_arena_new()};
  const char *target = NULL, *memory = NULL, *machine = NULL;
  nxc_texts assume = {0};
  const nxc_extra_option extras[] = {{.name = "--for", .text = &target},
                                     {.name = "--memory", .text = &memory},
                                     {.name = "--machine", .text = &machine},
                                     {.name = "--assume", .list = &assume},
                                     {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(j.arena, &j.options, "lint-sweep", argc - 1, argv + 1, extras, true)) {
    status = NXC_EXIT_GOOD;
    if (j.options.help) nxc_options_print_usage(usage, stdout);
    else status = check_and_lint(&j, target, memory, machine, &assume);
  }
  nxc_arena_free(j.arena);
  return status;
}
