/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/compile_settings.h"

#include "compiler/config/command_line.h"
#include "compiler/config/compilation.h"
#include "compiler/config/environment.h"
#include "compiler/config/epoch_rows.h"
#include "compiler/config/init_from.h"
#include "compiler/config/launches.h"
#include "compiler/config/model_config.h"
#include "compiler/config/refuse_settings.h"
#include "compiler/config/rules/assignment.h"
#include "compiler/config/rules/presets.h"
#include "compiler/config/world.h"
#include "compiler/diagnostics/allow.h"
#include "compiler/document/scalar.h"

#include <string.h>

/* $<...> is ours: the system that the file is written for takes it for text. */
static void note_angles(nxc_compilation *c) {
  const nxc_node *first = c->out->resolution.first_angle;
  if (first == NULL || strcmp(c->out->dialect->name, "nx") == 0) return;
  const char *fix = c->front->resolve == nxc_resolve
                        ? "write ${...} where the original system reads the file"
                        : "write the value itself where the original system reads the file";
  nxc_report(c->sink, "NX1407", NXC_SEVERITY_NOTE, first->at, fix,
             "$<...> is resolved by nxcfg alone; the original system reads it as text");
}

/* What the program trains; options say it of a part alone, as of the decoder behind a vision encoder. */
static void set_kind(nxc_compilation *c) {
  const nxc_document *document = c->out->document;
  if (document->program == NULL || document->program->kind[0] == '\0') return;
  nxc_settings *settings = c->out->settings;
  nxc_value *kind = nxc_arena_alloc(c->arena, sizeof *kind);
  *kind = nxc_string_value(document->program->kind, strlen(document->program->kind));
  const nxc_provenance from = {
      .kind = NXC_FROM_FILE, .at = document->program_at, .option = document->program_name};
  nxc_settings_set(settings, NX_SETTING_MODEL_KIND, kind, &from, c->sink);
}

static void bind(nxc_compilation *c) {
  nxc_compiled *out = c->out;
  out->settings = nxc_settings_new(c->arena);
  nxc_settings_speak(out->settings, out->dialect);
  nxc_settings_miss_arguments(out->settings, out->document->n_asked);
  out->binding = nxc_binding_new(c->arena, out->dialect, out->version, out->document, &c->origin,
                                 out->settings, c->sink);
  out->binding->for_nxrun = c->request->for_nxrun;
  const nxc_program_row *program = out->document->program;
  out->binding->program = program;
  out->binding->own_program = out->document->own_program;
  bool part = out->project.partial && c->request->n_layers == 0;
  out->binding->elsewhere = c->request->partial || part || out->document->open;
  bool shares = program != NULL && program->use == NXC_PROGRAM_SHARES;
  out->binding->partial = out->binding->elsewhere || shares;
  out->binding->assumes_defaults = c->request->assumes_defaults && !shares;
  out->binding->own_keys = &out->project.keys;
  out->binding->strict_sections = c->front->strict_sections;
  out->binding->whole_sections = c->front->whole_sections;
  out->binding->relative = c->relative;
  nxc_binding_read(out->binding);
  nxc_binding_report_relative(out->binding);
  out->binding->checks_all = c->front->checks_all;
  out->binding->one_family = c->front->one_family;
  if (c->front->prepare != NULL) c->front->prepare(out->binding);
  out->binding->model_assumed = c->request->model_assumed;
  if (c->request->model_text != NULL) nxc_binding_read_model_text(out->binding, c->request->model_text);
  else nxc_model_config_read(c->arena, c->request, c->out);
  nxc_binding_apply(out->binding);
  nxc_binding_take_relative(out->binding);
  nxc_init_from_take_model(out->binding, !shares);
  set_kind(c);
  if (c->versions != NULL) out->version_doubts = nxc_version_doubts(out->binding, c->versions);
}

