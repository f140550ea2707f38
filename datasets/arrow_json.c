/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as JSON: structs are objects, lists and maps are lists. Of types that JSON has no form for (days,
 * times, decimals) a row is null. */
#include "datasets/arrow_value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a batch: views of lists and dictionaries of a few bytes may say that a row has any number of them. */
static const size_t MOST_BYTES = (size_t)1 << 28;

static bool put(nxd_buffer *to, const char *text, size_t n, nxr_fault *fault) {
  if (to->n > MOST_BYTES) return nxr_fault_set(fault, "a row has more than %zu bytes as JSON", MOST_BYTES);
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

/* 5 bits of exponent and 10 of mantissa. */
static double half(uint32_t bits) {
  int exponent = (int)(bits >> 10 & 31);
  double mantissa = bits & 1023,
         size = exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024, exponent - 25);
  if (exponent == 31) size = NAN;
  return bits >> 15 & 1 ? -size : size;
}

static double real_of(const nxd_arrow_column *column, int64_t number) {
  double real;
  float single;
  int32_t bits = (int32_t)number;
  if (column->bits == 16) return half((uint32_t)number & 0xffff);
  memcpy(&single, &bits, sizeof bits);
  memcpy(&real, &number, sizeof real);
  return column->bits == 64 ? real : (double)single;
}

static bool put_number(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                       nxr_fault *fault) {
  char text[64];
  int64_t number;
  if (!nxd_arrow_number(arrow, column, row, column->bits / 8, &number, fault)) return false;
  bool real = column->type == NXD_ARROW_FLOAT, wide = !column->is_signed && column->bits == 64;
  double is = real ? real_of(column, number) : 0;
  int n = real && !isfinite(is) ? snprintf(text, sizeof text, "null")
          : real                ? snprintf(text, sizeof text, "%.17g", is)
          : wide                ? snprintf(text, sizeof text, "%llu", (unsigned long long)number)
                                : snprintf(text, sizeof text, "%lld", (long long)number);
  return put(to, text, (size_t)n, fault);
}

static bool put_bool(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                     nxr_fault *fault) {
  if (row / 8 >= column->data.n)
    return nxr_fault_set(fault, "%s is damaged: a column is too short", arrow->path);
  bool is = (column->data.at[row / 8] >> (row % 8) & 1) != 0;
  return put(to, is ? "true" : "false", is ? 4 : 5, fault);
}

/* A text that is JSON stands as it is. */
static bool put_texts(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                      nxr_fault *fault) {
  nxd_arrow_bytes text;
  if (!nxd_arrow_text_of(arrow, column, row, &text, fault)) return false;
  const char *bytes = (const char *)text.at;
  return column->is_json ? put(to, bytes, text.n, fault) : put_text(to, bytes, text.n, fault);
}

bool nxd_arrow_json(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                    nxr_fault *fault) {
  bool valid;
  if (!nxd_arrow_is_valid(arrow, column, row, &valid, fault)) return false;
  if (valid && (!nxd_arrow_look_up(arrow, &column, &row, fault) ||
                !nxd_arrow_is_valid(arrow, column, row, &valid, fault)))
    return false;
  if (!valid) return put(to, "null", 4, fault);
  if (nxd_arrow_is_text(column->type)) return put_texts(arrow, column, row, to, fault);
  if (nxd_arrow_is_list(column->type)) return put_list(arrow, column, row, to, fault);
  switch (column->type) {
  case NXD_ARROW_STRUCT: return put_struct(arrow, column, row, to, fault);
  case NXD_ARROW_INT:
  case NXD_ARROW_FLOAT: return put_number(arrow, column, row, to, fault);
  case NXD_ARROW_BOOL: return put_bool(arrow, column, row, to, fault);
  default: return put(to, "null", 4, fault);
  }
}
