/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/compile_settings.h"
#include "compiler/config/fronts.h"

#include "compiler/config/command_line.h"
#include "compiler/config/rules/assignment.h"
#include "compiler/config/site_rules.h"
#include "compiler/config/environment.h"
#include "compiler/config/epoch_rows.h"
#include "compiler/config/front/override.h"
#include "compiler/config/front/shell/script.h"
#include "compiler/config/handover.h"
#include "compiler/config/init_from.h"
#include "compiler/config/launches.h"
#include "compiler/config/model_config.h"
#include "compiler/config/refuse_settings.h"
#include "compiler/config/rules/presets.h"
#include "compiler/config/binding/version.h"
#include "compiler/config/world.h"
#include "compiler/diagnostics/allow.h"
#include "compiler/document/scalar.h"
#include "compiler/settings/programs.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct compilation {
  nxc_arena *arena;
  const nxc_request *request;
  nxc_sink *sink;
  nxc_compiled *out;
  nxc_origin origin;
  const nxc_front *front;
  nxc_front_texts texts;
  nxc_front_parts parts; /* of the first */
  nxc_site_rules site;
  nxc_handover handover;
  const nxc_version_search *versions; /* NULL where the user named one, or there is one only */
  const nxc_relative *relative; /* the code that it is for instead; NULL: the system as known */
} compilation;

/* -- a site's rules -------------------------------------------------------------------------------------- */

/* What is wrong with them is told once more for each configuration: none of them is judged without them. */
static bool read_rules(compilation *c, const char *path) {
  bool unreadable, good = nxc_site_rules_read(c->arena, path, c->sink, &c->site, &unreadable);
  c->out->unreadable = c->out->unreadable || unreadable;
  return good;
}

/* -- project --------------------------------------------------------------------------------------------- */

/* What the project says counts where the command line is silent. */
static bool read_project(compilation *c) {
  nxc_project *project = &c->out->project;
  bool good = nxc_project_read(c->arena, c->request->file, c->sink, project);
  for (size_t i = 0; i < project->allow.n_items; i++) nxc_sink_allow(c->sink, project->allow.items[i]);
  for (size_t i = 0; i < project->rules.n_items; i++) good = read_rules(c, project->rules.items[i]) && good;
  for (size_t i = 0; i < c->request->n_rules; i++) good = read_rules(c, c->request->rules[i]) && good;
  return good;
}

static const char *dialect_told(const compilation *c) {
  return c->request->dialect ? c->request->dialect : c->out->project.dialect;
}

/* -- text ------------------------------------------------------------------------------------------------ */

static const nxc_source *read_file(compilation *c, nxc_arena *arena, const char *path) {
  const nxc_source *source = nxc_source_read(arena, path, NXC_DOCUMENT_BYTES_MAX);
  if (source != NULL) return source;
  const char *why = errno == EFBIG ? "it is larger than a configuration may be" : strerror(errno);
  nxc_report(c->sink, "NX1500", NXC_SEVERITY_ERROR, (nxc_span){0},
             "name a configuration that is there and may be read", "cannot read %s: %s", path, why);
  c->out->unreadable = true;
  return NULL;
}

static const nxc_source *read_first(compilation *c) {
  const nxc_request *request = c->request;
  nxc_followed *kept = request->followed;
  if (request->text != NULL || request->file == NULL) return request->text;
  if (kept == NULL) return read_file(c, c->arena, request->file);
  if (kept->source == NULL) kept->source = read_file(c, kept->arena, request->file);
  return kept->source;
}

