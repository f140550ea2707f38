/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg validate: judges configurations for the system that they are written for.
 *
 * Each FILE has its own verdict: what was found, then one line that says what the configuration is, then
 * one line for each thing that the verdict leaves open (notes, nxrun, rules on unknown settings, the world
 * size, the environment). */
#include "compiler/commands/commands.h"
#include "compiler/commands/estimate.h"
#include "compiler/commands/folders.h"
#include "compiler/commands/options.h"
#include "compiler/commands/parallel.h"
#include "compiler/commands/summary.h"
#include "compiler/diagnostics/characters.h"
#include "compiler/program/records/training.h"
#include "compiler/render/render.h"
#include "compiler/render/render_document.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg validate FILE... [options]\n"
    "Judges each FILE (- is standard input; a folder: every *.yaml and *.yml below it that is a\n"
    "training's) for the system that it is written for.\n"
    "  --format FORMAT      text, short, json, sarif, github or gitlab\n"
    "  --for nxrun          what nxrun cannot execute is an error\n"
    "  --partial            the file is a part: what it does not give may stand elsewhere\n"
    "  --memory BYTES       demand that a rank needs no more, as 80GiB\n"
    "  --machine FILE       demand that a rank fits a device of this machine\n"
    "  --assume KEY=VALUE   assume it for the memory where nothing gives it (repeatable); none\n"
    "                       assumes nothing\n";

typedef struct verdict {
  nxc_arena *arena;
  const nxc_options *options;
  const char *file;
  nxc_sink *sink;
  nxc_compiled compiled;
  nxc_assumed assumed;        /* for the memory's estimate */
} verdict;

/* -- what the verdict leaves open ------------------------------------------------------------------------ */

static size_t count_id(const verdict *v, const char *id, nxc_severity severity) {
  size_t n_found = 0;
  for (size_t i = 0; i < nxc_sink_n_findings(v->sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(v->sink, i);
    n_found += finding->severity == severity && strcmp(finding->id, id) == 0;
  }
  return n_found;
}

static void print_notes(const verdict *v) {
  static const struct {
    const char *id;
    const char *words;
  } kinds[] = {
      {"NX1403", "checked only"},
      {"NX1402", "not read here"},
      {"NX1404", "overridden by the precision preset"},
  };
  size_t n_notes = nxc_sink_count(v->sink, NXC_SEVERITY_NOTE),
         n_refused = count_id(v, "NX1401", NXC_SEVERITY_NOTE);
  size_t n_named =
      n_refused + count_id(v, "NX3102", NXC_SEVERITY_NOTE) + count_id(v, "NX3103", NXC_SEVERITY_NOTE);
  const char *text = "";
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t n_kind = count_id(v, kinds[i].id, NXC_SEVERITY_NOTE);
    n_named += n_kind;
    if (n_kind > 0)
      text = nxc_arena_printf(v->arena, "%s%s%zu %s", text, *text ? ", " : "", n_kind, kinds[i].words);
  }
  size_t n_rest = n_notes - n_named;
  if (n_rest > 0) text = nxc_arena_printf(v->arena, "%s%s%zu more", text, *text ? ", " : "", n_rest);
  const char *hint = v->options->notes ? "" : " (--notes lists them)";
  if (*text) printf("  notes: %s%s\n", text, hint);
  if (n_refused > 0) printf("  nxrun cannot execute %zu of the options yet%s\n", n_refused, hint);
}

static bool listed(const char *list, const char *name) {
  size_t n_bytes = strlen(name);
  for (const char *at = strstr(list, name); at != NULL; at = strstr(at + 1, name)) {
    bool starts = at == list || at[-1] == ' ', ends = at[n_bytes] == '\0' || at[n_bytes] == ',';
    if (starts && ends) return true;
  }
  return false;
}

