/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/trie.h"

#include "tokenizer/memory.h"
#include "tokenizer/vocabulary.h"

#include <stdlib.h>
#include <string.h>

/* Equal texts stay in the order in which they came. */
static int compare_keys(const void *a, const void *b) {
  const nxt_key *x = a, *y = b;
  int order = memcmp(x->bytes, y->bytes, x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes);
  if (order != 0) return order;
  return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* The keys that go through a node: those from `first` to before `end`, which share `depth` bytes. */
typedef struct range {
  size_t first, end, depth;
} range;

/* Appends the children of a node, and their ranges. */
static void add_children(nxt_trie *trie, range *ranges, uint32_t node, const nxt_key *keys) {
  range here = ranges[node];
  trie->nodes[node].first_child = trie->n_nodes;
  while (here.first < here.end && keys[here.first].n_bytes == here.depth)
    trie->nodes[node].value = keys[here.first++].value;
  for (size_t first = here.first, end; first < here.end; first = end) {
    char byte = keys[first].bytes[here.depth];
    for (end = first; end < here.end && keys[end].bytes[here.depth] == byte;) end++;
    uint32_t child = trie->n_nodes++;
    trie->nodes[child] = (nxt_node){.byte = (uint8_t)byte, .value = NXT_NONE};
    trie->nodes[node].n_children++;
    ranges[child] = (range){first, end, here.depth + 1};
    if (node == 0) trie->from_root[(uint8_t)byte] = child;
  }
}

void nxt_trie_build(nxt_trie *trie, nxt_key *keys, size_t n_keys) {
  size_t most = 1;
  qsort(keys, n_keys, sizeof *keys, compare_keys);
  for (size_t i = 0; i < n_keys; i++) most += keys[i].n_bytes;
  memset(trie, 0, sizeof *trie);
  trie->nodes = nxt_new(most, sizeof *trie->nodes);
  range *ranges = nxt_new(most, sizeof *ranges);
  trie->nodes[0].value = NXT_NONE;
  trie->n_nodes = 1;
  ranges[0] = (range){0, n_keys, 0};
  for (uint32_t node = 0; node < trie->n_nodes; node++) add_children(trie, ranges, node, keys);
  free(ranges);
  trie->nodes = nxt_resize(trie->nodes, trie->n_nodes, sizeof *trie->nodes);
}

void nxt_trie_close(nxt_trie *trie) {
  free(trie->nodes);
  *trie = (nxt_trie){0};
}

size_t nxt_trie_longest(const nxt_trie *trie, const char *at, const char *end, uint32_t *value) {
  return trie->n_nodes == 0 ? 0 : nxt_trie_longest_from(trie, 0, at, end, value);
}

size_t nxt_trie_longest_from(const nxt_trie *trie, uint32_t node, const char *at, const char *end,
                             uint32_t *value) {
  size_t longest = 0;
  for (const char *next = at; next < end && (node = nxt_trie_next(trie, node, *next)) != 0;) {
    next++;
    if (trie->nodes[node].value == NXT_NONE) continue;
    longest = (size_t)(next - at);
    *value = trie->nodes[node].value;
  }
  return longest;
}
