/* SPDX-License-Identifier: Apache-2.0 */
/* Later layers over earlier ones: files given with -l, and --set. */
#include "compiler/document/document_read.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"

#include <ctype.h>
#include <string.h>

static bool is_reference(const nxc_node *node) {
  return node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING && strstr(node->raw, "${") != NULL;
}

static bool clash(nxc_sink *sink, const nxc_node *old, const nxc_node *fresh, const char *what) {
  const nxc_remark earlier = {nxc_node_span(old), "the earlier one"};
  nxc_sink_report(sink, &(nxc_finding){.id = "NX1019",
                                       .severity = NXC_SEVERITY_ERROR,
                                       .message = what,
                                       .at = nxc_node_span(fresh),
                                       .fix = "write the same kind of value in both",
                                       .remarks = &earlier,
                                       .n_remarks = 1});
  return false;
}

static bool lay_child(nxc_arena *arena, nxc_node *old, nxc_node *fresh, nxc_sink *sink);

static bool lay_map(nxc_arena *arena, nxc_node *base, const nxc_node *over, nxc_sink *sink) {
  bool ok = true;
  for (size_t i = 0; i < over->n_children; i++) {
    nxc_node *fresh = over->children[i];
    nxc_node *old = nxc_node_find_key(arena, base, &fresh->key_value);
    if (old) ok = lay_child(arena, old, fresh, sink) && ok;
    else nxc_node_append(arena, base, fresh);
  }
  return ok;
}

static bool lay_child(nxc_arena *arena, nxc_node *old, nxc_node *fresh, nxc_sink *sink) {
  if (old->kind == NXC_NODE_MAP && fresh->kind == NXC_NODE_MAP) return lay_map(arena, old, fresh, sink);
  if (old->kind != fresh->kind && old->kind != NXC_NODE_SCALAR && fresh->kind != NXC_NODE_SCALAR)
    return clash(sink, old, fresh, "a list and a map cannot be laid over each other");
  if (is_reference(old) && fresh->kind == NXC_NODE_MAP)
    return clash(sink, old, fresh, "a map cannot be laid over a reference; set the keys where it points");
  if (fresh->kind == NXC_NODE_SCALAR && fresh->value.kind == NXC_MISSING)
    return true; /* ??? overrides nothing */
  nxc_node_replace(arena, old, fresh);
  return true;
}

bool nxc_document_layer(nxc_document *base, nxc_document *over, nxc_sink *sink) {
  base->complete = base->complete && over->complete;
  bool ok = true;
  if (base->root->kind != over->root->kind) {
    bool nothing = over->root->n_children == 0;
    if (!nothing && base->root->n_children == 0) base->root = over->root;
    else if (!nothing)
      ok = clash(sink, base->root, over->root, "a list and a map cannot be laid over each other");
  } else if (base->root->kind == NXC_NODE_LIST) {
    base->root = over->root;
  } else {
    ok = lay_map(base->arena, base->root, over->root, sink);
  }
  base->complete = base->complete && ok;
  return ok;
}

/* A step of --set's KEY: bytes [start, start + n_bytes) of the assignment. */
typedef struct step {
  size_t start, n_bytes;
} step;

/* Splits `a.b[c]`. 0 when there is an empty step or brackets do not pair. */
static size_t split_key(nxc_arena *arena, const char *key, size_t n_bytes, step **steps) {
  size_t n = 0, i = 0;
  *steps = NULL;
  while (i < n_bytes) {
    bool bracket = key[i] == '[';
    if (bracket || (key[i] == '.' && n > 0)) i++;
    size_t start = i;
    while (i < n_bytes && !strchr(bracket ? "]" : ".[]", key[i])) i++;
    if (i == start) return 0;
    *steps = nxc_arena_grow(arena, *steps, n, sizeof **steps);
    (*steps)[n++] = (step){start, i - start};
    if (bracket && (i == n_bytes || key[i++] != ']')) return 0;
    if (i < n_bytes && key[i] != '.' && key[i] != '[') return 0;
    if (i + 1 == n_bytes) return 0;
  }
  return n;
}

static nxc_span step_span(const nxc_reader *reader, const step *at) {
  const char *text = reader->source->text;
  size_t column = 0, length = 0;
  for (size_t i = 0; i < at->start + at->n_bytes; i++)
    *(i < at->start ? &column : &length) += ((unsigned char)text[i] & 0xC0) != 0x80;
  return nxc_reader_span(reader, 0, column, length ? length : 1);
}

static void set_key(nxc_reader *reader, nxc_node *child, const step *at) {
  const char *text = nxc_arena_strndup(reader->arena, reader->source->text + at->start, at->n_bytes);
  nxc_value key = nxc_string_value(text, at->n_bytes);
  nxc_node_set_key(child, &key, text, step_span(reader, at));
}

/* The node a step names below `in`; made, as an empty map, when a map lacks it. NULL (reported): no such
 * place. */
