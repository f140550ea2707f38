/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/compilation.h"

#include "compiler/config/binding/dialect_detect.h"
#include "compiler/config/command_line.h"
#include "compiler/config/front/override.h"
#include "compiler/config/front/shell/script.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* What is wrong with them is told once more for each configuration: none of them is judged without them. */
static bool read_rules(nxc_compilation *c, const char *path) {
  bool unreadable, good = nxc_site_rules_read(c->arena, path, c->sink, &c->site, &unreadable);
  c->out->unreadable = c->out->unreadable || unreadable;
  return good;
}

/* What the project says counts where the command line is silent. */
static bool read_project(nxc_compilation *c) {
  nxc_project *project = &c->out->project;
  bool good = nxc_project_read(c->arena, c->request->file, c->sink, project);
  for (size_t i = 0; i < project->allow.n_items; i++) nxc_sink_allow(c->sink, project->allow.items[i]);
  for (size_t i = 0; i < c->request->n_allow; i++) nxc_sink_allow(c->sink, c->request->allow[i]);
  for (size_t i = 0; i < project->rules.n_items; i++) good = read_rules(c, project->rules.items[i]) && good;
  for (size_t i = 0; i < c->request->n_rules; i++) good = read_rules(c, c->request->rules[i]) && good;
  return good;
}

static const char *dialect_told(const nxc_compilation *c) {
  return c->request->dialect ? c->request->dialect : c->out->project.dialect;
}

static const nxc_source *read_file(nxc_compilation *c, nxc_arena *arena, const char *path) {
  const nxc_source *source = nxc_source_read(arena, path, NXC_DOCUMENT_BYTES_MAX);
  if (source != NULL) return source;
  const char *why = errno == EFBIG ? "it is larger than a configuration may be" : strerror(errno);
  nxc_report(c->sink, "NX1500", NXC_SEVERITY_ERROR, (nxc_span){0},
             "name a configuration that is there and may be read", "cannot read %s: %s", path, why);
  c->out->unreadable = true;
  return NULL;
}

static const nxc_source *read_first(nxc_compilation *c) {
  const nxc_request *request = c->request;
  nxc_followed *kept = request->followed;
  if (request->text != NULL || request->file == NULL) return request->text;
  if (kept == NULL) return read_file(c, c->arena, request->file);
  if (kept->source == NULL) kept->source = read_file(c, kept->arena, request->file);
  return kept->source;
}

/* The texts of the file, the layers over it, --set of the dialect's own keys, and the arguments. */
static bool read_texts(nxc_compilation *c) {
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

bool nxc_compilation_is_script(const nxc_compilation *c) {
  const char *name = c->request->file, *dot = name ? strrchr(name, '.') : NULL;
  return dot != NULL && strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0;
}

/* By its keys, read as nx and nxdt are; when it is one of those the reading stands, and else is forgotten. */
static bool tell_by_keys(nxc_compilation *c) {
  nxc_sink *trial = nxc_sink_new(c->arena);
  nxc_front_texts texts = c->texts;
  texts.sink = trial;
  nxc_document *document = nxc_front_read_yaml(&texts);
  const nxc_dialect *dialect =
      document->complete ? nxc_dialect_detect(document, nxc_front_told_by_keys, trial) : NULL;
  c->front = dialect ? nxc_front_find(c->arena, dialect->name, &c->texts.version) : NULL;
  if (c->front != NULL && c->front->read != nxc_front_read_yaml) return true;
  c->out->foreign = c->request->searched && c->front == NULL &&
                    (nxc_compilation_is_script(c) || !nxc_dialect_hinted(document, nxc_front_told_by_keys));
  if (c->out->foreign) return false;
  if (c->front == NULL) nxc_sink_withdraw(trial, "NX1408", "defaults"); /* nobody knows whose list it is */
  nxc_sink_take(c->sink, trial);
  c->out->document = document;
  return c->front != NULL;
}

static bool choose_front(nxc_compilation *c) {
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
static void choose_version(nxc_compilation *c) {
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

static void apply_overrides(nxc_compilation *c) {
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
static void check_script_arguments(nxc_compilation *c) {
  if (c->request->script_arguments == NULL || c->request->searched || !c->out->document->complete) return;
  if (c->out->document->script) return;
  nxc_report(c->sink, "NX1030", NXC_SEVERITY_ERROR, (nxc_span){c->texts.script_arguments, 1, 1, 1},
             "give options of the training with --set KEY=VALUE",
             "--args are a script's own arguments, and this is no script");
}

/* A script that starts a program of another system, whose files are here: they are read in its place. */
static void follow(nxc_compilation *c) {
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
static void take_parts(nxc_compilation *c) {
  nxc_origin *origin = &c->origin;
  size_t n_layers = origin->n_layers + c->parts.n_items;
  const nxc_source **layers = nxc_arena_array(c->arena, n_layers + 1, sizeof *layers);
  for (size_t i = 0; i < n_layers; i++)
    layers[i] = i < origin->n_layers ? origin->layers[i] : c->parts.items[i - origin->n_layers];
  origin->layers = layers, origin->n_layers = n_layers;
}

/* The document, with what it reads elsewhere filled in. */
static bool read_document(nxc_compilation *c) {
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

bool nxc_compilation_read(nxc_compilation *c) {
  c->ruled = read_project(c);
  if (read_texts(c) && choose_front(c) && read_document(c)) return true;
  nxc_sink_unjudged(c->sink);
  return false;
}
