/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_end(void *memory, size_t n, size_t item_bytes) {
  if (memory != NULL) return memory;
  fprintf(stderr, "tokenizer: out of memory (%zu items of %zu bytes)\n", n, item_bytes);
  exit(3);
}

void *nxt_new(size_t n, size_t item_bytes) {
  return or_end(calloc(n ? n : 1, item_bytes), n, item_bytes);
}

void *nxt_resize(void *items, size_t n, size_t item_bytes) {
  return or_end(reallocarray(items, n ? n : 1, item_bytes), n, item_bytes);
}

char *nxt_copy(const char *bytes, size_t n_bytes) {
  char *copy = nxt_new(n_bytes + 1, 1);
  if (n_bytes > 0) memcpy(copy, bytes, n_bytes);
  return copy;
}

static size_t grown(size_t room, size_t needed) {
  size_t twice = 2 * room;
  return twice > needed ? twice : needed < 64 ? 64 : needed;
}

char *nxt_text_reserve(nxt_text *text, size_t n) {
  if (text->items == NULL || text->room - text->n < n) {
    text->room = grown(text->room, text->n + n);
    text->items = nxt_resize(text->items, text->room, 1);
  }
  return text->items + text->n;
}

void nxt_text_add(nxt_text *text, const char *bytes, size_t n) {
  if (n == 0) return;
  memcpy(nxt_text_reserve(text, n), bytes, n);
  text->n += n;
}

uint32_t *nxt_ids_reserve(nxt_ids *ids, size_t n) {
  if (ids->items == NULL || ids->room - ids->n < n) {
    ids->room = grown(ids->room, ids->n + n);
    ids->items = nxt_resize(ids->items, ids->room, sizeof *ids->items);
  }
  return ids->items + ids->n;
}

void nxt_ids_add(nxt_ids *ids, uint32_t id) {
  *nxt_ids_reserve(ids, 1) = id;
  ids->n++;
}
