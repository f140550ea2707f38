/* SPDX-License-Identifier: Apache-2.0 */
/* From one place of a text to others: what an interpolation names, who names a key, the text's outline, and a
 * key renamed everywhere. */
#include "compiler/render/render.h"
#include "compiler/server/answers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t nxc_answer_offset(const nxc_analysis *analysis, const json_t *params) {
  return nxc_text_offset_json(analysis->open->text, analysis->open->n_bytes,
                              json_object_get(params, "position"));
}

static json_t *location(const nxc_analysis *analysis, nxc_span at) {
  return json_pack("{s:s, s:o}", "uri", analysis->open->uri, "range", nxc_analysis_range(analysis, at));
}

/* -- definition ------------------------------------------------------------------------------------------ */

/* A file that a value names, as seen from the text's folder or from here. */
static json_t *file_named(const nxc_analysis *analysis, const nxc_node *node) {
  nxc_arena *arena = analysis->judged.arena;
  const nxc_node *final = nxc_node_final(node);
  if (final->kind != NXC_NODE_SCALAR || final->value.kind != NXC_STRING || final->value.n_bytes == 0)
    return NULL;
  const char *name = final->value.text, *own = analysis->open->path, *slash = strrchr(own, '/');
  const char *path = name;
  if (*name != '/' && slash != NULL)
    path = nxc_arena_printf(arena, "%.*s%s", (int)(slash + 1 - own), own, name);
  if (access(path, R_OK) != 0) path = name;
  char *absolute = strchr(name, '/') || strchr(name, '.') ? realpath(path, NULL) : NULL;
  char *uri = absolute ? nxc_uri_of_path(absolute) : NULL;
  json_t *found = uri ? json_pack("{s:s, s:{s:{s:i, s:i}, s:{s:i, s:i}}}", "uri", uri, "range", "start",
                                  "line", 0, "character", 0, "end", "line", 0, "character", 0)
                      : NULL;
  free(absolute);
  free(uri);
  return found;
}

/* A file over the open one, too. */
static json_t *place_of(const nxc_analysis *analysis, const nxc_node *node) {
  nxc_span at = nxc_node_span(node);
  return nxc_analysis_has(analysis, at) ? location(analysis, at) : NULL;
}

json_t *nxc_answer_definition(const nxc_analysis *analysis, const json_t *params) {
  size_t offset = nxc_answer_offset(analysis, params);
  const nxc_mention *mention = nxc_analysis_mention(analysis, offset);
  if (mention != NULL) return place_of(analysis, mention->named);
  bool on_key;
  const nxc_node *node = nxc_analysis_node(analysis, offset, &on_key);
  if (node == NULL || on_key) return NULL;
  const nxc_derivation *from = node->derivation;
  bool single = from != NULL && from->n_references == 1 && from->references[0].node != NULL;
  return single ? place_of(analysis, from->references[0].node) : file_named(analysis, node);
}

/* -- references and renaming ----------------------------------------------------------------------------- */

/* The node whose key is under the cursor, where it stands or where an interpolation names it. */
static const nxc_node *named_at(const nxc_analysis *analysis, size_t offset, nxc_span *at) {
  const nxc_mention *mention = nxc_analysis_mention(analysis, offset);
  bool on_key;
  const nxc_node *node = mention ? mention->named : nxc_analysis_node(analysis, offset, &on_key);
  if (node == NULL || node->key == NULL || (mention == NULL && !on_key)) return NULL;
  *at = mention ? mention->at : node->key_at;
  return nxc_analysis_has(analysis, node->key_at) ? node : NULL;
}

/* Every place that says the node's key; the key itself first. */
static nxc_span *places_of(const nxc_analysis *analysis, const nxc_node *node, bool with_key,
                           size_t *n_places) {
  size_t n_mentions;
  const nxc_mention *mentions = nxc_analysis_mentions(analysis, &n_mentions);
  nxc_span *places = nxc_arena_array(analysis->judged.arena, n_mentions + 1, sizeof *places);
  *n_places = 0;
  if (with_key) places[(*n_places)++] = node->key_at;
  for (size_t i = 0; i < n_mentions; i++) {
    bool known = false;
    for (size_t k = 0; k < *n_places && !known; k++)
      known = places[k].line == mentions[i].at.line && places[k].column == mentions[i].at.column;
    if (!known && nxc_node_is_same(mentions[i].named, node)) places[(*n_places)++] = mentions[i].at;
  }
  return places;
}

