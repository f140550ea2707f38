/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/arrow_row.h"

#include "datasets/arrow_value.h"

#include <string.h>

static bool out_of_memory(const nxd_arrow *arrow, nxr_fault *fault) {
  return nxr_fault_set(fault, "out of memory for %s", arrow->path);
}

static bool give_text(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_batch *batch,
                      nxd_record *record, uint32_t which, nxr_fault *fault) {
  nxd_arrow_bytes text;
  if (!nxd_arrow_text_of(arrow, column, row, &text, fault)) return false;
  void *bytes = nxd_batch_field(batch, record, which, column->is_json ? NXD_VALUE : NXD_STRING, text.n);
  if (bytes == NULL) return out_of_memory(arrow, fault);
  if (text.n > 0) memcpy(bytes, text.at, text.n);
  return true;
}

static bool give_ids(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_batch *batch,
                     nxd_record *record, uint32_t which, nxr_fault *fault) {
  nxd_arrow_range range;
  const nxd_arrow_column *numbers = column + 1;
  if (!nxd_arrow_range_of(arrow, column, row, &range, fault)) return false;
  if (range.end > numbers->data.n / (numbers->bits / 8)) return nxd_arrow_damaged(arrow, numbers, fault);
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
  bool list = nxd_arrow_is_list(column->type) && column->type != NXD_ARROW_MAP;
  return list && column[1].type == NXD_ARROW_INT && !column[1].has_dictionary;
}

bool nxd_arrow_row(const nxd_arrow *arrow, const nxd_arrow_path *path, uint64_t row, nxd_batch *batch,
                   nxd_record *record, uint32_t which, nxr_fault *fault) {
  const nxd_arrow_column *column = NULL;
  bool valid;
  for (uint32_t i = 0; i < path->n; i++) {
    column = &arrow->rows.columns[path->columns[i]];
    if (!nxd_arrow_is_valid(arrow, column, row, &valid, fault)) return false;
    if (!valid) return true; /* the field stays nothing */
  }
  if (!nxd_arrow_look_up(arrow, &column, &row, fault) ||
      !nxd_arrow_is_valid(arrow, column, row, &valid, fault))
    return false;
  if (!valid) return true;
  if (nxd_arrow_is_text(column->type)) return give_text(arrow, column, row, batch, record, which, fault);
  if (is_list_of_integers(column)) return give_ids(arrow, column, row, batch, record, which, fault);
  return give_json(arrow, column, row, batch, record, which, fault);
}