/* The unknown inputs of all skipped rules, each once. */
static const char *unknown_inputs(const verdict *v) {
  const nxc_rule_run *rules = &v->compiled.rules;
  const char *names = "";
  for (size_t i = 0; i < rules->n_skipped; i++) {
    char *missing = nxc_arena_strdup(v->arena, rules->skipped[i].missing);
    for (char *rest, *name = strtok_r(missing, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
      name += *name == ' ';
      if (!listed(names, name)) names = nxc_arena_printf(v->arena, "%s%s%s", names, *names ? ", " : "", name);
    }
  }
  return names;
}

static void print_skipped(const verdict *v) {
  const nxc_rule_run *rules = &v->compiled.rules;
  const nxc_binding *binding = v->compiled.binding;
  bool other = binding->partial && !binding->elsewhere; /* another program, of which little is known */
  if (rules->n_skipped == 0 || (other && !v->options->notes)) return;
  const char *names = v->compiled.binding->partial ? "" : unknown_inputs(v); /* a part leaves most open */
  printf("  %zu rule%s skipped%s%s\n", rules->n_skipped, rules->n_skipped == 1 ? "" : "s",
         *names ? "; unknown: " : "", names);
  for (size_t i = 0; v->options->notes && i < rules->n_skipped; i++) {
    const nxc_skipped_rule *skipped = &rules->skipped[i];
    if (skipped->failure) printf("    %s cannot be judged: %s\n", skipped->rule->id, skipped->failure);
    else printf("    %s needs %s\n", skipped->rule->id, skipped->missing);
  }
}

static int64_t int_or(const nxc_settings *settings, nxc_setting_id id, int64_t otherwise) {
  return nxc_has(settings, id) ? nxc_int(settings, id) : otherwise;
}

/* Without a world size: what it may be. */
static void print_multiples(const verdict *v) {
  const nxc_settings *settings = v->compiled.settings;
  if (nxc_has(settings, NX_SETTING_MESH_WORLD)) return;
  int64_t unit = int_or(settings, NX_SETTING_MESH_TENSOR, 1) * int_or(settings, NX_SETTING_MESH_PIPELINE, 1) *
                 int_or(settings, NX_SETTING_MESH_CONTEXT, 1);
  printf("  world size unknown: a multiple of %lld", (long long)unit);
  int64_t micro = int_or(settings, NX_SETTING_BATCH_MICRO, 0),
          global = int_or(settings, NX_SETTING_BATCH_GLOBAL, 0);
  if (micro > 0 && global >= micro && global % micro == 0) {
    int64_t n_samples = global / micro, n_shown = 0;
    printf(":");
    for (int64_t data = 1; data <= n_samples && n_shown < 12; data++) {
      if (n_samples % data == 0) printf("%s %lld", n_shown++ ? "," : "", (long long)(unit * data));
    }
    if (n_shown == 12) printf(", ...");
  }
  puts(" (--world-size N)");
}

/* What a script starts. */
static void print_launches(const verdict *v) {
  const nxc_document *document = v->compiled.document;
  const nxc_program_row *program = document->program;
  static const char *const judged[] = {
      [NXC_PROGRAM_TRAINS] = "; what it shares with the training of a decoder is judged",
      [NXC_PROGRAM_SHARES] = "; the options that it shares with a training are judged",
      [NXC_PROGRAM_OWN] = "; its own options are judged, as far as they are known",
      [NXC_PROGRAM_READS] = "; the files that it is given are judged by themselves",
      [NXC_PROGRAM_STARTS] = "",
  };
  if (document->handed != NULL) {
    printf("  it runs %s\n", document->handed);
  } else if (program != NULL) {
    bool nothing = program->use == NXC_PROGRAM_OWN && strlen(program->own) < 2; /* "" or "*" */
    printf("  it runs %s (%s): %s%s\n", program->what, document->program_name, program->model,
           nothing ? "; nothing of it is judged" : judged[program->use]);
  }
  if (document->n_launches < 2 || v->options->launch > 0) return;
  printf("  it starts %zu programs, at lines", document->n_launches);
  for (size_t i = 0; i < document->n_launches; i++) printf("%s %u", i ? "," : "", document->launches[i].line);
  puts("; each is judged, and this tells of the first (--launch N)");
}

/* By what the version was told, or what it decides where nothing tells it. */
static void print_version(const verdict *v) {
  const char *version = v->compiled.version, *evidence = v->compiled.version_evidence;
  if (evidence != NULL) printf("  %s is told by %s\n", version, evidence);
  if (v->compiled.version_doubts != NULL)
    printf("  defaults of %s: %s; other versions have others (--dialect %s@VERSION)\n", version,
           v->compiled.version_doubts, v->compiled.dialect->name);
}

static void print_environment(const verdict *v) {
  const nxc_resolution *resolution = &v->compiled.resolution;
  for (size_t i = 0; i < resolution->n_variables; i++) {
    const nxc_variable *variable = &resolution->variables[i];
    const char *state = variable->value ? "" : variable->default_taken ? " (not set: default)" : " (not set)";
    printf("%s%s%s", i ? ", " : "  reads the environment: ", variable->name, state);
  }
  if (resolution->n_variables > 0) putchar('\n');
}

/* That a rank fits, or why nobody knows; an error is told above. */
static void print_memory(const verdict *v) {
  for (size_t i = 0; i < nxc_sink_n_findings(v->sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(v->sink, i);
    if (strcmp(finding->id, "NX3102") != 0 && strcmp(finding->id, "NX3103") != 0) continue;
    printf("  %s\n", finding->message);
    for (size_t k = 0; k < finding->n_remarks; k++) printf("  %s\n", finding->remarks[k].text);
  }
}

/* What the judgement of the memory took to be so. */
static void print_assumed(const verdict *v) {
  const char *text = nxc_assumed_show(v->arena, &v->assumed);
  if (*text != '\0') printf("  assumed for the memory: %s\n", text);
}

/* -- printing -------------------------------------------------------------------------------------------- */

static void print_verdict(const verdict *v) {
  const char *file = nxc_characters_shown(v->arena, v->file);
  size_t n_errors = nxc_sink_count(v->sink, NXC_SEVERITY_ERROR),
         n_warnings = nxc_sink_count(v->sink, NXC_SEVERITY_WARNING);
  if (n_errors > 0) {
    printf("%s: %zu error%s, %zu warning%s\n", file, n_errors, n_errors == 1 ? "" : "s", n_warnings,
           n_warnings == 1 ? "" : "s");
  } else if (v->compiled.document->idle) {
    const nxc_program_row *program = v->compiled.document->program;
    bool reads = program != NULL && program->use == NXC_PROGRAM_READS;
    printf("%s: %s", file, reads ? "what it runs stands in other files" : "no training");
    if (n_warnings > 0) printf(", %zu warning%s", n_warnings, n_warnings == 1 ? "" : "s");
    putchar('\n');
    if (v->compiled.document->program == NULL) {
      const char *name = v->compiled.document->program_name;
      printf("  it runs %s; nothing is judged\n", name ? name : "no program that is known here");
    }
  } else {
    bool told = v->options->dialect != NULL || v->compiled.project.dialect != NULL;
    const char *how = told ? "" : " (detected)", *name = v->compiled.dialect->name;
    if (v->compiled.version != NULL) name = nxc_arena_printf(v->arena, "%s %s", name, v->compiled.version);
    printf("%s: valid %s%s: %s, %s", file, name, how, nxc_mesh_show(v->arena, v->compiled.settings),
           nxc_batches_show(v->arena, v->compiled.settings));
    if (n_warnings > 0) printf(", %zu warning%s", n_warnings, n_warnings == 1 ? "" : "s");
    putchar('\n');
  }
  if (v->compiled.settings == NULL) return;
  print_launches(v);
  if (!v->compiled.document->idle) print_version(v);
  print_notes(v);
  if (!v->compiled.document->idle) print_skipped(v);
  if (n_errors == 0 && !v->compiled.document->idle) print_multiples(v);
  print_environment(v);
  print_memory(v);
  print_assumed(v);
}

/* With --for nxrun: the limits that nxcfg plan -o judges, where all that they need is known. */
static void judge_limits(verdict *v) {
  nxc_setting_id unknown[NX_N_SETTINGS];
  bool wrong = nxc_sink_count(v->sink, NXC_SEVERITY_ERROR) > 0 || v->compiled.unreadable;
  if (wrong || v->compiled.settings == NULL) return;
  if (nxc_settings_unknown_for_plan(v->compiled.settings, unknown) > 0) return;
  nxc_training training;
  if (nxc_training_read(v->compiled.settings, v->sink, &training))
    (void)nxc_training_judge(v->compiled.settings, v->sink, &training);
}

/* With --memory or --machine: what nxcfg plan would find. */
static void judge_memory(verdict *v, const nxc_estimate_request *asked, const nxc_request *request) {
  bool wrong = nxc_sink_count(v->sink, NXC_SEVERITY_ERROR) > 0 || v->compiled.unreadable;
  if ((asked->memory_bytes == 0 && asked->machine == NULL) || wrong || v->compiled.settings == NULL) return;
  nxc_sink *obstacles = nxc_sink_new(v->arena);
  nxc_plan_bytes plan;
  bool compiled = nxc_program_compile(v->compiled.settings, v->arena, obstacles, &plan);
  nxc_estimate estimate = nxc_estimate_make(asked, request, v->compiled.settings,
                                            compiled ? &plan.plan : NULL, obstacles, v->arena, v->sink);
  v->assumed = estimate.own.assumed;
}

/* -- all files ------------------------------------------------------------------------------------------- */

/* How each file is to be judged. */
typedef struct standard {
  bool for_nxrun, partial;
  nxc_estimate_request estimate;
} standard;

typedef struct validation {
  const nxc_options *options;
  const standard *judged_by;
  const bool *below; /* each file: found below a folder; NULL: there are no files */
  verdict *verdicts; /* one for each file; each has its own arena, until it is printed */
  json_t *document;  /* NULL where findings are printed one by one */
  int status;        /* the worst */
  size_t n_foreign;  /* below folders, and no training's */
} validation;

static bool is_told(const nxc_sink *sink, const nxc_finding *finding) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *other = nxc_sink_finding(sink, i);
    bool same = other->at.line == finding->at.line && other->at.column == finding->at.column;
    if (same && strcmp(other->id, finding->id) == 0 && strcmp(other->message, finding->message) == 0)
      return true;
  }
  return false;
}

