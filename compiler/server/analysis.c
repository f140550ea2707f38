/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/server/analysis.h"

#include <stdlib.h>
#include <string.h>

nxc_analysis *nxc_analyse(const nxc_texts_open *texts, const nxc_open_text *open) {
  static const nxc_options options = {.format = NXC_FORMAT_TEXT, .notes = true};
  static const nxc_standard standard = {.options = &options};
  nxc_arena *arena = nxc_arena_new();
  nxc_analysis *analysis = nxc_arena_alloc(arena, sizeof *analysis);
  size_t n_open = nxc_texts_open_count(texts);
  nxc_overlay *overlays = nxc_arena_array(arena, n_open + 1, sizeof *overlays);
  for (size_t i = 0; i < n_open; i++) {
    const nxc_open_text *other = nxc_texts_open_at(texts, i);
    overlays[i] = (nxc_overlay){other->path, other->text, other->n_bytes};
  }
  nxc_source_lay_over(overlays);
  analysis->open = open;
  analysis->judged.arena = arena;
  nxc_judge(&analysis->judged, &standard, open->path, true);
  nxc_source_lay_over(NULL);
  return analysis;
}

void nxc_analysis_free(nxc_analysis *analysis) {
  if (analysis != NULL) nxc_arena_free(analysis->judged.arena);
}

bool nxc_analysis_has(const nxc_analysis *analysis, nxc_span at) {
  return at.source != NULL && at.line >= 1 && at.line <= at.source->n_lines &&
         strcmp(at.source->name, analysis->open->path) == 0;
}

/* The source is the open text without its byte-order mark, if it has one. */
static size_t in_text(const nxc_source *source, size_t offset) {
  return offset + source->n_mark_bytes;
}

json_t *nxc_analysis_range(const nxc_analysis *analysis, nxc_span at) {
  size_t begin = in_text(at.source, nxc_span_offset(at, false)),
         end = in_text(at.source, nxc_span_offset(at, true));
  return nxc_text_range(analysis->open->text, analysis->open->n_bytes, begin, end);
}

static bool holds(const nxc_analysis *analysis, nxc_span at, size_t offset) {
  return nxc_analysis_has(analysis, at) && in_text(at.source, nxc_span_offset(at, false)) <= offset &&
         offset <= in_text(at.source, nxc_span_offset(at, true));
}

static const nxc_node *find_node(const nxc_analysis *analysis, const nxc_node *node, size_t offset,
                                 bool *on_key) {
  for (size_t i = 0; i < node->n_children; i++) {
    const nxc_node *child = node->children[i], *found = NULL;
    *on_key = child->key != NULL && holds(analysis, child->key_at, offset);
    if (*on_key) return child;
    if (child->kind != NXC_NODE_SCALAR) found = find_node(analysis, child, offset, on_key);
    else if (holds(analysis, child->at, offset)) found = child;
    if (found != NULL) return found;
  }
  return NULL;
}

const nxc_node *nxc_analysis_node(const nxc_analysis *analysis, size_t offset, bool *on_key) {
  const nxc_document *document = analysis->judged.compiled.document;
  return document ? find_node(analysis, document->root, offset, on_key) : NULL;
}

const nxc_bound *nxc_analysis_option(const nxc_analysis *analysis, const nxc_node *node) {
  const nxc_binding *binding = analysis->judged.compiled.binding;
  for (size_t i = 0; binding != NULL && i < binding->dialect->n_options; i++)
    if (binding->options[i].node == node) return &binding->options[i];
  if (binding == NULL) return NULL;
  const nxc_bound *bound = nxc_binding_find(binding, nxc_node_path(analysis->judged.arena, node));
  bool alias = bound != NULL && bound->row->alias_of != NULL;
  return alias ? nxc_binding_find(binding, bound->row->alias_of) : bound;
}

bool nxc_node_is_same(const nxc_node *a, const nxc_node *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL) return false;
  nxc_span left = nxc_node_span(a), right = nxc_node_span(b);
  return left.source != NULL && left.source == right.source && left.line == right.line &&
         left.column == right.column;
}

/* -- mentions -------------------------------------------------------------------------------------------- */

typedef struct gathering {
  const nxc_analysis *analysis;
  nxc_mention *items;
  size_t n_items;
} gathering;

static bool is_step(char c) {
  return c != '.' && c != '[' && c != ']' && c != '}' && c != '>' && c != '\0';
}

/* The last step names the node that was read, each before it the one around. Steps that interpolations make
 * themselves, and calls, have no names to follow. */
static void add_path(gathering *g, const nxc_node *in, const nxc_reference *reference) {
  nxc_arena *arena = g->analysis->judged.arena;
  const char *path = in->raw + reference->offset;
  size_t n_path = reference->length, n_left = in->raw_bytes - reference->offset;
  if (n_path > n_left) n_path = n_left;
  if (n_path < 4 || memchr(path, ':', n_path) || memchr(path + 2, '$', n_path - 2)) return;
  const nxc_node *named = reference->node;
  for (size_t end = n_path - 1; end > 2 && named != NULL;) {
    while (end > 2 && !is_step(path[end - 1])) end--;
    size_t begin = end;
    while (begin > 2 && is_step(path[begin - 1])) begin--;
    if (begin == end) return;
    bool spelt = named->key != NULL && strlen(named->key) == end - begin &&
                 memcmp(named->key, path + begin, end - begin) == 0;
    if (spelt) {
      nxc_span at = nxc_node_span_inside(in, reference->offset + begin, end - begin);
      g->items = nxc_arena_grow(arena, g->items, g->n_items, sizeof *g->items);
      g->items[g->n_items++] = (nxc_mention){in, at, named};
    }
    named = named->parent;
    end = begin;
  }
}

static void gather(gathering *g, const nxc_node *node) {
  for (size_t i = 0; i < node->n_children; i++) gather(g, node->children[i]);
  const nxc_derivation *from = node->derivation;
  if (from == NULL || node->raw == NULL || !nxc_analysis_has(g->analysis, node->at)) return;
  for (size_t i = 0; i < from->n_references; i++)
    if (from->references[i].node != NULL) add_path(g, node, &from->references[i]);
}

const nxc_mention *nxc_analysis_mentions(const nxc_analysis *analysis, size_t *n_mentions) {
  gathering g = {.analysis = analysis};
  if (analysis->judged.compiled.document != NULL) gather(&g, analysis->judged.compiled.document->root);
  *n_mentions = g.n_items;
  return g.items;
}

const nxc_mention *nxc_analysis_mention(const nxc_analysis *analysis, size_t offset) {
  size_t n_mentions;
  const nxc_mention *mentions = nxc_analysis_mentions(analysis, &n_mentions);
  for (size_t i = 0; i < n_mentions; i++)
    if (holds(analysis, mentions[i].at, offset)) return &mentions[i];
  return NULL;
}
