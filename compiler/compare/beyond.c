/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/compare/beyond.h"
#include "compiler/document/redaction.h"
#include "compiler/config/fronts.h"

#include <stdlib.h>
#include <string.h>

typedef struct list {
  nxc_arena *arena;
  nxc_binding *binding;
  const nxc_settings *settings;
  const char *model_option; /* names a config.json, whose keys are here where it was read */
  nxc_beyond *items;
  size_t n_items;
} list;

static void add(list *l, nxc_beyond one) {
  l->items = nxc_arena_grow(l->arena, l->items, l->n_items, sizeof one);
  l->items[l->n_items++] = one;
}

/* -- options --------------------------------------------------------------------------------------------- */

static bool is_free_form(const nxc_option_row *row) {
  size_t n_bytes = strlen(row->name);
  return n_bytes > 2 && strcmp(row->name + n_bytes - 2, ".*") == 0;
}

/* A section speaks through its keys. */
static bool is_section(const nxc_dialect *dialect, const nxc_option_row *row) {
  size_t first;
  return nxc_dialect_section(dialect, row->name, &first) > first;
}

static bool names_option(nxc_arena *arena, const char *text, const char *option) {
  const nxc_expression *expression = nxc_expression_of(arena, text);
  for (size_t i = 0; expression != NULL && i < expression->n_names; i++) {
    const nxc_name *name = &expression->names[i];
    if (name->kind == NXC_NAME_OPTION && strcmp(name->path, option) == 0) return true;
  }
  return false;
}

/* Whether a rule would make a setting of it, and something else that is unknown keeps it from that. */
static bool is_lost(list *l, const nxc_bound *bound) {
  const char *dialect = l->binding->dialect->name;
  for (size_t i = 0; bound->given && !bound->inactive && i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    if (rule->derives == NX_N_SETTINGS || nxc_settings_known(l->settings, rule->derives) ||
        nxc_settings_absent(l->settings, rule->derives))
      continue;
    if (rule->dialect == NULL || strcmp(rule->dialect, dialect) != 0) continue;
    if (!names_option(l->arena, rule->derive, bound->row->name)) continue;
    const nxc_value *applies = rule->when ? nxc_binding_evaluate(l->binding, bound, rule->when) : NULL;
    if (applies == NULL || applies->kind != NXC_BOOL || applies->boolean) return true;
  }
  return false;
}

static bool is_followed(list *l, const nxc_bound *bound) {
  const nxc_option_row *row = bound->row;
  if (is_lost(l, bound)) return false;
  bool names_model = l->model_option != NULL && strcmp(l->model_option, row->name) == 0;
  if (names_model && l->binding->has_model_config) return true;
  if (row->names != NULL && strcmp(row->names, "family") == 0) return true; /* schema/families follows it */
  if (row->changes != NXC_CHANGES_SETTINGS) return false;
  if (row->n_sets == 0 || !bound->given || bound->inactive) return true;
  for (size_t i = 0; i < row->n_sets; i++)
    if (nxc_binding_evaluate(l->binding, bound, row->sets[i].expression) != NULL) return true;
  return false;
}

/* As the option's type has it; lists and maps as they stand there, since a secret may be inside. */
static const char *value_of(list *l, const nxc_bound *bound) {
  const nxc_value *value = bound->value;
  if (value == NULL) return NULL;
  bool branch = value->kind == NXC_LIST || value->kind == NXC_MAP;
  if (branch && bound->node != NULL) value = nxc_node_public_value(l->arena, bound->node);
  const nxc_value redacted = bound->secret && !branch ? nxc_redacted(l->arena, value) : *value;
  return nxc_value_json(l->arena, &redacted);
}

static void add_option(list *l, const nxc_dialect *dialect, const nxc_bound *bound, const char *prefix) {
  const nxc_option_row *row = bound->row;
  if (row->alias_of != NULL || is_free_form(row) || is_section(dialect, row)) return;
  if (!nxc_in_version(row->versions, row->n_versions, l->binding->version) && !bound->given) return;
  const nxc_value *initial = nxc_option_default(row, l->binding->version);
  bool null = bound->value != NULL && bound->value->kind == NXC_NULL;
  bool usual = null || (bound->value != NULL && initial != NULL && nxc_value_equal(initial, bound->value));
  add(l, (nxc_beyond){.name = *prefix ? nxc_arena_printf(l->arena, "%s%s", prefix, row->name) : row->name,
                      .value = value_of(l, bound),
                      .changes = row->changes == NXC_CHANGES_SETTINGS ? NXC_CHANGES_UNFOLLOWED : row->changes,
                      .given = bound->given,
                      .usual = usual,
                      .read = !bound->inactive,
                      .followed = is_followed(l, bound),
                      .at = bound->at});
}

/* -- keys ------------------------------------------------------------------------------------------------ */

