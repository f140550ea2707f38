/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/binding/version.h"

#include "compiler/document/document.h"

#include <string.h>

/* One pass over the document for all versions. */
typedef struct search {
  nxc_arena *arena;
  const nxc_dialect *dialect;
  const nxc_program_row *program; /* whose own options tell of no version */
  nxc_version_search *versions;
} search;

static void find_in(search *s, const nxc_node *node, const char *name);

static void find_in_children(search *s, const nxc_node *node, const char *name) {
  const nxc_node *final = nxc_node_final(node);
  for (size_t i = 0; i < final->n_children; i++) {
    const nxc_node *child = final->children[i];
    if (final->kind == NXC_NODE_LIST) find_in_children(s, child, nxc_arena_printf(s->arena, "%s[]", name));
    else if (child->key != NULL) find_in(s, child, nxc_name_below(s->arena, name, child->key));
  }
}

static const nxc_versioned *word_of(const nxc_option_row *row, const nxc_node *node) {
  bool word = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING;
  return word ? nxc_option_word(row, node->value.text) : NULL;
}

static void find_in(search *s, const nxc_node *node, const char *name) {
  const nxc_option_row *row = nxc_option_find(s->dialect, name);
  const nxc_versioned *word = row != NULL ? word_of(row, nxc_node_final(node)) : NULL;
  bool own = s->program != NULL && nxc_program_row_has(s->program, name);
  bool kept = row != NULL && !own && (row->n_versions > 0 || word != NULL);
  for (nxc_version_search *v = s->versions; kept && v->version != NULL; v++) {
    bool known = nxc_in_version(row->versions, row->n_versions, v->version) &&
                 (word == NULL || nxc_in_version(word->versions, word->n_versions, v->version));
    if (!known && v->n_unknown++ == 0) v->first = node;
  }
  find_in_children(s, node, name);
}

const nxc_version_search *nxc_versions_search(nxc_arena *arena, const nxc_dialect *dialect,
                                              const char *const *versions, const nxc_document *document) {
  size_t n = 0;
  while (versions[n] != NULL) n++;
  search s = {arena, dialect, document->program, nxc_arena_array(arena, n + 1, sizeof *s.versions)};
  for (size_t i = 0; i < n; i++) s.versions[i].version = versions[i];
  find_in_children(&s, document->root, "");
  return s.versions;
}

const char *nxc_version_choose(const nxc_version_search *found, bool old) {
  const nxc_version_search *best = found;
  for (; found->version != NULL; found++)
    if (found->n_unknown < best->n_unknown + old) best = found;
  return best->version;
}

const char *nxc_version_evidence(nxc_arena *arena, const nxc_version_search *found, const char *version) {
  const nxc_version_search *chosen = found;
  while (strcmp(chosen->version, version) != 0) chosen++;
  const nxc_version_search *beside = chosen > found ? chosen - 1 : chosen + 1;
  if (beside->first == NULL || beside->first == chosen->first) return NULL;
  return nxc_node_path(arena, beside->first);
}

static bool differs(const nxc_option_row *row, const char *one, const char *other) {
  const nxc_value *a = nxc_option_default(row, one), *b = nxc_option_default(row, other);
  return a == NULL || b == NULL ? a != b : !nxc_value_equal(a, b);
}

const char *nxc_version_doubts(const nxc_binding *binding, const nxc_version_search *found) {
  const char *doubts = NULL;
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    const nxc_bound *bound = &binding->options[i];
    if (bound->given || bound->inactive || bound->row->n_defaults_in == 0 || bound->row->n_sets == 0)
      continue;
    bool doubtful = false;
    for (const nxc_version_search *other = found; other->version != NULL && !doubtful; other++)
      doubtful = other->n_unknown == 0 && differs(bound->row, binding->version, other->version);
    if (doubtful)
      doubts = nxc_arena_printf(binding->arena, "%s%s%s", doubts ? doubts : "", doubts ? ", " : "",
                                bound->row->name);
  }
  return doubts;
}
