/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/why.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/diagnostics/secret.h"
#include "compiler/render/render.h"

#include <jansson.h>
#include <string.h>

enum { CHAIN_MAX = 16 };

typedef struct digging {
  nxc_arena *arena;
  const nxc_compiled *compiled;
  nxc_why *why;
} digging;

static void add(nxc_arena *arena, nxc_why_step **steps, size_t *n_steps, nxc_why_step step) {
  *steps = nxc_arena_grow(arena, *steps, *n_steps, sizeof **steps);
  (*steps)[(*n_steps)++] = step;
}

/* -- nodes ----------------------------------------------------------------------------------------------- */

static const char *show_node(const digging *d, const nxc_node *node, bool raw) {
  if (nxc_node_is_secret(node)) return "(not shown)";
  if (node->failed) return "unknown";
  const nxc_value *value =
      raw ? nxc_node_raw_value(d->arena, node) : nxc_node_public_value(d->arena, node);
  return value ? nxc_value_show(d->arena, value) : "unknown";
}

/* The interpolation that stands there; not of keys that are secret themselves. */
static const char *interpolation_of(const digging *d, const nxc_node *node) {
  if (node->derivation == NULL || node->raw == NULL) return NULL;
  for (const nxc_node *up = node; up != NULL; up = up->parent)
    if (up->key != NULL && nxc_key_is_secret(up->key)) return NULL;
  return nxc_arena_strndup(d->arena, node->raw, node->raw_bytes);
}

static const char *show_variable(const digging *d, const char *name) {
  const nxc_resolution *resolution = &d->compiled->resolution;
  for (size_t i = 0; i < resolution->n_variables; i++) {
    if (strcmp(resolution->variables[i].name, name) != 0) continue;
    if (resolution->variables[i].value != NULL) return "set (not shown)";
    return resolution->variables[i].default_taken ? "not set: default" : "not set";
  }
  return "unknown";
}

/* What an interpolation read, and what that read in turn. */
static void add_reads(const digging *d, nxc_why_step *step, const nxc_node *node, unsigned depth) {
  const nxc_derivation *from = node->derivation;
  for (size_t i = 0; from != NULL && depth < CHAIN_MAX && i < from->n_references; i++) {
    const nxc_reference *reference = &from->references[i];
    nxc_why_step read = {.kind = "environment", .name = reference->variable};
    if (reference->node != NULL) {
      read = (nxc_why_step){.kind = "reference",
                            .name = nxc_node_path(d->arena, reference->node),
                            .value = show_node(d, reference->node, false),
                            .text = interpolation_of(d, reference->node),
                            .at = nxc_node_span(reference->node)};
      add_reads(d, &read, reference->node, depth + 1);
    } else {
      read.value = show_variable(d, reference->variable);
      read.at = nxc_node_span_inside(node, reference->offset, reference->length);
    }
    add(d->arena, &step->reads, &step->n_reads, read);
  }
}

/* Every layer's word, the oldest first. */
static void add_nodes(const digging *d, const nxc_node *node, const char *option) {
  if (node->replaced != NULL) add_nodes(d, node->replaced, option);
  bool last = nxc_node_lookup(d->compiled->document->root, option) == node;
  nxc_provenance_kind kind = nxc_origin_kind(&d->compiled->binding->origin, node->at);
  nxc_why_step step = {.kind = nxc_provenance_kind_name(kind),
                       .name = option,
                       .value = show_node(d, node, !last),
                       .text = last ? interpolation_of(d, node) : NULL,
                       .at = nxc_node_span(node)};
  if (last || node->derivation != NULL) add_reads(d, &step, node, 0);
  add(d->arena, &d->why->steps, &d->why->n_steps, step);
}

static void add_option(const digging *d, const nxc_bound *bound, bool is_default_known) {
  const nxc_option_row *row = bound->row;
  const nxc_value *initial = nxc_option_default(row, d->compiled->version);
  if (initial != NULL && !is_default_known) {
    add(d->arena, &d->why->steps, &d->why->n_steps,
        (nxc_why_step){.kind = nxc_provenance_kind_name(NXC_FROM_DIALECT_DEFAULT),
                       .name = row->name,
                       .value = nxc_value_show(d->arena, initial)});
  }
  if (bound->node != NULL) add_nodes(d, bound->node, row->name);
}

