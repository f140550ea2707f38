/* SPDX-License-Identifier: Apache-2.0 */
/* Values that columns have numbers of. They come before the rows that need them: all at once, or more and
 * more; or others instead. */
#include "datasets/arrow.h"
#include "datasets/arrow_flat.h"
#include "datasets/arrow_value.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_HEADER = 2, DICTIONARY_ID = 0, DICTIONARY_IS_MORE = 2 };

static size_t n_parts(const nxd_arrow_dictionary *dictionary) {
  return dictionary->parts.n / sizeof(nxd_arrow_rows);
}

static nxd_arrow_rows *parts_of(const nxd_arrow_dictionary *dictionary) {
  return (nxd_arrow_rows *)(void *)dictionary->parts.bytes;
}

static void close_rows(nxd_arrow_rows *rows) {
  nxd_arrow_forget(rows);
  nxd_buffer_free(&rows->blocks);
  free(rows->columns);
}

static void forget_parts(nxd_arrow_dictionary *dictionary) {
  for (size_t i = 0; i < n_parts(dictionary); i++) close_rows(&parts_of(dictionary)[i]);
  dictionary->parts.n = dictionary->firsts.n = 0;
  dictionary->n_rows = 0;
}

void nxd_arrow_close_dictionaries(nxd_arrow *arrow) {
  for (uint32_t i = 0; i < arrow->n_dictionaries; i++) {
    nxd_arrow_dictionary *dictionary = &arrow->dictionaries[i];
    forget_parts(dictionary);
    nxd_buffer_free(&dictionary->parts);
    nxd_buffer_free(&dictionary->firsts);
    close_rows(&dictionary->form);
  }
  free(arrow->dictionaries);
}

static bool out_of_memory(const nxd_arrow *arrow, nxr_fault *fault) {
  return nxr_fault_set(fault, "out of memory for %s", arrow->path);
}

/* Columns of their own for one more part. */
static bool copy_form(const nxd_arrow_rows *form, nxd_arrow_rows *part) {
  *part = (nxd_arrow_rows){.n_columns = form->n_columns,
                           .columns = malloc(form->n_columns * sizeof *form->columns)};
  if (part->columns) memcpy(part->columns, form->columns, form->n_columns * sizeof *form->columns);
  return part->columns != NULL;
}

bool nxd_arrow_read_dictionary(nxd_arrow *arrow, const uint8_t *bytes, size_t n_bytes, nxd_arrow_bytes body,
                               nxr_fault *fault) {
  nxd_flat flat = {.bytes = bytes, .n = n_bytes};
  nxd_flat_table message = nxd_flat_root(&flat), header = nxd_flat_member(&message, MESSAGE_HEADER);
  int64_t id = nxd_flat_integer(&header, DICTIONARY_ID, 8, 0);
  uint32_t i = 0;
  while (i < arrow->n_dictionaries && arrow->dictionaries[i].id != id) i++;
  if (i == arrow->n_dictionaries) return true;
  nxd_arrow_dictionary *dictionary = &arrow->dictionaries[i];
  if (nxd_flat_integer(&header, DICTIONARY_IS_MORE, 1, 0) == 0) forget_parts(dictionary);
  nxd_arrow_rows part;
  if (!copy_form(&dictionary->form, &part)) return out_of_memory(arrow, fault);
  bool read = nxd_arrow_read_batch(arrow, &part, bytes, n_bytes, body, fault);
  uint64_t first = dictionary->n_rows;
  bool fits = read && part.n_rows <= UINT64_MAX / 2 - first;
  if (fits && nxd_buffer_append(&dictionary->firsts, &first, sizeof first) &&
      nxd_buffer_append(&dictionary->parts, &part, sizeof part)) {
    dictionary->n_rows += part.n_rows;
    return true;
  }
  close_rows(&part);
  return read && out_of_memory(arrow, fault);
}

bool nxd_arrow_look_up(const nxd_arrow *arrow, const nxd_arrow_column **column, uint64_t *row,
                       nxr_fault *fault) {
  const nxd_arrow_column *numbers = *column;
  int64_t number;
  if (!numbers->has_dictionary) return true;
  if (!nxd_arrow_number(arrow, numbers, *row, numbers->bits / 8, &number, fault)) return false;
  const nxd_arrow_dictionary *dictionary = &arrow->dictionaries[numbers->dictionary];
  if (number < 0 || (uint64_t)number >= dictionary->n_rows)
    return nxr_fault_set(fault, "%s is damaged: value %lld of a dictionary is not in it", arrow->path,
                         (long long)number);
  const uint64_t *firsts = (const uint64_t *)(const void *)dictionary->firsts.bytes;
  size_t low = 0, high = n_parts(dictionary);
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (firsts[middle] <= (uint64_t)number) low = middle;
    else high = middle;
  }
  *column = parts_of(dictionary)[low].columns;
  *row = (uint64_t)number - firsts[low];
  return true;
}