static nxc_node *step_down(nxc_reader *reader, nxc_node *in, const step *at) {
  const char *text = reader->source->text + at->start;
  nxc_node *child = nxc_node_item(in, text, at->n_bytes);
  if (child) return child;
  if (in->kind == NXC_NODE_LIST) {
    nxc_reader_error(reader, "NX1021", step_span(reader, at), NULL, "the list has no item %.*s (it has %zu)",
                     (int)at->n_bytes, text, in->n_children);
    return NULL;
  }
  child = nxc_node_new(reader->arena, NXC_NODE_MAP, step_span(reader, at));
  set_key(reader, child, at);
  nxc_node_append(reader->arena, in, child);
  return child;
}

static bool put_at(nxc_reader *reader, nxc_node *root, const step *steps, size_t n_steps, nxc_node *value) {
  nxc_node *at = root;
  for (size_t i = 0; i < n_steps; i++) {
    if (is_reference(at)) {
      nxc_reader_error(reader, "NX1021", step_span(reader, &steps[i]),
                       "set the key where the reference points", "nothing can be set below the reference %s",
                       at->raw);
      return false;
    }
    if (at->kind == NXC_NODE_SCALAR) { /* dotted over a scalar: the scalar gives way to a map */
      nxc_node *map = nxc_node_new(reader->arena, NXC_NODE_MAP, step_span(reader, &steps[i]));
      nxc_node_replace(reader->arena, at, map);
      at = map;
    }
    if ((at = step_down(reader, at, &steps[i])) == NULL) return false;
  }
  if (at->kind == NXC_NODE_MAP && value->kind == NXC_NODE_MAP)
    return lay_map(reader->arena, at, value, reader->sink);
  if (at->parent->kind == NXC_NODE_MAP) set_key(reader, value, &steps[n_steps - 1]);
  bool fresh = at->kind == NXC_NODE_MAP && at->n_children == 0 && at->at.source == reader->source;
  nxc_node_replace(reader->arena, at, value);
  if (fresh) value->replaced = NULL;
  return true;
}

bool nxc_document_put(nxc_document *document, const nxc_source *source, size_t key_at, size_t n_key_bytes,
                      nxc_node *value, nxc_sink *sink) {
  static const nxc_reading plainly = {0};
  nxc_reader reader = {
      .arena = document->arena, .reading = &plainly, .sink = sink, .source = source, .ok = true};
  step *steps;
  size_t n_steps = split_key(document->arena, source->text + key_at, n_key_bytes, &steps);
  for (size_t i = 0; i < n_steps; i++) steps[i].start += key_at;
  bool good = n_steps > 0 && n_steps <= NXC_DOCUMENT_DEPTH_MAX;
  if (!good)
    nxc_reader_error(&reader, "NX1020", nxc_reader_span(&reader, 0, 0, 0), NULL,
                     "an assignment is written KEY=VALUE, with a dotted key and no blanks around it");
  return good && put_at(&reader, document->root, steps, n_steps, value);
}

/* VALUE is read as YAML in its own columns: the key before it becomes blanks. */
static nxc_node *read_value(nxc_reader *reader, size_t n_key_bytes) {
  char *text = nxc_reader_clean(reader), *to = text;
  if (text == NULL) return NULL;
  for (size_t i = 0; i < reader->source->n_bytes; i++) {
    if (i >= n_key_bytes) *to++ = text[i];
    else if (((unsigned char)text[i] & 0xC0) != 0x80) *to++ = ' ';
  }
  nxc_node *value = nxc_document_read_tree(reader, text, (size_t)(to - text));
  if (value) return value;
  value = nxc_node_new(reader->arena, NXC_NODE_SCALAR, nxc_reader_span(reader, 0, 0, 0));
  value->raw = "";
  return value;
}

bool nxc_document_set(nxc_document *document, const char *assignment, const char *origin,
                      const nxc_reading *reading, nxc_sink *sink) {
  nxc_arena *arena = document->arena;
  nxc_reader reader = {.arena = arena, .reading = reading, .sink = sink, .ok = true};
  reader.source = nxc_source_new(arena, origin, assignment, strlen(assignment));
  const char *equals = strchr(reader.source->text, '=');
  size_t n_key_bytes = equals ? (size_t)(equals - reader.source->text) : 0;
  step *steps;
  size_t n_steps = split_key(arena, reader.source->text, n_key_bytes, &steps);
  if (n_steps == 0 || n_steps > NXC_DOCUMENT_DEPTH_MAX || isspace((unsigned char)equals[-1])) {
    nxc_reader_error(&reader, "NX1020", nxc_reader_span(&reader, 0, 0, 0), NULL,
                     "an assignment is written KEY=VALUE, with a dotted key and no blanks around it");
  } else {
    nxc_node *value = read_value(&reader, n_key_bytes + 1);
    if (value && reader.ok) reader.ok = put_at(&reader, document->root, steps, n_steps, value) && reader.ok;
  }
  document->complete = document->complete && reader.ok;
  return reader.ok;
}
