/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/binding/version.h"

#include "compiler/document/document.h"

#include <string.h>

/* What a version does not know: keys that are options of others alone, and words of others alone. */
typedef struct search {
  nxc_arena *arena;
  const nxc_dialect *dialect;
  const char *version;
  const nxc_node *first; /* that was found; NULL: none */
  size_t n_found;
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

static bool is_unknown_word(const search *s, const nxc_option_row *row, const nxc_node *node) {
  bool word = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING;
  const nxc_versioned *kept = word ? nxc_option_word(row, node->value.text) : NULL;
  return kept != NULL && !nxc_in_version(kept->versions, kept->n_versions, s->version);
}

static void find_in(search *s, const nxc_node *node, const char *name) {
  const nxc_option_row *row = nxc_option_find(s->dialect, name);
  bool unknown = row != NULL && (!nxc_in_version(row->versions, row->n_versions, s->version) ||
                                 is_unknown_word(s, row, nxc_node_final(node)));
  if (unknown && s->n_found++ == 0) s->first = node;
  find_in_children(s, node, name);
}

static search unknown_to(nxc_arena *arena, const nxc_dialect *dialect, const char *version,
                         const nxc_document *document) {
  search s = {.arena = arena, .dialect = dialect, .version = version};
  find_in_children(&s, document->root, "");
  return s;
}

const char *nxc_version_choose(nxc_arena *arena, const nxc_dialect *dialect, const char *const *versions,
                               const nxc_document *document) {
  const char *best = NULL;
  size_t n_least = SIZE_MAX;
  for (; *versions != NULL; versions++) {
    size_t n_unknown = unknown_to(arena, dialect, *versions, document).n_found;
    if (n_unknown < n_least) best = *versions;
    if (n_unknown < n_least) n_least = n_unknown;
  }
  return best;
}

const char *nxc_version_evidence(nxc_arena *arena, const nxc_dialect *dialect, const char *const *versions,
                                 const nxc_document *document) {
  for (; *versions != NULL; versions++) {
    const search s = unknown_to(arena, dialect, *versions, document);
    if (s.first != NULL) return nxc_node_path(arena, s.first);
  }
  return NULL;
}

static bool differs(const nxc_option_row *row, const char *one, const char *other) {
  const nxc_value *a = nxc_option_default(row, one), *b = nxc_option_default(row, other);
  return a == NULL || b == NULL ? a != b : !nxc_value_equal(a, b);
}

const char *nxc_version_doubts(const nxc_binding *binding, const char *const *versions) {
  const char *doubts = NULL;
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    const nxc_bound *bound = &binding->options[i];
    if (bound->given || bound->inactive || bound->row->n_defaults_in == 0 || bound->row->n_sets == 0)
      continue;
    bool doubtful = false;
    for (const char *const *other = versions; *other != NULL && !doubtful; other++)
      doubtful = differs(bound->row, binding->version, *other) &&
                 unknown_to(binding->arena, binding->dialect, *other, binding->document).n_found == 0;
    if (doubtful)
      doubts = nxc_arena_printf(binding->arena, "%s%s%s", doubts ? doubts : "", doubts ? ", " : "",
                                bound->row->name);
  }
  return doubts;
}
