/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/judged.h"
#include "compiler/commands/summary.h"
#include "compiler/diagnostics/characters.h"
#include "compiler/edit/fixes.h"
#include "compiler/render/screen.h"

#include <stdio.h>
#include <string.h>

/* -- what the verdict leaves open ------------------------------------------------------------------------ */

static size_t count_id(const nxc_judged *v, const char *id, nxc_severity severity) {
  size_t n_found = 0;
  for (size_t i = 0; i < nxc_sink_n_findings(v->sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(v->sink, i);
    n_found += finding->severity == severity && strcmp(finding->id, id) == 0;
  }
  return n_found;
}

/* One of the lines behind the verdict. */
static void print_detail(const char *text) {
  nxc_print_filled(stdout, 4, "  ", 0, text, "");
}

static void print_notes(const nxc_judged *v) {
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
  bool of_nxrun = v->standard->options->notes || v->standard->for_nxrun;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t n_kind = count_id(v, kinds[i].id, NXC_SEVERITY_NOTE);
    n_named += n_kind;
    if (n_kind > 0 && (of_nxrun || strcmp(kinds[i].id, "NX1403") != 0))
      text = nxc_arena_printf(v->arena, "%s%s%zu %s", text, *text ? ", " : "", n_kind, kinds[i].words);
  }
  size_t n_rest = n_notes - n_named;
  if (n_rest > 0) text = nxc_arena_printf(v->arena, "%s%s%zu more", text, *text ? ", " : "", n_rest);
  const char *hint = v->standard->options->notes ? "" : " (--notes lists them)";
  if (*text) print_detail(nxc_arena_printf(v->arena, "notes: %s%s", text, hint));
  if (n_refused > 0 && of_nxrun) printf("  nxrun cannot execute %zu of the options yet%s\n", n_refused, hint);
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
static const char *unknown_inputs(const nxc_judged *v) {
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

static void print_skipped(const nxc_judged *v) {
  const nxc_rule_run *rules = &v->compiled.rules;
  const nxc_binding *binding = v->compiled.binding;
  bool other = binding->partial && !binding->elsewhere; /* another program, of which little is known */
  if (rules->n_skipped == 0 || (other && !v->standard->options->notes)) return;
  const char *names = v->compiled.binding->partial ? "" : unknown_inputs(v); /* a part leaves most open */
  print_detail(nxc_arena_printf(v->arena, "%zu rule%s skipped%s%s", rules->n_skipped,
                                rules->n_skipped == 1 ? "" : "s", *names ? "; unknown: " : "", names));
  for (size_t i = 0; v->standard->options->notes && i < rules->n_skipped; i++) {
    const nxc_skipped_rule *skipped = &rules->skipped[i];
    const char *id = skipped->rule->id;
    const char *text = nxc_arena_printf(v->arena, "%s needs %s", id, skipped->missing);
    if (skipped->failure) text = nxc_arena_printf(v->arena, "%s cannot be judged: %s", id, skipped->failure);
    nxc_print_filled(stdout, 6, "    ", 0, text, "");
  }
}

static int64_t int_or(const nxc_settings *settings, nxc_setting_id id, int64_t otherwise) {
  return nxc_has(settings, id) ? nxc_int(settings, id) : otherwise;
}

/* Without a world size: what it may be. */
static void print_multiples(const nxc_judged *v) {
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
static void print_launches(const nxc_judged *v) {
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
  if (document->n_launches < 2 || v->standard->options->launch > 0) return;
  printf("  it starts %zu programs, at lines", document->n_launches);
  for (size_t i = 0; i < document->n_launches; i++) printf("%s %u", i ? "," : "", document->launches[i].line);
  puts("; each is judged, and this tells of the first (--launch N)");
}

/* By what the version was told, or what it decides where nothing tells it. */
static void print_version(const nxc_judged *v) {
  const char *version = v->compiled.version, *evidence = v->compiled.version_evidence;
  if (evidence != NULL) printf("  %s is told by %s\n", version, evidence);
  if (v->compiled.version_doubts != NULL)
    print_detail(nxc_arena_printf(v->arena,
                                  "defaults of %s: %s; other versions have others (--dialect %s@VERSION)",
                                  version, v->compiled.version_doubts, v->compiled.dialect->name));
}

static void print_environment(const nxc_judged *v) {
  const nxc_resolution *resolution = &v->compiled.resolution;
  const char *text = "";
  for (size_t i = 0; i < resolution->n_variables; i++) {
    const nxc_variable *variable = &resolution->variables[i];
    const char *state = variable->value ? "" : variable->default_taken ? " (not set: default)" : " (not set)";
    text = nxc_arena_printf(v->arena, "%s%s%s%s", text, i ? ", " : "reads the environment: ", variable->name,
                            state);
  }
  if (*text != '\0') print_detail(text);
}

/* That a rank fits, or why nobody knows; an error is told above. */
static void print_memory(const nxc_judged *v) {
  for (size_t i = 0; i < nxc_sink_n_findings(v->sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(v->sink, i);
    if (strcmp(finding->id, "NX3102") != 0 && strcmp(finding->id, "NX3103") != 0) continue;
    printf("  %s\n", finding->message);
    for (size_t k = 0; k < finding->n_remarks; k++) printf("  %s\n", finding->remarks[k].text);
  }
}

/* What the judgement of the memory took to be so. */
static void print_assumed(const nxc_judged *v) {
  const char *text = nxc_assumed_show(v->arena, &v->assumed);
  if (*text != '\0') printf("  assumed for the memory: %s\n", text);
}

/* -- printing -------------------------------------------------------------------------------------------- */

void nxc_judged_print(const nxc_judged *v) {
  const char *file = strcmp(v->file, "-") == 0 ? "<stdin>" : nxc_characters_shown(v->arena, v->file);
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
    bool told = v->standard->options->dialect != NULL || v->compiled.project.dialect != NULL;
    const char *how = told ? "" : " (detected)", *name = v->compiled.dialect->name;
    if (v->compiled.version != NULL) name = nxc_arena_printf(v->arena, "%s %s", name, v->compiled.version);
    const char *text =
        nxc_arena_printf(v->arena, ": valid %s%s: %s, %s", name, how,
                         nxc_mesh_show(v->arena, v->compiled.settings),
                         nxc_batches_show(v->arena, v->compiled.settings));
    if (n_warnings > 0)
      text = nxc_arena_printf(v->arena, "%s, %zu warning%s", text, n_warnings, n_warnings == 1 ? "" : "s");
    nxc_print_filled(stdout, 2, file, 0, text, "");
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