/* The shape of a model by its name is assumed too, and gives way to what is assumed of a setting. */
static bool is_free(const nxc_compilation *c, const nxc_assumption *assumption) {
  if (!nxc_settings_known(c->out->settings, assumption->setting)) return true;
  const nxc_provenance *from = nxc_settings_from(c->out->settings, assumption->setting);
  return c->request->model_assumed && from->kind == NXC_FROM_ASSUMED && from->origin != assumption->why;
}

/* What rules may derive from: whatever nothing has given so far. */
static void set_assumptions(nxc_compilation *c) {
  for (size_t i = 0; i < c->request->n_assumptions; i++) {
    const nxc_assumption *assumption = &c->request->assumptions[i];
    if (is_free(c, assumption))
      nxc_settings_assume(c->out->settings, assumption->setting, assumption->value, assumption->why, c->sink);
  }
}

static bool apply_rules(nxc_compilation *c) {
  nxc_compiled *out = c->out;
  out->rules = (nxc_rule_run){.arena = c->arena,
                              .settings = out->settings,
                              .binding = out->binding,
                              .sink = c->sink,
                              .site = c->site};
  bool ok = nxc_presets_apply(c->arena, out->settings, out->dialect, c->sink);
  ok = nxc_rules_derive(&out->rules) && ok;
  if (nxc_epoch_rows_count(out->settings, c->sink)) ok = nxc_rules_derive(&out->rules) && ok;
  set_assumptions(c); /* of what a rule could not derive */
  return nxc_rules_check(&out->rules) && ok;
}

/* What was not judged cannot be found: skipped rules, and what only `plan` looks for. */
static bool not_judged(const void *context, const char *id) {
  const nxc_compiled *compiled = context;
  if (strncmp(id, "NX3", 3) == 0) return true;
  for (size_t i = 0; i < compiled->rules.n_skipped; i++)
    if (strcmp(compiled->rules.skipped[i].rule->id, id) == 0) return true;
  return false;
}

static void report_unused_comments(nxc_compilation *c) {
  if (c->request->omegaconf) return;
  if (c->texts.first != NULL) nxc_allow_report_unused(c->sink, c->texts.first, not_judged, c->out);
  for (size_t i = 0; i < c->origin.n_layers; i++)
    nxc_allow_report_unused(c->sink, c->origin.layers[i], not_judged, c->out);
}

/* A script that starts no training, or starts what prepares or tests. */
static bool is_no_training(const nxc_document *document) {
  return document->idle && (document->program == NULL || document->n_launches > 0);
}

/* A script of another program, whose options are mostly unknown here. */
static bool is_strange(const nxc_binding *binding) {
  size_t n_known = 0;
  for (size_t i = 0; i < binding->dialect->n_options; i++) n_known += binding->options[i].given;
  return n_known <= 2 * binding->n_unknown;
}

bool nxc_compile_settings(nxc_arena *arena, const nxc_request *request, nxc_sink *sink,
                          nxc_compiled *compiled) {
  *compiled = (nxc_compiled){0};
  nxc_compilation c = {.arena = arena, .request = request, .sink = sink, .out = compiled};
  if (!nxc_compilation_read(&c)) return false;
  compiled->foreign = request->searched && is_no_training(compiled->document);
  if (compiled->foreign || !nxc_launches_check(arena, request, compiled->document, sink)) return false;
  nxc_environment_check(arena, request, compiled, sink);
  note_angles(&c);
  bind(&c);
  compiled->foreign = request->searched && nxc_compilation_is_script(&c) && is_strange(compiled->binding);
  if (compiled->foreign) return false;
  if (nxc_command_line_set(arena, request, compiled, sink)) {
    nxc_world_spread(c.arena, c.out, c.sink);
    set_assumptions(&c);
    apply_rules(&c);
  }
  nxc_init_from_check(compiled->binding);
  nxc_world_note_other(c.arena, c.out, c.sink);
  nxc_environment_warn(arena, request, compiled, sink);
  nxc_refuse_settings(arena, request, compiled, sink);
  report_unused_comments(&c);
  return nxc_sink_count(sink, NXC_SEVERITY_ERROR) == 0 && c.ruled && !compiled->unreadable;
}
