/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/binding/dialect.h"

#include "compiler/config/interpolation/interpolate.h"
#include "compiler/document/repair.h"
#include "compiler/document/scalar.h"
#include "compiler/settings/domain.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

nxc_provenance_kind nxc_origin_kind(const nxc_origin *origin, nxc_span at) {
  if (at.source == origin->first) return NXC_FROM_FILE;
  for (size_t i = 0; i < origin->n_layers; i++) {
    if (at.source == origin->layers[i]) return NXC_FROM_LAYER;
  }
  return NXC_FROM_CLI;
}

static nxc_bound *new_bounds(nxc_arena *arena, const nxc_dialect *dialect, const char *version) {
  nxc_bound *bounds = nxc_arena_array(arena, dialect->n_options + 1, sizeof *bounds);
  for (size_t i = 0; i < dialect->n_options; i++) {
    bounds[i] = (nxc_bound){.row = &dialect->options[i]};
    bounds[i].value = nxc_option_default(bounds[i].row, version);
    bounds[i].kind = bounds[i].value ? NXC_FROM_DIALECT_DEFAULT : NXC_FROM_UNKNOWN;
  }
  return bounds;
}

nxc_binding *nxc_binding_new(nxc_arena *arena, const nxc_dialect *dialect, const char *version,
                             nxc_document *document, const nxc_origin *origin, nxc_settings *settings,
                             nxc_sink *sink) {
  nxc_binding *binding = nxc_arena_alloc(arena, sizeof *binding);
  *binding = (nxc_binding){.arena = arena,
                           .sink = sink,
                           .dialect = dialect,
                           .version = version,
                           .document = document,
                           .origin = *origin,
                           .settings = settings};
  binding->options = new_bounds(arena, dialect, version);
  binding->model_dialect = nxc_dialect_find("hf_config");
  if (binding->model_dialect != NULL)
    binding->model_options = new_bounds(arena, binding->model_dialect, NULL);
  return binding;
}

/* Whether one of a list is a word that the system has not. */
static bool lists_own_word(const nxc_binding *binding, const nxc_bound *bound, const nxc_value *value) {
  bool own = false;
  for (size_t i = 0; value->kind == NXC_LIST && i < value->n_items && !own; i++) {
    const nxc_value *item = &value->items[i];
    const char *known =
        item->kind == NXC_STRING ? nxc_relative_word(binding->relative, bound->row->name, item->text) : NULL;
    own = known != NULL && *known == '\0';
  }
  return own;
}

/* The same as the system writes it, of a code that grew out of it. NULL: the system has no such thing. */
static const nxc_value *known_word(nxc_binding *binding, const nxc_bound *bound, const nxc_value *value) {
  if (binding->relative != NULL && lists_own_word(binding, bound, value)) return NULL;
  bool word = binding->relative != NULL && value->kind == NXC_STRING;
  const char *known = word ? nxc_relative_word(binding->relative, bound->row->name, value->text) : NULL;
  if (known == NULL) return value;
  if (*known == '\0') return NULL;
  nxc_value *made = nxc_arena_alloc(binding->arena, sizeof *made);
  *made = nxc_string_value(known, strlen(known));
  return made;
}

/* Judges a given value. What is wrong with it is reported by nxc_binding_apply, which knows whether it is
 * read. */
static const nxc_value *judge_given(nxc_binding *binding, const nxc_bound *bound, const nxc_node *node,
                                    const char *name) {
  const nxc_node *final = nxc_node_final(node);
  if (final->failed) return NULL;
  const nxc_value *value = nxc_node_value(binding->arena, node);
  if (value == NULL) return NULL;
  value = known_word(binding, bound, value);
  if (value == NULL) return NULL;
  nxc_verdict verdict = nxc_domain_judge(binding->arena, &bound->row->domain, value, false);
  if (verdict.misfit == NXC_FITS) return verdict.value;
  binding->misfits =
      nxc_arena_grow(binding->arena, binding->misfits, binding->n_misfits, sizeof *binding->misfits);
  binding->misfits[binding->n_misfits++] = (nxc_misfit_value){bound, node->at, name, value, verdict};
  return NULL;
}