/* The texts of the file, the layers over it, --set of the dialect's own keys, and the arguments. */
static bool read_texts(compilation *c) {
  const nxc_request *request = c->request;
  nxc_origin *origin = &c->origin;
  origin->layers = nxc_arena_array(c->arena, request->n_layers + 1, sizeof *origin->layers);
  const char **sets = nxc_arena_array(c->arena, request->n_sets + 1, sizeof *sets);
  c->texts = (nxc_front_texts){.arena = c->arena,
                               .sink = c->sink,
                               .layers = origin->layers,
                               .sets = sets,
                               .omegaconf = request->omegaconf,
                               .parts = &c->parts,
                               .launch = request->launch,
                               .followed = request->followed};
  c->texts.first = read_first(c);
  for (size_t i = 0; i < request->n_layers && !c->out->unreadable; i++) {
    const nxc_source *layer = read_file(c, c->arena, request->layers[i]);
    if (layer != NULL) origin->layers[origin->n_layers++] = layer;
  }
  for (size_t i = 0; i < request->n_sets; i++)
    if (!nxc_command_line_is_setting(request->sets[i])) sets[c->texts.n_sets++] = request->sets[i];
  if (request->n_arguments > 0)
    c->texts.arguments = nxc_front_join(c->arena, request->arguments, request->n_arguments);
  const char *words =
      request->script_arguments ? request->script_arguments : c->out->project.script_arguments;
  if (words != NULL) c->texts.script_arguments = nxc_source_new(c->arena, "--args", words, strlen(words));
  c->texts.n_layers = origin->n_layers;
  origin->first = c->texts.first ? c->texts.first : c->texts.arguments;
  return !c->out->unreadable;
}

/* -- dialect --------------------------------------------------------------------------------------------- */

/* By its name: those of a folder are YAML or scripts. */
static bool is_script(const compilation *c) {
  const char *name = c->request->file, *dot = name ? strrchr(name, '.') : NULL;
  return dot != NULL && strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0;
}

/* By its keys, read as nx and nxdt are; when it is one of those the reading stands, and else is forgotten. */
static bool tell_by_keys(compilation *c) {
  nxc_sink *trial = nxc_sink_new(c->arena);
  nxc_front_texts texts = c->texts;
  texts.sink = trial;
  nxc_document *document = nxc_front_read_yaml(&texts);
  const nxc_dialect *dialect =
      document->complete ? nxc_dialect_detect(document, nxc_front_told_by_keys, trial) : NULL;
  c->front = dialect ? nxc_front_find(c->arena, dialect->name, &c->texts.version) : NULL;
  if (c->front != NULL && c->front->read != nxc_front_read_yaml) return true;
  c->out->foreign = c->request->searched && c->front == NULL &&
                    (is_script(c) || !nxc_dialect_hinted(document, nxc_front_told_by_keys));
  if (c->out->foreign) return false;
  if (c->front == NULL) nxc_sink_withdraw(trial, "NX1408", "defaults"); /* nobody knows whose list it is */
  nxc_sink_take(c->sink, trial);
  c->out->document = document;
  return c->front != NULL;
}

static bool choose_front(compilation *c) {
  const char *name = dialect_told(c);
  if (name == NULL) {
    c->front = nxc_front_claiming(c->origin.first, &c->texts.version);
    return c->front != NULL || tell_by_keys(c);
  }
  c->front = nxc_front_find(c->arena, name, &c->texts.version);
  if (c->front != NULL) return true;
  nxc_report(c->sink, "NX1313", NXC_SEVERITY_ERROR, (nxc_span){0},
             nxc_arena_printf(c->arena, "there are %s", nxc_front_names(c->arena)), "there is no dialect %s",
             name);
  return false;
}

/* The newest that knows the document, where the user named none. */
static void choose_version(compilation *c) {
  nxc_compiled *out = c->out;
  bool named = dialect_told(c) != NULL && strchr(dialect_told(c), '@') != NULL;
  if (out->document->root->kind == NXC_NODE_MAP)
    c->relative = nxc_relative_of(c->arena, out->dialect, out->document);
  if (named || c->front->versions == NULL) return;
  c->versions = nxc_versions_search(c->arena, out->dialect, c->front->versions, out->document);
  const nxc_version_search *oldest = c->versions;
  while (oldest[1].version != NULL) oldest++;
  if (c->relative == NULL)
    c->relative = nxc_past_system(c->arena, out->dialect, oldest->version, out->document);
  bool past = c->relative != NULL && c->relative->past;
  bool old = c->relative != NULL && nxc_relative_is_old(c->relative);
  out->version = past ? oldest->version : nxc_version_choose(c->versions, old);
  if (!past) out->version_evidence = nxc_version_evidence(c->arena, c->versions, out->version);
}