json_t *nxc_answer_references(const nxc_analysis *analysis, const json_t *params) {
  nxc_span at;
  const nxc_node *node = named_at(analysis, nxc_answer_offset(analysis, params), &at);
  if (node == NULL) return json_array();
  size_t n_places;
  bool with_key = json_is_true(json_object_get(json_object_get(params, "context"), "includeDeclaration"));
  const nxc_span *places = places_of(analysis, node, with_key, &n_places);
  json_t *list = json_array();
  for (size_t i = 0; i < n_places; i++) json_array_append_new(list, location(analysis, places[i]));
  return list;
}

json_t *nxc_answer_prepare_rename(const nxc_analysis *analysis, const json_t *params) {
  nxc_span at;
  const nxc_node *node = named_at(analysis, nxc_answer_offset(analysis, params), &at);
  bool plain = node != NULL && nxc_span_reads(node->key_at, node->key);
  return plain ? json_pack("{s:o, s:o}", "range", nxc_analysis_range(analysis, at), "placeholder",
                           nxc_json_text(node->key))
               : NULL;
}

/* A name that stands in a key and in a path without quotes. */
static bool is_plain_name(const char *name) {
  return name != NULL && *name != '\0' &&
         strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(name);
}

json_t *nxc_answer_rename(const nxc_analysis *analysis, const json_t *params) {
  nxc_span at;
  const nxc_node *node = named_at(analysis, nxc_answer_offset(analysis, params), &at);
  const char *name = json_string_value(json_object_get(params, "newName"));
  if (node == NULL || !nxc_span_reads(node->key_at, node->key) || !is_plain_name(name)) return NULL;
  if (node->parent != NULL && nxc_node_child(node->parent, name) != NULL) return NULL;
  size_t n_places;
  const nxc_span *places = places_of(analysis, node, true, &n_places);
  json_t *edits = json_array(), *changes = json_object();
  for (size_t i = 0; i < n_places; i++)
    json_array_append_new(
        edits, json_pack("{s:o, s:s}", "range", nxc_analysis_range(analysis, places[i]), "newText", name));
  json_object_set_new(changes, analysis->open->uri, edits);
  return json_pack("{s:o}", "changes", changes);
}

/* -- outline --------------------------------------------------------------------------------------------- */

/* SymbolKind: Boolean 17, Number 16, String 15, Array 18, Object 19, Null 21. */
static int kind_of(const nxc_node *node) {
  if (node->kind == NXC_NODE_MAP) return 19;
  if (node->kind == NXC_NODE_LIST) return 18;
  switch (node->value.kind) {
  case NXC_BOOL: return 17;
  case NXC_INT:
  case NXC_FLOAT: return 16;
  case NXC_NULL: return 21;
  default: return 15;
  }
}

/* The byte behind all that a node holds. */
static size_t end_of(const nxc_analysis *analysis, const nxc_node *node) {
  size_t end = nxc_analysis_has(analysis, node->at) ? nxc_span_offset(node->at, true) : 0;
  for (size_t i = 0; i < node->n_children; i++) {
    size_t inside = end_of(analysis, node->children[i]);
    if (inside > end) end = inside;
  }
  return end;
}

static json_t *symbols_of(const nxc_analysis *analysis, const nxc_node *map);

static json_t *symbol_of(const nxc_analysis *analysis, const nxc_node *node) {
  const nxc_open_text *open = analysis->open;
  size_t n_mark = node->key_at.source->n_mark_bytes, begin = nxc_span_offset(node->key_at, false),
         behind = nxc_span_offset(node->key_at, true), end = end_of(analysis, node);
  if (end < behind) end = behind;
  return json_pack("{s:o, s:i, s:o, s:o, s:o}", "name", nxc_json_text(node->key), "kind", kind_of(node),
                   "range", nxc_text_range(open->text, open->n_bytes, begin + n_mark, end + n_mark),
                   "selectionRange", nxc_analysis_range(analysis, node->key_at), "children",
                   symbols_of(analysis, node));
}

static json_t *symbols_of(const nxc_analysis *analysis, const nxc_node *map) {
  json_t *list = json_array();
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *child = map->children[i];
    bool named = child->key != NULL && *child->key != '\0' && nxc_analysis_has(analysis, child->key_at);
    if (named) json_array_append_new(list, symbol_of(analysis, child));
  }
  return list;
}

json_t *nxc_answer_symbols(const nxc_analysis *analysis, const json_t *params) {
  (void)params;
  const nxc_document *document = analysis->judged.compiled.document;
  return document ? symbols_of(analysis, document->root) : json_array();
}
