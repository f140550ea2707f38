/* SPDX-License-Identifier: Apache-2.0 */
/* Parsed expressions by their texts. Entries are added under a lock, are never changed or removed, and are
 * found without one, so that threads share them. */
#include "compiler/expression/expression.h"
#include "compiler/hash.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { N_LISTS = 8192, ENTRIES_MAX = 16384 };

typedef struct entry {
  const nxc_expression *expression;
  const struct entry *next;
} entry;

static _Atomic(const entry *) lists[N_LISTS];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static nxc_arena *kept; /* guarded by `adding`, as n_entries is; for as long as the program runs */
static size_t n_entries;

/* Of its length, its first bytes, its middle and its last: texts that have these in common differ seldom. */
static size_t list_of(const char *text) {
  const size_t n_bytes = strlen(text);
  uint64_t hash = n_bytes, part = 0;
  if (n_bytes < sizeof part) {
    memcpy(&part, text, n_bytes);
    return nxc_hash_mixed(hash, part) % N_LISTS;
  }
  const size_t last = n_bytes - sizeof part, places[] = {0, n_bytes / 4, n_bytes / 2, last};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    memcpy(&part, text + (places[i] < last ? places[i] : last), sizeof part);
    hash = nxc_hash_mixed(hash, part);
  }
  return hash % N_LISTS;
}

static const nxc_expression *find(size_t list, const char *text) {
  const entry *at = atomic_load_explicit(&lists[list], memory_order_acquire);
  while (at != NULL && strcmp(at->expression->text, text) != 0) at = at->next;
  return at ? at->expression : NULL;
}

static const nxc_expression *parse(nxc_arena *arena, const char *text) {
  const char *error;
  size_t error_at;
  const nxc_expression *parsed = nxc_expression_parse(arena, text, &error, &error_at);
  assert(parsed != NULL);
  return parsed;
}

/* NULL when there is no room. */
static const nxc_expression *add(size_t list, const char *text) {
  pthread_mutex_lock(&adding);
  const nxc_expression *found = find(list, text);
  if (found == NULL && n_entries < ENTRIES_MAX) {
    if (kept == NULL) kept = nxc_arena_new();
    entry *fresh = nxc_arena_alloc(kept, sizeof *fresh);
    *fresh = (entry){parse(kept, text), atomic_load_explicit(&lists[list], memory_order_relaxed)};
    atomic_store_explicit(&lists[list], fresh, memory_order_release);
    n_entries++;
    found = fresh->expression;
  }
  pthread_mutex_unlock(&adding);
  return found;
}

const nxc_expression *nxc_expression_of(nxc_arena *arena, const char *text) {
  if (text == NULL) return NULL;
  size_t list = list_of(text);
  const nxc_expression *found = find(list, text);
  if (found == NULL) found = add(list, text);
  return found ? found : parse(arena, text);
}