static void apply_overrides(compilation *c) {
  const nxc_request *request = c->request;
  for (size_t i = 0; i < c->handover.n_overrides; i++)
    nxc_override_apply(c->out->document, c->handover.overrides[i], c->out->dialect, c->sink);
  for (size_t i = 0; i < request->n_overrides; i++) {
    const char *text = request->overrides[i];
    if (c->front->takes_overrides) {
      nxc_override_apply(c->out->document, text, c->out->dialect, c->sink);
      continue;
    }
    const nxc_source *source = nxc_source_new(c->arena, "override", text, strlen(text));
    nxc_report(c->sink, "NX1029", NXC_SEVERITY_ERROR, (nxc_span){source, 1, 1, (uint32_t)strlen(text)},
               "give --set KEY=VALUE", "%s has no overrides of this form", c->front->dialect);
  }
}

/* Only a script has arguments of its own; what a project says of many files counts where it fits. */
static void check_script_arguments(compilation *c) {
  if (c->request->script_arguments == NULL || c->request->searched || !c->out->document->complete) return;
  if (c->out->document->script) return;
  nxc_report(c->sink, "NX1030", NXC_SEVERITY_ERROR, (nxc_span){c->texts.script_arguments, 1, 1, 1},
             "give options of the training with --set KEY=VALUE",
             "--args are a script's own arguments, and this is no script");
}

/* A script that starts a program of another system, whose files are here: they are read in its place. */
static void follow(compilation *c) {
  nxc_compiled *out = c->out;
  const nxc_document *script = out->document;
  nxc_handover *handed = &c->handover;
  if (!script->complete || !nxc_handover_read(c->arena, script, c->request->file, handed)) return;
  c->front = nxc_front_find(c->arena, script->program->system, &c->texts.version);
  c->origin = (nxc_origin){.layers = nxc_arena_array(c->arena, handed->n_files, sizeof *c->origin.layers)};
  c->origin.first = c->texts.first = read_file(c, c->arena, handed->files[0]);
  for (size_t i = 1; i < handed->n_files; i++)
    c->origin.layers[c->origin.n_layers++] = read_file(c, c->arena, handed->files[i]);
  if (c->out->unreadable) return;
  c->texts.layers = c->origin.layers;
  c->texts.n_layers = c->origin.n_layers;
  if (handed->n_arguments > 0)
    c->texts.arguments = nxc_front_join(c->arena, handed->arguments, handed->n_arguments);
  out->dialect = nxc_dialect_find(c->front->dialect);
  out->version = c->texts.version;
  out->document = c->front->read(&c->texts);
  out->document->handed = handed->shown;
  if (strcmp(script->program->model, "no training") == 0) out->document->program = script->program;
  out->document->program_name = script->program_name;
  out->document->program_at = script->program_at;
}

/* What the file is composed of stands to it as layers do. */
static void take_parts(compilation *c) {
  nxc_origin *origin = &c->origin;
  size_t n_layers = origin->n_layers + c->parts.n_items;
  const nxc_source **layers = nxc_arena_array(c->arena, n_layers + 1, sizeof *layers);
  for (size_t i = 0; i < n_layers; i++)
    layers[i] = i < origin->n_layers ? origin->layers[i] : c->parts.items[i - origin->n_layers];
  origin->layers = layers, origin->n_layers = n_layers;
}

/* The document, with what it reads elsewhere filled in. */
static bool read_document(compilation *c) {
  nxc_compiled *out = c->out;
  out->dialect = nxc_dialect_find(c->front->dialect);
  out->version = c->texts.version;
  assert(out->dialect != NULL);
  if (out->document == NULL) out->document = c->front->read(&c->texts);
  if (c->parts.n_items > 0) take_parts(c);
  check_script_arguments(c);
  follow(c);
  if (!out->document->complete) return false;
  if (out->document->root->kind == NXC_NODE_MAP) apply_overrides(c);
  choose_version(c);
  const nxc_resolving resolving = {.omegaconf = c->request->omegaconf, .open = c->request->judges_only};
  out->resolution = c->front->resolve(out->document, &resolving, c->sink);
  return true;
}