/* What other versions of the system have: an option, or a word of one. A code that grew out of it may have it
 * beside what is younger. */
static void report_other_version(nxc_binding *binding, nxc_span at, const char *what,
                                 const nxc_versioned *kept, const char *advice, nxc_repair repair) {
  const char *dialect = binding->dialect->name;
  const char *fix = nxc_arena_printf(binding->arena, "%s, or read the file with --dialect %s@%s", advice,
                                     dialect, nxc_version_of_span(binding->arena, kept->versions[0]));
  bool grown = binding->relative != NULL && !binding->relative->past;
  nxc_severity severity = grown ? NXC_SEVERITY_WARNING : NXC_SEVERITY_ERROR;
  nxc_report_repair(binding->sink, "NX1320", severity, at, fix, repair, "%s of %s %s, and this is read as %s",
                    what, dialect, nxc_versions_show(binding->arena, kept->versions, kept->n_versions),
                    binding->version);
}

static bool word_is_known(const nxc_binding *binding, const nxc_versioned *kept) {
  return kept == NULL || nxc_in_version(kept->versions, kept->n_versions, binding->version);
}

/* Whether this version knows the word; one that it does not know is reported. */
static bool has_word(nxc_binding *binding, const nxc_option_row *row, const nxc_value *word,
                     const nxc_node *node, const char *name) {
  if (word->kind != NXC_STRING) return true;
  const nxc_versioned *kept = nxc_option_word(row, word->text);
  if (word_is_known(binding, kept)) return true;
  const char *words = "write ";
  size_t n_words = 0;
  for (size_t i = 0; i < row->domain.n_values; i++) {
    const char *other = row->domain.values[i];
    if (word_is_known(binding, nxc_option_word(row, other)))
      words = nxc_arena_printf(binding->arena, "%s%s%s", words, n_words++ ? ", " : "", other);
  }
  const char *what = nxc_arena_printf(binding->arena, "%s %s is a word", name, word->text);
  report_other_version(binding, node->at, what, kept, words, (nxc_repair){0});
  return false;
}

/* The same of a value: a word, or a list of such. */
static bool has_words(nxc_binding *binding, const nxc_bound *bound, const nxc_node *node, const char *name) {
  const nxc_value *value = bound->value;
  if (value == NULL || bound->row->n_words_in == 0) return true;
  if (value->kind != NXC_LIST) return has_word(binding, bound->row, value, node, name);
  bool all = true;
  for (size_t i = 0; i < value->n_items; i++)
    all = has_word(binding, bound->row, &value->items[i], node, name) && all;
  return all;
}

/* An option that this version does not have becomes the one that it has in its place, or goes. Neither is a
 * safe repair: the version, too, may be another than it is taken for, and what took its place may count
 * otherwise. */
static nxc_repair repair_past(nxc_binding *binding, const nxc_option_row *row, const nxc_node *node) {
  const char *became = row->became;
  if (became == NULL) return nxc_repair_remove(binding->arena, node, false);
  if (strchr(became, ' ') != NULL) return (nxc_repair){0}; /* with a value of its own, or one of several */
  return nxc_binding_rename(binding, node, row->name, became, false);
}

