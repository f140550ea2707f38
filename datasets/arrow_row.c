/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/arrow_row.h"

#include "datasets/arrow_flat.h"

#include <string.h>

static bool damaged(const nxd_arrow *arrow, const nxd_arrow_column *column, nxr_fault *fault) {
  int n = column->n_name < 60 ? (int)column->n_name : 60;
  return nxr_fault_set(fault, "%s is damaged: rows of column %.*s lead out of it", arrow->path, n,
                       column->name);
}

static bool out_of_memory(const nxd_arrow *arrow, nxr_fault *fault) {
  return nxr_fault_set(fault, "out of memory for %s", arrow->path);
}

bool nxd_arrow_is_valid(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, bool *valid,
                        nxr_fault *fault) {
  *valid = column->type != NXD_ARROW_NULL;
  if (row >= column->n_rows) return damaged(arrow, column, fault);
  if (column->n_nulls == 0 || column->valid.n == 0) return true;
  if (row / 8 >= column->valid.n) return damaged(arrow, column, fault);
  *valid = (column->valid.at[row / 8] >> (row % 8) & 1) != 0;
  return true;
}

bool nxd_arrow_number(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, size_t n_bytes,
                      int64_t *number, nxr_fault *fault) {
  if (row >= column->n_rows || row >= column->data.n / n_bytes) return damaged(arrow, column, fault);
  *number = nxd_flat_load(column->data.at + row * n_bytes, n_bytes);
  if (column->type == NXD_ARROW_INT && !column->is_signed && n_bytes < 8)
    *number = (int64_t)((uint64_t)*number & ((UINT64_C(1) << (8 * n_bytes)) - 1));
  return true;
}

static bool is_large(nxd_arrow_type type) {
  return type == NXD_ARROW_LARGE_BINARY || type == NXD_ARROW_LARGE_UTF8 || type == NXD_ARROW_LARGE_LIST;
}

static bool is_text(nxd_arrow_type type) {
  return type == NXD_ARROW_BINARY || type == NXD_ARROW_UTF8 || type == NXD_ARROW_LARGE_BINARY ||
         type == NXD_ARROW_LARGE_UTF8;
}

bool nxd_arrow_range_of(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row,
                        nxd_arrow_range *range, nxr_fault *fault) {
  uint64_t limit = is_text(column->type) ? column->data.n : column[1].n_rows;
  size_t n_bytes = is_large(column->type) ? 8 : 4;
  if (row >= column->n_rows) return damaged(arrow, column, fault);
  if (column->type == NXD_ARROW_FIXED_LIST) {
    if (row >= UINT64_MAX / (column->list_size + 1)) return damaged(arrow, column, fault);
    *range = (nxd_arrow_range){row * column->list_size, (row + 1) * column->list_size};
  } else {
    if (row + 1 >= column->offsets.n / n_bytes) return damaged(arrow, column, fault);
    range->first = (uint64_t)nxd_flat_load(column->offsets.at + row * n_bytes, n_bytes);
    range->end = (uint64_t)nxd_flat_load(column->offsets.at + (row + 1) * n_bytes, n_bytes);
  }
  return (range->first <= range->end && range->end <= limit) || damaged(arrow, column, fault);
}

static bool give_text(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_batch *batch,
                      nxd_record *record, uint32_t which, nxr_fault *fault) {
  nxd_arrow_range range;
  if (!nxd_arrow_range_of(arrow, column, row, &range, fault)) return false;
  size_t n = (size_t)(range.end - range.first);
  void *bytes = nxd_batch_field(batch, record, which, NXD_STRING, n);
  if (bytes == NULL) return out_of_memory(arrow, fault);
  if (n > 0) memcpy(bytes, column->data.at + range.first, n);
  return true;
}

static bool give_ids(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_batch *batch,
                     nxd_record *record, uint32_t which, nxr_fault *fault) {
  nxd_arrow_range range;
  const nxd_arrow_column *numbers = column + 1;
  if (!nxd_arrow_range_of(arrow, column, row, &range, fault)) return false;
  if (range.end > numbers->data.n / (numbers->bits / 8)) return damaged(arrow, numbers, fault);
  int64_t *ids = nxd_batch_field(batch, record, which, NXD_IDS, (size_t)(range.end - range.first));
  if (ids == NULL) return out_of_memory(arrow, fault);
  for (uint64_t i = range.first; i < range.end; i++) {
    bool valid;
    if (!nxd_arrow_is_valid(arrow, numbers, i, &valid, fault) ||
        !nxd_arrow_number(arrow, numbers, i, numbers->bits / 8, &ids[i - range.first], fault))
      return false;
    if (!valid) ids[i - range.first] = NXD_NO_ID;
  }
  return true;
}

static bool give_json(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_batch *batch,
                      nxd_record *record, uint32_t which, nxr_fault *fault) {
  size_t first = batch->bytes.n;
  if (!nxd_arrow_json(arrow, column, row, &batch->bytes, fault)) return false;
  record->fields[which] = (nxd_field){NXD_VALUE, first, batch->bytes.n - first};
  return true;
}

static bool is_list_of_integers(const nxd_arrow_column *column) {
  bool list = column->type == NXD_ARROW_LIST || column->type == NXD_ARROW_LARGE_LIST ||
              column->type == NXD_ARROW_FIXED_LIST;
  return list && column[1].type == NXD_ARROW_INT && !column[1].has_dictionary;
}

bool nxd_arrow_row(const nxd_arrow *arrow, const nxd_arrow_path *path, uint64_t row, nxd_batch *batch,
                   nxd_record *record, uint32_t which, nxr_fault *fault) {
  const nxd_arrow_column *column = NULL;
  for (uint32_t i = 0; i < path->n; i++) {
    bool valid;
    column = &arrow->columns[path->columns[i]];
    if (!nxd_arrow_is_valid(arrow, column, row, &valid, fault)) return false;
    if (!valid) return true; /* the field stays nothing */
  }
  if (is_text(column->type)) return give_text(arrow, column, row, batch, record, which, fault);
  if (is_list_of_integers(column)) return give_ids(arrow, column, row, batch, record, which, fault);
  return give_json(arrow, column, row, batch, record, which, fault);
}
