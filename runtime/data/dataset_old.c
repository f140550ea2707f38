/* SPDX-License-Identifier: Apache-2.0 */
/* The older kind of index, which fairseq and the first versions of Megatron-LM wrote: "TNTIDX\0\0", u64
 * version 1, type code, bytes of a token, number of sequences, number of sizes, number of document borders,
 * then i64 numbers: for each sequence and behind the last one the first of its sizes, and its offset in
 * tokens; sizes; borders. A sequence has one size here: those of more dimensions are no text. Where the
 * borders do not say where the last document ends it ends with the last sequence. */
#include "runtime/data/dataset.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 8 + 6 * 8, TODAYS_HEAD_BYTES = 9 + 8 + 1 + 8 + 8 };

typedef struct old_index {
  uint64_t type_code, token_bytes, n_sequences, n_sizes, n_borders;
  const uint8_t *firsts, *offsets, *sizes, *borders;
  bool needs_end; /* a border behind the last sequence */
} old_index;

static uint64_t load(const uint8_t *numbers, uint64_t i) {
  uint64_t value;
  memcpy(&value, numbers + 8 * i, sizeof value);
  return value;
}

static bool damaged(const char *path, nxr_fault *fault) {
  return nxr_fault_set(fault, "%s is cut short or damaged (an index of the older kind, TNTIDX)", path);
}

static bool read_head(const uint8_t *index, uint64_t n_bytes, const char *path, old_index *old,
                      nxr_fault *fault) {
  if (n_bytes < HEAD_BYTES || load(index, 1) != 1) return damaged(path, fault);
  *old = (old_index){load(index, 2), load(index, 3), load(index, 4), load(index, 5), load(index, 6)};
  uint64_t n_numbers = (n_bytes - HEAD_BYTES) / 8, n = old->n_sequences;
  if (n > n_numbers || old->n_sizes > n_numbers || old->n_borders > n_numbers ||
      2 * (n + 1) + old->n_sizes + old->n_borders != n_numbers || n_bytes % 8 != 0 || old->type_code > 255)
    return damaged(path, fault);
  old->firsts = index + HEAD_BYTES;
  old->offsets = old->firsts + 8 * (n + 1);
  old->sizes = old->offsets + 8 * (n + 1);
  old->borders = old->sizes + 8 * old->n_sizes;
  old->needs_end = old->n_borders == 0 || load(old->borders, old->n_borders - 1) != n;
  return true;
}

static bool check(const old_index *old, const char *path, nxr_fault *fault) {
  const nxr_token_type *type = nxr_token_type_of((uint32_t)old->type_code);
  bool wide = old->token_bytes == 4 || old->token_bytes == 8;
  if (type == NULL || (type->bytes > 0 ? old->token_bytes != type->bytes : !wide) ||
      old->n_sizes != old->n_sequences)
    return nxr_fault_set(fault, "%s holds no tokens (type code %llu of %llu bytes)", path,
                         (unsigned long long)old->type_code, (unsigned long long)old->token_bytes);
  for (uint64_t i = 0; i < old->n_sequences; i++)
    if (load(old->firsts, i) != i || load(old->sizes, i) > INT32_MAX || load(old->offsets, i) > INT64_MAX / 8)
      return damaged(path, fault);
  return true;
}

static void put(uint8_t **at, const void *bytes, size_t n) {
  memcpy(*at, bytes, n);
  *at += n;
}

static void write_todays(const old_index *old, uint8_t *at) {
  const uint64_t version = 1, first = 0, n_sequences = old->n_sequences;
  bool needs_first = old->n_borders == 0;
  const uint64_t n_borders = old->n_borders + needs_first + old->needs_end;
  const uint8_t type_code = (uint8_t)old->type_code;
  put(&at, "MMIDIDX\0\0", 9), put(&at, &version, 8), put(&at, &type_code, 1);
  put(&at, &n_sequences, 8), put(&at, &n_borders, 8);
  for (uint64_t i = 0; i < n_sequences; i++) {
    uint32_t size = (uint32_t)load(old->sizes, i);
    put(&at, &size, sizeof size);
  }
  for (uint64_t i = 0; i < n_sequences; i++) {
    uint64_t pointer = load(old->offsets, i) * old->token_bytes;
    put(&at, &pointer, sizeof pointer);
  }
  if (needs_first) put(&at, &first, sizeof first);
  put(&at, old->borders, 8 * old->n_borders);
  if (old->needs_end) put(&at, &n_sequences, sizeof n_sequences);
}

bool nxr_dataset_modernize(uint8_t **index, uint64_t *n_bytes, const char *path, nxr_fault *fault) {
  old_index old = {0};
  if (*n_bytes < 8 || memcmp(*index, "TNTIDX\0\0", 8) != 0) return true;
  if (!read_head(*index, *n_bytes, path, &old, fault) || !check(&old, path, fault)) return false;
  uint64_t n =
      TODAYS_HEAD_BYTES + 12 * old.n_sequences + 8 * (old.n_borders + (old.n_borders == 0) + old.needs_end);
  uint8_t *todays = malloc(n);
  if (todays == NULL) return nxr_fault_set(fault, "out of memory for %s", path);
  write_todays(&old, todays);
  free(*index);
  *index = todays, *n_bytes = n;
  return true;
}