/* The other programs that a script starts: what is wrong with each, once. */
static void judge_other_launches(verdict *v, nxc_request request) {
  size_t n_launches = v->compiled.document ? v->compiled.document->n_launches : 0;
  if (request.launch > 0) return;
  for (request.launch = 2; request.launch <= n_launches; request.launch++) {
    nxc_sink *own = nxc_sink_new(v->arena);
    nxc_compiled compiled;
    if (v->options->warnings_are_errors) nxc_sink_warnings_are_errors(own);
    nxc_compile_settings(v->arena, &request, own, &compiled);
    for (size_t i = 0; i < nxc_sink_n_findings(own); i++)
      if (!is_told(v->sink, nxc_sink_finding(own, i))) nxc_sink_report(v->sink, nxc_sink_finding(own, i));
  }
}

/* Runs in any thread. */
static void judge(void *context, size_t index) {
  const validation *all = context;
  const char *file = all->options->files.n_items ? all->options->files.items[index] : NULL;
  verdict *v = &all->verdicts[index];
  *v = (verdict){.arena = nxc_arena_new(), .options = all->options, .file = file ? file : "arguments"};
  v->sink = nxc_sink_new(v->arena);
  nxc_request request = nxc_options_request(all->options, file);
  request.for_nxrun = all->judged_by->for_nxrun;
  request.partial = all->judged_by->partial;
  request.searched = file != NULL && all->below[index];
  request.judges_only = !request.for_nxrun;
  request.all_launches = true;
  if (all->options->warnings_are_errors) nxc_sink_warnings_are_errors(v->sink);
  nxc_compile_settings(v->arena, &request, v->sink, &v->compiled);
  judge_other_launches(v, request);
  if (request.for_nxrun && !request.partial) judge_limits(v);
  judge_memory(v, &all->judged_by->estimate, &request);
}

