/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a document: finding them, naming them, their places and values. */
#include "compiler/document/document.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

nxc_node *nxc_node_child(const nxc_node *map, const char *key) {
  return nxc_node_child_n(map, key, strlen(key));
}

nxc_node *nxc_node_final(const nxc_node *node) {
  while (node->target) node = node->target;
  return (nxc_node *)node;
}

nxc_node *nxc_node_item(const nxc_node *from, const char *step, size_t n_bytes) {
  if (from->kind != NXC_NODE_LIST) return nxc_node_child_n(from, step, n_bytes);
  size_t index = 0;
  if (n_bytes == 0 || n_bytes > 9) return NULL;
  for (size_t i = 0; i < n_bytes; i++) {
    if (step[i] < '0' || step[i] > '9') return NULL;
    index = 10 * index + (size_t)(step[i] - '0');
  }
  return index < from->n_children ? from->children[index] : NULL;
}

nxc_node *nxc_node_lookup(const nxc_node *from, const char *path) {
  const nxc_node *node = from;
  while (node && *path) {
    path += strspn(path, ".[]");
    size_t n = strcspn(path, ".[]");
    if (n == 0) break;
    node = nxc_node_item(nxc_node_final(node), path, n);
    path += n;
  }
  return (nxc_node *)node;
}

const char *nxc_node_path(nxc_arena *arena, const nxc_node *node) {
  const nxc_node *chain[2 * NXC_DOCUMENT_DEPTH_MAX + 2];
  size_t n = 0, n_bytes = 1;
  for (; node->parent && n < sizeof chain / sizeof *chain; node = node->parent) {
    chain[n++] = node;
    n_bytes += node->key ? strlen(node->key) + 1 : 24;
  }
  char *path = nxc_arena_alloc(arena, n_bytes + 1), *to = path;
  while (n-- > 0) {
    if (chain[n]->key) to += sprintf(to, "%s%s", to > path ? "." : "", chain[n]->key);
    else to += sprintf(to, "[%zu]", chain[n]->index);
  }
  return path;
}

nxc_span nxc_node_span(const nxc_node *node) {
  return node->key_at.source ? node->key_at : node->at;
}

/* Whether an interpolation may begin at this text. */
static bool opens(const char *text, size_t n_left) {
  return n_left >= 2 && text[0] == '$' && (text[1] == '{' || text[1] == '<');
}

static nxc_span span_at(const nxc_source *source, size_t offset, uint32_t length) {
  uint32_t low = 0, high = source->n_lines;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (source->line_start[middle] <= offset) low = middle;
    else high = middle;
  }
  uint32_t column = (uint32_t)nxc_source_column(source, low + 1, offset) + 1;
  return (nxc_span){source, low + 1, column, length ? length : 1};
}

/* In so many bytes of the raw text, which is UTF-8. */
static uint32_t characters_of(const nxc_node *node, size_t offset, size_t n_bytes) {
  uint32_t n = 0;
  for (size_t i = offset; i < offset + n_bytes && i < node->raw_bytes; i++)
    n += ((unsigned char)node->raw[i] & 0xc0) != 0x80;
  return n;
}

/* Quoting and line folding shift text, but every `${` of the value stands in the source in the same order:
 * count to the last one before the offset, and go on from there as far as the bytes agree. */
nxc_span nxc_node_span_inside(const nxc_node *node, size_t offset, size_t n_bytes) {
  enum { LONGEST_ESCAPE = 10 /* \U00000024 */, FOLDED_BYTES = 256 };
  const nxc_source *source = node->at.source;
  if (source == NULL) return node->at;
  size_t n_before = 0, last = 0;
  for (size_t i = 0; i <= offset && i < node->raw_bytes; i++) {
    if (!opens(node->raw + i, node->raw_bytes - i)) continue;
    n_before++;
    last = i;
  }
  size_t at = nxc_span_offset(node->at, false);
  size_t found = at, end = at + LONGEST_ESCAPE * node->raw_bytes + FOLDED_BYTES;
  if (end > source->n_bytes) end = source->n_bytes;
  for (size_t i = at; n_before > 0 && i < end; i++) {
    if (!opens(source->text + i, source->n_bytes - i)) continue;
    found = i;
    n_before--;
  }
  if (n_before > 0) return node->at;
  if (found == at && last == 0 && source->text[at] != '$' && strchr("'\"", source->text[at])) found++;
  size_t n = 0;
  while (last + n < offset && found + n < source->n_bytes && source->text[found + n] == node->raw[last + n])
    n++;
  bool exact = last + n == offset;
  return span_at(source, found + (exact ? n : 0), exact ? characters_of(node, offset, n_bytes) : 2);
}

typedef struct flattening {
  nxc_arena *arena;
  size_t n_left;
  bool raw; /* interpolations as text */
} flattening;

static bool flatten(flattening *f, const nxc_node *node, nxc_value *value, size_t depth) {
  if (f->raw && node->derivation) {
    *value = nxc_string_value(node->raw, node->raw_bytes);
    return true;
  }
  node = nxc_node_final(node);
  if (f->n_left == 0 || depth > 4 * NXC_DOCUMENT_DEPTH_MAX) return false;
  f->n_left--;
  if (node->kind == NXC_NODE_SCALAR) {
    *value = node->value;
    return true;
  }
  bool is_map = node->kind == NXC_NODE_MAP;
  nxc_value *items = nxc_arena_array(f->arena, node->n_children * (is_map ? 2 : 1), sizeof *items);
  for (size_t i = 0; i < node->n_children; i++) {
    if (is_map) items[2 * i] = node->children[i]->key_value;
    if (!flatten(f, node->children[i], &items[is_map ? 2 * i + 1 : i], depth + 1)) return false;
  }
  *value = (nxc_value){.kind = is_map ? NXC_MAP : NXC_LIST, .items = items, .n_items = node->n_children};
  return true;
}

const nxc_value *nxc_node_value(nxc_arena *arena, const nxc_node *node) {
  flattening f = {.arena = arena, .n_left = NXC_VALUE_NODES_MAX};
  nxc_value *value = nxc_arena_alloc(arena, sizeof *value);
  return flatten(&f, node, value, 0) ? value : NULL;
}

const nxc_value *nxc_node_raw_value(nxc_arena *arena, const nxc_node *node) {
  flattening f = {.arena = arena, .n_left = NXC_VALUE_NODES_MAX, .raw = true};
  nxc_value *value = nxc_arena_alloc(arena, sizeof *value);
  return flatten(&f, node, value, 0) ? value : NULL;
}

bool nxc_node_is_read(const nxc_node *node) {
  for (const nxc_node *around = node; around; around = around->parent)
    if (around->reader) return true;
  for (size_t i = 0; i < node->n_children; i++) {
    const nxc_node *child = node->children[i];
    if (child->reader) return true;
    if (child->n_children && nxc_node_is_read(child)) return true;
  }
  return false;
}
