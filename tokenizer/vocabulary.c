/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/vocabulary.h"

#include "tokenizer/memory.h"

#include <stdlib.h>
#include <string.h>

uint32_t nxt_hash(const char *bytes, size_t n_bytes) {
  const uint64_t odd = 0x9e3779b97f4a7c15u;
  uint64_t hash = n_bytes * odd, eight = 0;
  for (; n_bytes >= 8; bytes += 8, n_bytes -= 8) {
    memcpy(&eight, bytes, 8);
    hash = (hash ^ eight) * odd;
    hash ^= hash >> 32;
  }
  eight = 0;
  for (size_t i = 0; i < n_bytes; i++) eight = eight << 8 | (uint8_t)bytes[i];
  hash = (hash ^ eight) * odd;
  return (uint32_t)(hash >> 32);
}

void nxt_vocabulary_close(nxt_vocabulary *vocabulary) {
  free(vocabulary->texts.items);
  free(vocabulary->entries);
  free(vocabulary->slots);
  free(vocabulary->by_id);
  *vocabulary = (nxt_vocabulary){0};
}

/* The slot that holds the text, or where it would go. */
static uint32_t *find_slot(const nxt_vocabulary *vocabulary, const char *text, size_t n_bytes,
                           uint32_t hash) {
  uint32_t mask = vocabulary->n_slots - 1;
  for (uint32_t slot = hash & mask;; slot = (slot + 1) & mask) {
    uint32_t index = vocabulary->slots[slot];
    if (index == NXT_NONE) return &vocabulary->slots[slot];
    const nxt_entry *entry = &vocabulary->entries[index];
    if (entry->hash == hash && entry->n_bytes == n_bytes &&
        memcmp(vocabulary->texts.items + entry->begin, text, n_bytes) == 0)
      return &vocabulary->slots[slot];
  }
}

static void grow(nxt_vocabulary *vocabulary) {
  uint32_t room = vocabulary->entry_room ? 2 * vocabulary->entry_room : 256;
  vocabulary->entries = nxt_resize(vocabulary->entries, room, sizeof *vocabulary->entries);
  vocabulary->entry_room = room;
  vocabulary->n_slots = 2 * room;
  vocabulary->slots = nxt_resize(vocabulary->slots, vocabulary->n_slots, sizeof *vocabulary->slots);
  memset(vocabulary->slots, 0xff, vocabulary->n_slots * sizeof *vocabulary->slots);
  for (uint32_t i = 0; i < vocabulary->n_entries; i++) {
    uint32_t slot = vocabulary->entries[i].hash & (vocabulary->n_slots - 1);
    while (vocabulary->slots[slot] != NXT_NONE) slot = (slot + 1) & (vocabulary->n_slots - 1);
    vocabulary->slots[slot] = i;
  }
}

static void set_by_id(nxt_vocabulary *vocabulary, uint32_t id, uint32_t index) {
  if (id >= vocabulary->id_room) {
    uint32_t room = id + 1 > 2 * vocabulary->id_room ? id + 1 : 2 * vocabulary->id_room;
    vocabulary->by_id = nxt_resize(vocabulary->by_id, room, sizeof *vocabulary->by_id);
    memset(vocabulary->by_id + vocabulary->id_room, 0xff,
           (room - vocabulary->id_room) * sizeof *vocabulary->by_id);
    vocabulary->id_room = room;
  }
  vocabulary->by_id[id] = index;
  if (id >= vocabulary->n_ids) vocabulary->n_ids = id + 1;
}

void nxt_vocabulary_add(nxt_vocabulary *vocabulary, const char *text, size_t n_bytes, uint32_t id) {
  if (vocabulary->n_entries == vocabulary->entry_room) grow(vocabulary);
  uint32_t hash = nxt_hash(text, n_bytes), *slot = find_slot(vocabulary, text, n_bytes, hash);
  if (*slot == NXT_NONE) {
    *slot = vocabulary->n_entries++;
    vocabulary->entries[*slot] = (nxt_entry){(uint32_t)vocabulary->texts.n, (uint32_t)n_bytes, id, hash};
    nxt_text_add(&vocabulary->texts, text, n_bytes);
  }
  vocabulary->entries[*slot].id = id;
  set_by_id(vocabulary, id, *slot);
}

uint32_t nxt_vocabulary_id(const nxt_vocabulary *vocabulary, const char *text, size_t n_bytes) {
  if (vocabulary->n_entries == 0) return NXT_NONE;
  uint32_t index = *find_slot(vocabulary, text, n_bytes, nxt_hash(text, n_bytes));
  return index == NXT_NONE ? NXT_NONE : vocabulary->entries[index].id;
}

const char *nxt_vocabulary_text(const nxt_vocabulary *vocabulary, uint32_t id, size_t *n_bytes) {
  uint32_t index = id < vocabulary->n_ids ? vocabulary->by_id[id] : NXT_NONE;
  if (index == NXT_NONE) return NULL;
  const nxt_entry *entry = &vocabulary->entries[index];
  *n_bytes = entry->n_bytes;
  return vocabulary->texts.items + entry->begin;
}