/* Runs in one thread, in the files' order. */
static void print(void *context, size_t index) {
  validation *all = context;
  verdict *v = &all->verdicts[index];
  const nxc_options *options = all->options;
  if (v->compiled.foreign) {
    all->n_foreign++;
  } else if (all->document != NULL) {
    nxc_findings_add(nxc_document_format_of(options->format), all->document, v->sink, v->file);
  } else {
    nxc_render render = nxc_options_render(options);
    render.file = v->file;
    nxc_sink_print(v->sink, &render, stdout);
    if (options->format == NXC_FORMAT_TEXT) print_verdict(v);
  }
  int own = nxc_sink_count(v->sink, NXC_SEVERITY_ERROR) > 0 ? NXC_EXIT_FOUND : NXC_EXIT_GOOD;
  if (v->compiled.unreadable) own = NXC_EXIT_USAGE;
  if (own > all->status) all->status = own;
  nxc_arena_free(v->arena);
}

/* Returns the status: below folders there must be something to judge. */
static int report_foreign(const validation *all, size_t n_files) {
  if (all->n_foreign == 0) return all->status;
  bool none = all->n_foreign == n_files, text = all->options->format == NXC_FORMAT_TEXT && !none;
  const char *files = all->n_foreign == 1 ? "file below folders is no training configuration"
                                          : "files below folders are no training configurations";
  fflush(stdout);
  fprintf(text ? stdout : stderr, "%s%zu %s and not judged%s\n", none ? "nxcfg validate: " : "",
          all->n_foreign, files, none ? "; there is no other" : " (a file that is named is judged)");
  return none ? NXC_EXIT_USAGE : all->status;
}

