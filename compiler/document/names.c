/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/names.h"

#include "compiler/hash.h"

#include <string.h>

typedef struct entry {
  const char *key; /* NULL: free */
  size_t n_bytes;
  uint64_t hash;
  void *pointer;
} entry;

struct nxc_names {
  nxc_arena *arena;
  entry *entries;
  size_t n_entries;
  size_t capacity; /* a power of two, at least half free */
};

nxc_names *nxc_names_new(nxc_arena *arena) {
  nxc_names *names = nxc_arena_alloc(arena, sizeof *names);
  *names = (nxc_names){.arena = arena, .capacity = 16};
  names->entries = nxc_arena_array(arena, names->capacity, sizeof *names->entries);
  return names;
}

static entry *probe(const nxc_names *names, const char *key, size_t n_bytes, uint64_t hash) {
  for (size_t i = hash & (names->capacity - 1);; i = (i + 1) & (names->capacity - 1)) {
    entry *at = &names->entries[i];
    if (at->key == NULL) return at;
    if (at->hash == hash && at->n_bytes == n_bytes && memcmp(at->key, key, n_bytes) == 0) return at;
  }
}

static void grow(nxc_names *names) {
  nxc_names larger = {.arena = names->arena, .n_entries = names->n_entries, .capacity = 2 * names->capacity};
  larger.entries = nxc_arena_array(names->arena, larger.capacity, sizeof *larger.entries);
  for (size_t i = 0; i < names->capacity; i++) {
    entry *from = &names->entries[i];
    if (from->key) *probe(&larger, from->key, from->n_bytes, from->hash) = *from;
  }
  *names = larger;
}

void **nxc_names_slot(nxc_names *names, const char *key, size_t n_bytes) {
  if (2 * names->n_entries >= names->capacity) grow(names);
  uint64_t hash = nxc_hash_bytes(key, n_bytes);
  entry *at = probe(names, key, n_bytes, hash);
  if (at->key == NULL) {
    *at = (entry){.key = key, .n_bytes = n_bytes, .hash = hash};
    names->n_entries++;
  }
  return &at->pointer;
}

void *nxc_names_find(const nxc_names *names, const char *key, size_t n_bytes) {
  return probe(names, key, n_bytes, nxc_hash_bytes(key, n_bytes))->pointer;
}