/* -- settings -------------------------------------------------------------------------------------------- */

/* The bound option that spoke, where one did in the document. */
static const nxc_bound *speaker(const digging *d, const nxc_provenance *from) {
  bool own = strcmp(d->compiled->dialect->name, "nx") == 0;
  const char *option = from->option ? from->option : own ? d->why->path : NULL;
  const nxc_bound *bound = option ? nxc_binding_find(d->compiled->binding, option) : NULL;
  bool spoke = bound != NULL && bound->node != NULL && from->kind >= NXC_FROM_FILE;
  return spoke && nxc_origin_kind(&d->compiled->binding->origin, bound->node->at) == from->kind ? bound
                                                                                                : NULL;
}

static void add_provenance(const digging *d, const nxc_provenance *from) {
  if (from->previous != NULL) add_provenance(d, from->previous);
  const nxc_bound *bound = speaker(d, from);
  bool absent = from->kind == NXC_FROM_ABSENT, fixed = from->kind == NXC_FROM_FIXED;
  const char *value = from->redacted ? "(not shown)"
                      : absent       ? "-"
                      : from->value  ? nxc_value_show(d->arena, from->value)
                                     : "unknown";
  const char *origin = from->origin ? from->origin : from->option;
  if (fixed) origin = nxc_arena_printf(d->arena, "by %s: %s", d->compiled->dialect->name, origin);
  size_t n_before = d->why->n_steps;
  if (bound != NULL) add_option(d, bound, strcmp(bound->row->name, d->why->path) == 0);
  if (bound != NULL && d->why->n_steps > n_before && !from->redacted) {
    d->why->steps[d->why->n_steps - 1].value = value;
  } else if (bound == NULL) {
    add(d->arena, &d->why->steps, &d->why->n_steps,
        (nxc_why_step){.kind = nxc_provenance_kind_name(from->kind),
                       .name = origin,
                       .value = value,
                       .inputs = from->input_names,
                       .at = from->kind == NXC_FROM_RULE ? (nxc_span){0} : from->at});
  }
}

static const nxc_bound *find_option(const nxc_compiled *compiled, const char *path) {
  const nxc_bound *bound = nxc_binding_find(compiled->binding, path);
  if (bound != NULL && bound->row->alias_of)
    bound = nxc_binding_find(compiled->binding, bound->row->alias_of);
  if (bound != NULL) return bound;
  for (size_t i = 0; i < compiled->dialect->n_options; i++) {
    const nxc_option_row *row = &compiled->dialect->options[i];
    if (!nxc_name_ends_in(row->name, path) || row->alias_of != NULL) continue;
    if (bound != NULL) return NULL;
    bound = &compiled->binding->options[i];
  }
  return bound;
}

/* A row for names that are not listed says nothing of any of them; the document has each. */
static bool is_of_many(const nxc_bound *bound) {
  const char *name = bound->row->name;
  return name[0] != '\0' && name[strlen(name) - 1] == '*';
}

static void tell_of_one(const digging *d, const char *path) {
  const nxc_node *node = nxc_node_lookup(d->compiled->document->root, path);
  *d->why = (nxc_why){.path = path, .value = node ? show_node(d, node, false) : "unknown"};
  if (node != NULL) add_nodes(d, node, path);
}

/* A variable of a script's environment, by its name alone. */
static const char *variable_path(const digging *d, const char *name) {
  const char *path = nxc_arena_printf(d->arena, "environment.%s", name);
  const nxc_bound *all = nxc_binding_find(d->compiled->binding, "environment");
  return all != NULL && nxc_node_lookup(d->compiled->document->root, path) != NULL ? path : NULL;
}

static const char *find_nearest(nxc_arena *arena, const nxc_compiled *compiled, const char *path) {
  size_t n_options = compiled->dialect->n_options;
  const char **names = nxc_arena_array(arena, NX_N_SETTINGS + n_options, sizeof *names);
  for (size_t id = 0; id < NX_N_SETTINGS; id++) names[id] = nxc_setting_path((nxc_setting_id)id);
  for (size_t i = 0; i < n_options; i++) names[NX_N_SETTINGS + i] = compiled->dialect->options[i].name;
  return nxc_nearest(path, names, NX_N_SETTINGS + n_options);
}

