/* SPDX-License-Identifier: Apache-2.0 */
/* Many texts looked for at one place of a text at once. */
#ifndef NXT_TRIE_H
#define NXT_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxt_key {
  const char *bytes;
  size_t n_bytes; /* at least 1 */
  uint32_t value;
} nxt_key;

typedef struct nxt_node {
  uint32_t first_child; /* children lie side by side, in the order of their bytes */
  uint16_t n_children;
  uint8_t byte;
  uint32_t value; /* NXT_NONE: no text ends here */
} nxt_node;

typedef struct nxt_trie {
  nxt_node *nodes; /* the root first */
  uint32_t n_nodes;
  uint32_t from_root[256]; /* 0: no text begins with the byte */
} nxt_trie;

/* Sorts the keys. Of equal ones the last counts. */
void nxt_trie_build(nxt_trie *trie, nxt_key *keys, size_t n_keys);
void nxt_trie_close(nxt_trie *trie);

/* The node behind this one by this byte; 0: there is none. */
static inline uint32_t nxt_trie_next(const nxt_trie *trie, uint32_t node, char byte) {
  uint8_t wanted = (uint8_t)byte;
  if (node == 0) return trie->from_root[wanted];
  uint32_t low = trie->nodes[node].first_child, high = low + trie->nodes[node].n_children;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (trie->nodes[middle].byte == wanted) return middle;
    if (trie->nodes[middle].byte < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return 0;
}

/* Bytes of the longest text that stands at `at`, and its value; 0: none does. */
size_t nxt_trie_longest(const nxt_trie *trie, const char *at, const char *end, uint32_t *value);
/* The same of texts that go on from a node; from the root all do. */
size_t nxt_trie_longest_from(const nxt_trie *trie, uint32_t node, const char *at, const char *end,
                             uint32_t *value);

#endif