/* $<...> is ours: the system that the file is written for takes it for text. */
static void note_angles(compilation *c) {
  const nxc_node *first = c->out->resolution.first_angle;
  if (first == NULL || strcmp(c->out->dialect->name, "nx") == 0) return;
  const char *fix = c->front->resolve == nxc_resolve
                        ? "write ${...} where the original system reads the file"
                        : "write the value itself where the original system reads the file";
  nxc_report(c->sink, "NX1407", NXC_SEVERITY_NOTE, first->at, fix,
             "$<...> is resolved by nxcfg alone; the original system reads it as text");
}

/* What the program trains; options say it of a part alone, as of the decoder behind a vision encoder. */
static void set_kind(compilation *c) {
  const nxc_document *document = c->out->document;
  if (document->program == NULL || document->program->kind[0] == '\0') return;
  nxc_settings *settings = c->out->settings;
  nxc_value *kind = nxc_arena_alloc(c->arena, sizeof *kind);
  *kind = nxc_string_value(document->program->kind, strlen(document->program->kind));
  const nxc_provenance from = {
      .kind = NXC_FROM_FILE, .at = document->program_at, .option = document->program_name};
  nxc_settings_set(settings, NX_SETTING_MODEL_KIND, kind, &from, c->sink);
}

static void bind(compilation *c) {
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
  bool chosen =
      c->front->versions != NULL && (dialect_told(c) == NULL || strchr(dialect_told(c), '@') == NULL);
  if (chosen) out->version_doubts = nxc_version_doubts(out->binding, c->versions);
}

/* -- rules ----------------------------------------------------------------------------------------------- */

/* The shape of a model by its name is assumed too, and gives way to what is assumed of a setting. */
static bool is_free(const compilation *c, const nxc_assumption *assumption) {
  if (!nxc_settings_known(c->out->settings, assumption->setting)) return true;
  const nxc_provenance *from = nxc_settings_from(c->out->settings, assumption->setting);
  return c->request->model_assumed && from->kind == NXC_FROM_ASSUMED && from->origin != assumption->why;
}

/* What rules may derive from: whatever nothing has given so far. */
static void set_assumptions(compilation *c) {
  for (size_t i = 0; i < c->request->n_assumptions; i++) {
    const nxc_assumption *assumption = &c->request->assumptions[i];
    if (is_free(c, assumption))
      nxc_settings_assume(c->out->settings, assumption->setting, assumption->value, assumption->why, c->sink);
  }
}

static bool apply_rules(compilation *c) {
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

/* -- comments that allow nothing ------------------------------------------------------------------------- */

/* What was not judged cannot be found: skipped rules, and what only `plan` looks for. */
static bool not_judged(const void *context, const char *id) {
  const nxc_compiled *compiled = context;
  if (strncmp(id, "NX3", 3) == 0) return true;
  for (size_t i = 0; i < compiled->rules.n_skipped; i++)
    if (strcmp(compiled->rules.skipped[i].rule->id, id) == 0) return true;
  return false;
}

static void report_unused_comments(compilation *c) {
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

/* -- all ------------------------------------------------------------------------------------------------- */

bool nxc_compile_settings(nxc_arena *arena, const nxc_request *request, nxc_sink *sink,
                          nxc_compiled *compiled) {
  *compiled = (nxc_compiled){0};
  compilation c = {.arena = arena, .request = request, .sink = sink, .out = compiled};
  bool ruled = read_project(&c);
  if (!read_texts(&c) || !choose_front(&c) || !read_document(&c)) {
    nxc_sink_unjudged(sink);
    return false;
  }
  compiled->foreign = request->searched && is_no_training(compiled->document);
  if (compiled->foreign || !nxc_launches_check(arena, request, compiled->document, sink)) return false;
  nxc_environment_check(arena, request, compiled, sink);
  note_angles(&c);
  bind(&c);
  compiled->foreign = request->searched && is_script(&c) && is_strange(compiled->binding);
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
  return nxc_sink_count(sink, NXC_SEVERITY_ERROR) == 0 && ruled && !compiled->unreadable;
}
