/* SPDX-License-Identifier: Apache-2.0 */
/* One value of a column. */
#include "datasets/arrow_value.h"

#include "datasets/arrow_flat.h"

bool nxd_arrow_damaged(const nxd_arrow *arrow, const nxd_arrow_column *column, nxr_fault *fault) {
  int n = column->n_name < 60 ? (int)column->n_name : 60;
  return nxr_fault_set(fault, "%s is damaged: rows of column %.*s lead out of it", arrow->path, n,
                       column->name);
}

bool nxd_arrow_is_valid(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, bool *valid,
                        nxr_fault *fault) {
  *valid = column->type != NXD_ARROW_NULL;
  if (row >= column->n_rows) return nxd_arrow_damaged(arrow, column, fault);
  if (column->n_nulls == 0 || column->valid.n == 0) return true;
  if (row / 8 >= column->valid.n) return nxd_arrow_damaged(arrow, column, fault);
  *valid = (column->valid.at[row / 8] >> (row % 8) & 1) != 0;
  return true;
}

bool nxd_arrow_number(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, size_t n_bytes,
                      int64_t *number, nxr_fault *fault) {
  if (row >= column->n_rows || row >= column->data.n / n_bytes)
    return nxd_arrow_damaged(arrow, column, fault);
  *number = nxd_flat_load(column->data.at + row * n_bytes, n_bytes);
  if (column->type == NXD_ARROW_INT && !column->is_signed && n_bytes < 8)
    *number = (int64_t)((uint64_t)*number & ((UINT64_C(1) << (8 * n_bytes)) - 1));
  return true;
}

static bool is_large(nxd_arrow_type type) {
  return type == NXD_ARROW_LARGE_BINARY || type == NXD_ARROW_LARGE_UTF8 || type == NXD_ARROW_LARGE_LIST ||
         type == NXD_ARROW_LARGE_LIST_VIEW;
}

static bool is_view(nxd_arrow_type type) {
  return type == NXD_ARROW_BINARY_VIEW || type == NXD_ARROW_UTF8_VIEW;
}

bool nxd_arrow_is_text(nxd_arrow_type type) {
  return type == NXD_ARROW_BINARY || type == NXD_ARROW_UTF8 || type == NXD_ARROW_LARGE_BINARY ||
         type == NXD_ARROW_LARGE_UTF8 || is_view(type);
}

bool nxd_arrow_is_list(nxd_arrow_type type) {
  return type == NXD_ARROW_LIST || type == NXD_ARROW_LARGE_LIST || type == NXD_ARROW_FIXED_LIST ||
         type == NXD_ARROW_LIST_VIEW || type == NXD_ARROW_LARGE_LIST_VIEW || type == NXD_ARROW_MAP;
}

static uint64_t load(nxd_arrow_bytes bytes, uint64_t row, size_t n_bytes) {
  return (uint64_t)nxd_flat_load(bytes.at + row * n_bytes, n_bytes);
}

/* By where a row begins and where the next does. */
static bool between(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, uint64_t limit,
                    nxd_arrow_range *range, nxr_fault *fault) {
  size_t n_bytes = is_large(column->type) ? 8 : 4;
  if (row + 1 >= column->offsets.n / n_bytes) return nxd_arrow_damaged(arrow, column, fault);
  *range = (nxd_arrow_range){load(column->offsets, row, n_bytes), load(column->offsets, row + 1, n_bytes)};
  return (range->first <= range->end && range->end <= limit) || nxd_arrow_damaged(arrow, column, fault);
}

bool nxd_arrow_range_of(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row,
                        nxd_arrow_range *range, nxr_fault *fault) {
  bool view = column->type == NXD_ARROW_LIST_VIEW || column->type == NXD_ARROW_LARGE_LIST_VIEW;
  size_t n_bytes = is_large(column->type) ? 8 : 4;
  uint64_t n, limit = column[1].n_rows;
  if (row >= column->n_rows) return nxd_arrow_damaged(arrow, column, fault);
  if (!view && column->type != NXD_ARROW_FIXED_LIST) return between(arrow, column, row, limit, range, fault);
  if (view) {
    if (row >= column->offsets.n / n_bytes || row >= column->data.n / n_bytes)
      return nxd_arrow_damaged(arrow, column, fault);
    range->first = load(column->offsets, row, n_bytes), n = load(column->data, row, n_bytes);
  } else {
    n = column->list_size;
    if (row >= UINT64_MAX / (n + 1)) return nxd_arrow_damaged(arrow, column, fault);
    range->first = row * n;
  }
  if (range->first > limit || n > limit - range->first) return nxd_arrow_damaged(arrow, column, fault);
  range->end = range->first + n;
  return true;
}

/* A view is a length, and the text if that is short; else its beginning, which of the buffers has it, and
 * where. */
static bool text_of_view(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row,
                         nxd_arrow_bytes *text, nxr_fault *fault) {
  enum { VIEW_BYTES = 16, SHORT = 12 };
  if (row >= column->data.n / VIEW_BYTES) return nxd_arrow_damaged(arrow, column, fault);
  const uint8_t *view = column->data.at + row * VIEW_BYTES;
  int64_t n = nxd_flat_load(view, 4), which = nxd_flat_load(view + 8, 4), at = nxd_flat_load(view + 12, 4);
  if (n < 0) return nxd_arrow_damaged(arrow, column, fault);
  *text = (nxd_arrow_bytes){view + 4, (uint64_t)n};
  if (n <= SHORT) return true;
  if (which < 0 || (uint64_t)which >= column->n_views || at < 0)
    return nxd_arrow_damaged(arrow, column, fault);
  const nxd_arrow_bytes *in = &column->views[which];
  if ((uint64_t)at > in->n || (uint64_t)n > in->n - (uint64_t)at)
    return nxd_arrow_damaged(arrow, column, fault);
  text->at = in->at + at;
  return true;
}

bool nxd_arrow_text_of(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row,
                       nxd_arrow_bytes *text, nxr_fault *fault) {
  nxd_arrow_range range = {0};
  if (row >= column->n_rows) return nxd_arrow_damaged(arrow, column, fault);
  if (is_view(column->type)) return text_of_view(arrow, column, row, text, fault);
  if (!between(arrow, column, row, column->data.n, &range, fault)) return false;
  *text = (nxd_arrow_bytes){column->data.at + range.first, range.end - range.first};
  return true;
}