const nxc_why *nxc_why_find(nxc_arena *arena, const nxc_compiled *compiled, const char *path,
                            const char **nearest) {
  nxc_why *why = nxc_arena_alloc(arena, sizeof *why);
  const digging d = {arena, compiled, why};
  nxc_setting_id id = nxc_setting_find(path);
  const nxc_bound *bound = id == NX_N_SETTINGS ? find_option(compiled, path) : NULL;
  *nearest = NULL;
  if (id == NX_N_SETTINGS && bound == NULL && variable_path(&d, path) != NULL) {
    path = variable_path(&d, path);
    bound = find_option(compiled, path);
  }
  if (bound != NULL && is_of_many(bound)) {
    tell_of_one(&d, path);
  } else if (id < NX_N_SETTINGS) {
    *why = (nxc_why){.path = path, .is_setting = true, .value = nxc_settings_show(compiled->settings, id)};
    add_provenance(&d, nxc_settings_from(compiled->settings, id));
  } else if (bound != NULL) {
    const char *value = bound->secret  ? "(not shown)"
                        : bound->value ? nxc_value_show(arena, bound->value)
                                       : "unknown";
    *why = (nxc_why){.path = bound->row->name, .value = value};
    add_option(&d, bound, false);
  } else {
    *nearest = find_nearest(arena, compiled, path);
    return NULL;
  }
  if (why->n_steps > 0) why->steps[why->n_steps - 1].counts = true;
  return why;
}

/* -- printing -------------------------------------------------------------------------------------------- */

static void print_step(const nxc_why_step *step, int depth, FILE *out) {
  bool more = step->name != NULL || step->at.source != NULL;
  fprintf(out, "%s%*s%-16s %-*s", step->counts ? "=>" : "  ", 2 * depth + 1, "", step->kind, more ? 24 : 0,
          step->value);
  if (step->name != NULL) fprintf(out, " %s", step->name);
  if (step->text != NULL) fprintf(out, ": %s", step->text);
  if (step->inputs != NULL) fprintf(out, " from %s", step->inputs);
  if (step->at.source != NULL)
    fprintf(out, " (%s:%u:%u)", step->at.source->name, step->at.line, step->at.column);
  fputc('\n', out);
  for (size_t i = 0; i < step->n_reads; i++) print_step(&step->reads[i], depth + 1, out);
}

void nxc_why_print(const nxc_why *why, FILE *out) {
  fprintf(out, "%s is %s\n", why->path, why->value);
  for (size_t i = 0; i < why->n_steps; i++) print_step(&why->steps[i], 0, out);
  if (why->n_steps == 0) fputs("   nothing says anything about it\n", out);
}

static json_t *step_to_json(const nxc_why_step *step) {
  json_t *object = json_pack("{s:s, s:o}", "kind", step->kind, "value", nxc_json_text(step->value));
  if (step->name != NULL) json_object_set_new(object, "name", nxc_json_text(step->name));
  if (step->text != NULL) json_object_set_new(object, "text", nxc_json_text(step->text));
  if (step->inputs != NULL) json_object_set_new(object, "inputs", nxc_json_text(step->inputs));
  if (step->at.source != NULL) {
    json_object_set_new(object, "file", nxc_json_text(step->at.source->name));
    json_object_set_new(object, "line", json_integer(step->at.line));
    json_object_set_new(object, "column", json_integer(step->at.column));
  }
  if (step->counts) json_object_set_new(object, "counts", json_true());
  json_t *reads = json_array();
  for (size_t i = 0; i < step->n_reads; i++) json_array_append_new(reads, step_to_json(&step->reads[i]));
  if (step->n_reads > 0) json_object_set(object, "reads", reads);
  json_decref(reads);
  return object;
}

struct json_t *nxc_why_to_json(const nxc_why *why) {
  json_t *history = json_array();
  for (size_t i = 0; i < why->n_steps; i++) json_array_append_new(history, step_to_json(&why->steps[i]));
  return json_pack("{s:s, s:s, s:o, s:o}", "path", why->path, "kind", why->is_setting ? "setting" : "option",
                   "value", nxc_json_text(why->value), "history", history);
}