static int validate_all(nxc_arena *arena, nxc_options *options, const standard *judged_by) {
  nxc_found_files found;
  if (!nxc_folders_expand(arena, "validate", &options->files, &found)) return NXC_EXIT_USAGE;
  options->files = found.names;
  const nxc_document_format *format = nxc_document_format_of(options->format);
  size_t n_files = options->files.n_items > 0 ? options->files.n_items : 1;
  validation all = {.options = options,
                    .judged_by = judged_by,
                    .below = found.below,
                    .verdicts = nxc_arena_array(arena, n_files, sizeof *all.verdicts),
                    .document = format ? nxc_findings_begin(format) : NULL};
  nxc_parallel(n_files, judge, print, &all);
  if (all.document != NULL) nxc_findings_end(all.document, stdout);
  return report_foreign(&all, n_files);
}

int nxc_command_validate(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  const char *target = NULL, *memory = NULL, *machine = NULL;
  nxc_texts assume = {0};
  standard judged_by = {0};
  const nxc_extra_option extras[] = {{.name = "--for", .text = &target},
                                     {.name = "--partial", .flag = &judged_by.partial},
                                     {.name = "--memory", .text = &memory},
                                     {.name = "--machine", .text = &machine},
                                     {.name = "--assume", .list = &assume},
                                     {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (!nxc_options_parse(arena, &options, "validate", argc - 1, argv + 1, extras, false)) {
    status = NXC_EXIT_USAGE;
  } else if (options.help) {
    printf("%s%s", usage, nxc_options_usage);
    status = NXC_EXIT_GOOD;
  } else if (target != NULL && strcmp(target, "nxrun") != 0) {
    fprintf(stderr, "nxcfg validate: --for takes nxrun, not %s\n", target);
  } else if (options.files.n_items == 0 && options.arguments.n_items == 0) {
    fprintf(stderr, "%s%s", usage, nxc_options_usage);
  } else if (nxc_estimate_read(arena, "validate", memory, machine, &judged_by.estimate) &&
             nxc_estimate_assume(arena, "validate", &assume, &judged_by.estimate)) {
    judged_by.for_nxrun = target != NULL;
    status = validate_all(arena, &options, &judged_by);
  }
  nxc_arena_free(arena);
  return status;
}