static void add_key(list *l, const char *name, const nxc_node *node, nxc_changes changes) {
  const nxc_value *value = nxc_node_final(node)->failed ? NULL : nxc_node_public_value(l->arena, node);
  add(l, (nxc_beyond){.name = name,
                      .value = value ? nxc_value_json(l->arena, value) : NULL,
                      .changes = changes,
                      .given = true,
                      .usual = value != NULL && value->kind == NXC_NULL,
                      .read = true,
                      .followed = changes == NXC_CHANGES_SETTINGS,
                      .at = nxc_node_span(node)});
}

/* The keys of a section that takes any, but those that are options themselves. */
static void add_free_form(list *l, const nxc_option_row *row) {
  const nxc_dialect *dialect = l->binding->dialect;
  const char *section = nxc_arena_strndup(l->arena, row->name, strlen(row->name) - 2);
  const nxc_node *map = nxc_node_lookup(l->binding->document->root, section);
  if (map != NULL) map = nxc_node_final(map);
  for (size_t i = 0; map != NULL && map->kind == NXC_NODE_MAP && i < map->n_children; i++) {
    const nxc_node *child = map->children[i];
    const char *name = nxc_name_below(l->arena, section, child->key);
    if (nxc_option_find(dialect, name) == row) add_key(l, name, child, row->changes);
  }
}

/* NAME[].KEY: that key of each entry of a list. */
static void add_entries(list *l, const nxc_option_row *row) {
  const char *brackets = strstr(row->name, "[].");
  if (brackets == NULL) return;
  const char *name = nxc_arena_strndup(l->arena, row->name, (size_t)(brackets - row->name));
  const nxc_node *items = nxc_node_lookup(l->binding->document->root, name);
  if (items != NULL) items = nxc_node_final(items);
  for (size_t i = 0; items != NULL && items->kind == NXC_NODE_LIST && i < items->n_children; i++) {
    const nxc_node *entry = nxc_node_final(items->children[i]);
    const nxc_node *value = entry->kind == NXC_NODE_MAP ? nxc_node_lookup(entry, brackets + 3) : NULL;
    if (value != NULL)
      add_key(l, nxc_arena_printf(l->arena, "%s[%zu].%s", name, i, brackets + 3), value, row->changes);
  }
}

/* -- all ------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b) {
  return strcmp(((const nxc_beyond *)a)->name, ((const nxc_beyond *)b)->name);
}

nxc_beyond *nxc_beyond_settings(nxc_arena *arena, const nxc_compiled *compiled, size_t *n) {
  list l = {.arena = arena, .binding = compiled->binding, .settings = compiled->settings};
  *n = 0;
  if (l.binding == NULL) return NULL;
  const nxc_dialect *dialect = l.binding->dialect, *model = l.binding->model_dialect;
  const char *version;
  l.model_option = nxc_front_find(arena, dialect->name, &version)->model_option;
  for (size_t i = 0; i < dialect->n_options; i++) {
    add_option(&l, dialect, &l.binding->options[i], "");
    add_entries(&l, &dialect->options[i]);
    if (is_free_form(&dialect->options[i])) add_free_form(&l, &dialect->options[i]);
  }
  for (size_t i = 0; l.binding->has_model_config && i < model->n_options; i++)
    add_option(&l, model, &l.binding->model_options[i], "config.json: ");
  for (size_t i = 0; i < l.binding->n_unknown; i++)
    add_key(&l, l.binding->unknown[i].name, l.binding->unknown[i].node, NXC_CHANGES_UNFOLLOWED);
  if (l.n_items > 0) qsort(l.items, l.n_items, sizeof *l.items, compare_names);
  *n = l.n_items;
  return l.items;
}

bool nxc_beyond_counts(const nxc_beyond *one) {
  return one->given && !one->usual && one->read && !one->followed && one->changes > NXC_CHANGES_PLACE;
}

bool nxc_setting_follows(nxc_arena *arena, const nxc_settings *settings, nxc_setting_id id,
                         const char *option) {
  const nxc_provenance *from = nxc_settings_from(settings, id);
  if (from->option != NULL && strcmp(from->option, option) == 0) return true;
  const nxc_rule_row *rule = from->kind == NXC_FROM_RULE ? nxc_rule_find(from->origin) : NULL;
  return rule && (names_option(arena, rule->when, option) || names_option(arena, rule->derive, option));
}

static bool is_followed_by_rule(nxc_arena *arena, const nxc_compiled *compiled, const char *option) {
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++)
    if (nxc_setting_follows(arena, compiled->settings, id, option)) return true;
  return false;
}

nxc_beyond *nxc_beyond_unfollowed(nxc_arena *arena, const nxc_compiled *compiled, size_t *n) {
  size_t n_all, n_kept = 0;
  nxc_beyond *all = nxc_beyond_settings(arena, compiled, &n_all);
  for (size_t i = 0; i < n_all; i++)
    if (nxc_beyond_counts(&all[i]) && !is_followed_by_rule(arena, compiled, all[i].name))
      all[n_kept++] = all[i];
  *n = compiled->binding->partial ? 0 : n_kept; /* of a part nobody knows yet what follows */
  return all;
}
