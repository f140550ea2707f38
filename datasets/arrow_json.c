/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as JSON: structs are objects, lists and maps are lists. Of types that JSON has no form for (days,
 * times, decimals) a row is null. */
#include "datasets/arrow_row.h"

#include <stdio.h>
#include <string.h>

static bool put(nxd_buffer *to, const char *text, size_t n, nxr_fault *fault) {
  return nxd_buffer_append(to, text, n) || nxr_fault_set(fault, "out of memory");
}

static bool put_text(nxd_buffer *to, const char *text, size_t n, nxr_fault *fault) {
  if (!put(to, "\"", 1, fault)) return false;
  for (size_t i = 0; i < n; i++) {
    char escaped[8];
    unsigned char byte = (unsigned char)text[i];
    bool special = byte < ' ' || byte == '"' || byte == '\\';
    size_t length = special ? (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", byte) : 1;
    if (!put(to, special ? escaped : &text[i], length, fault)) return false;
  }
  return put(to, "\"", 1, fault);
}

static bool put_list(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                     nxr_fault *fault) {
  nxd_arrow_range range;
  if (!nxd_arrow_range_of(arrow, column, row, &range, fault) || !put(to, "[", 1, fault)) return false;
  for (uint64_t i = range.first; i < range.end; i++)
    if ((i > range.first && !put(to, ",", 1, fault)) || !nxd_arrow_json(arrow, column + 1, i, to, fault))
      return false;
  return put(to, "]", 1, fault);
}

static bool put_struct(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                       nxr_fault *fault) {
  const nxd_arrow_column *end = column + 1 + column->n_below;
  if (!put(to, "{", 1, fault)) return false;
  for (const nxd_arrow_column *member = column + 1; member < end; member += 1 + member->n_below)
    if ((member > column + 1 && !put(to, ",", 1, fault)) ||
        !put_text(to, member->name, member->n_name, fault) || !put(to, ":", 1, fault) ||
        !nxd_arrow_json(arrow, member, row, to, fault))
      return false;
  return put(to, "}", 1, fault);
}

static bool put_number(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                       nxr_fault *fault) {
  char text[64];
  int64_t number;
  if (!nxd_arrow_number(arrow, column, row, column->bits / 8, &number, fault)) return false;
  int n = snprintf(text, sizeof text, "%lld", (long long)number);
  if (column->type == NXD_ARROW_FLOAT) {
    double real = 0;
    float half_as_wide;
    int32_t bits = (int32_t)number;
    memcpy(&half_as_wide, &bits, sizeof bits);
    if (column->bits == 64) memcpy(&real, &number, sizeof real);
    else real = half_as_wide;
    n = column->bits == 16 || !(real - real == 0) ? snprintf(text, sizeof text, "null")
                                                  : snprintf(text, sizeof text, "%.17g", real);
  }
  return put(to, text, (size_t)n, fault);
}

static bool put_bool(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                     nxr_fault *fault) {
  if (row / 8 >= column->data.n)
    return nxr_fault_set(fault, "%s is damaged: a column is too short", arrow->path);
  bool is = (column->data.at[row / 8] >> (row % 8) & 1) != 0;
  return put(to, is ? "true" : "false", is ? 4 : 5, fault);
}

bool nxd_arrow_json(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                    nxr_fault *fault) {
  bool valid;
  nxd_arrow_range range;
  if (!nxd_arrow_is_valid(arrow, column, row, &valid, fault)) return false;
  if (!valid || column->has_dictionary) return put(to, "null", 4, fault);
  switch (column->type) {
    case NXD_ARROW_UTF8:
    case NXD_ARROW_LARGE_UTF8:
    case NXD_ARROW_BINARY:
    case NXD_ARROW_LARGE_BINARY:
      return nxd_arrow_range_of(arrow, column, row, &range, fault) &&
             put_text(to, (const char *)column->data.at + range.first, range.end - range.first, fault);
    case NXD_ARROW_LIST:
    case NXD_ARROW_LARGE_LIST:
    case NXD_ARROW_FIXED_LIST:
    case NXD_ARROW_MAP: return put_list(arrow, column, row, to, fault);
    case NXD_ARROW_STRUCT: return put_struct(arrow, column, row, to, fault);
    case NXD_ARROW_INT:
    case NXD_ARROW_FLOAT: return put_number(arrow, column, row, to, fault);
    case NXD_ARROW_BOOL: return put_bool(arrow, column, row, to, fault);
    default: return put(to, "null", 4, fault);
  }
}