static void bind_option(nxc_binding *binding, const nxc_option_row *row, const nxc_node *node,
                        const char *name) {
  const nxc_option_row *target = row;
  if (!nxc_in_version(row->versions, row->n_versions, binding->version)) {
    if (binding->program != NULL && nxc_program_row_has(binding->program, name)) return; /* its own */
    const nxc_versioned kept = {.versions = row->versions, .n_versions = row->n_versions};
    const char *what = nxc_arena_printf(binding->arena, "%s is an option", name);
    const char *advice =
        row->became ? nxc_arena_printf(binding->arena, "write %s", row->became) : "leave it out";
    report_other_version(binding, nxc_node_span(node), what, &kept, advice, repair_past(binding, row, node));
    return;
  }
  if (row->alias_of != NULL) {
    target = nxc_option_find(binding->dialect, row->alias_of);
    assert(target != NULL && target->alias_of == NULL);
    nxc_report_repair(binding->sink, "NX1405", NXC_SEVERITY_NOTE, nxc_node_span(node),
                      nxc_arena_printf(binding->arena, "write %s", target->name),
                      nxc_binding_rename(binding, node, name, target->name, true), "%s is read as %s", name,
                      target->name);
  }
  nxc_bound *bound = &binding->options[target - binding->dialect->options];
  bool free_form = strcmp(target->name + strlen(target->name) - 1, "*") == 0;
  if (bound->given && !free_form) {
    nxc_report(binding->sink, "NX1406", NXC_SEVERITY_ERROR, nxc_node_span(node), "keep one of them",
               "%s and %s are two names of one option, and both are given",
               nxc_node_path(binding->arena, bound->node), name);
    return;
  }
  bound->given = true;
  bound->node = node;
  bound->at = nxc_node_span(node);
  bound->secret = nxc_node_is_secret(node);
  bound->kind = nxc_origin_kind(&binding->origin, node->at);
  bound->value = judge_given(binding, bound, node, name);
  if (!has_words(binding, bound, node, name)) bound->value = NULL;
  bool section = nxc_dialect_has_section(binding->dialect, target->name);
  if (bound->value == NULL && section) nxc_binding_doubt_section(binding, target->name, node);
}

static void read_map(nxc_binding *binding, const nxc_node *map, const char *section);

static void read_section(nxc_binding *binding, const nxc_node *node, const char *name) {
  const nxc_node *final = nxc_node_final(node);
  if (final->failed) return;
  if (final->kind == NXC_NODE_MAP) {
    read_map(binding, final, name);
  } else if (final->kind == NXC_NODE_LIST || final->value.kind != NXC_NULL) {
    nxc_report(binding->sink, "NX1314", NXC_SEVERITY_ERROR, nxc_node_span(node),
               "write its keys below it, or leave it out", "%s is a section: it holds further keys, not %s",
               name, final->kind == NXC_NODE_LIST ? "a list" : "a value");
    nxc_binding_doubt_section(binding, name, node);
  }
}

static void read_key(nxc_binding *binding, const nxc_node *node, const char *name) {
  const nxc_option_row *row = nxc_option_find(binding->dialect, name);
  bool section = nxc_dialect_has_section(binding->dialect, name);
  bool nested = strchr(node->key, '.') == NULL || strcmp(binding->dialect->name, "nx") == 0;
  if (row != NULL && nested) bind_option(binding, row, node, name);
  bool optional_section =
      row != NULL && (row->domain.type == NXC_TYPE_MAP || row->domain.type == NXC_TYPE_ANY);
  if (section && (row == NULL || (optional_section && nxc_node_final(node)->kind == NXC_NODE_MAP))) {
    read_section(binding, node, name);
  } else if (row == NULL || !nested) {
    binding->unknown =
        nxc_arena_grow(binding->arena, binding->unknown, binding->n_unknown, sizeof *binding->unknown);
    binding->unknown[binding->n_unknown++] = (struct nxc_unknown_key){node, name};
  }
}

static void read_map(nxc_binding *binding, const nxc_node *map, const char *section) {
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *child = map->children[i];
    if (child->key == NULL) continue;
    read_key(binding, child, nxc_name_below(binding->arena, section, child->key));
  }
}

void nxc_binding_read(nxc_binding *binding) {
  if (binding->document->root->kind == NXC_NODE_MAP) {
    read_map(binding, binding->document->root, "");
    for (size_t i = 0; i < binding->n_unknown; i++) {
      struct nxc_unknown_key key = binding->unknown[i];
      const char *section = nxc_binding_report_unknown(binding, i);
      if (section != NULL) read_section(binding, key.node, section);
    }
    return;
  }
  nxc_report(binding->sink, "NX1314", NXC_SEVERITY_ERROR, binding->document->root->at,
             "write KEY: VALUE, without a dash in front", "a configuration is a map of keys, not a list");
}
