/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/value.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *nxc_kind_name(nxc_kind kind) {
  static const char *const names[] = {
      [NXC_NULL] = "null",   [NXC_BOOL] = "boolean",  [NXC_INT] = "integer",
      [NXC_FLOAT] = "float", [NXC_STRING] = "string", [NXC_BYTES] = "bytes",
      [NXC_LIST] = "list",   [NXC_MAP] = "map",       [NXC_MISSING] = "missing value",
  };
  return names[kind];
}

static void copy_into(nxc_arena *arena, nxc_value *copy, const nxc_value *value) {
  *copy = *value;
  if (value->digits != NULL) copy->digits = nxc_arena_strdup(arena, value->digits);
  if (value->kind == NXC_STRING || value->kind == NXC_BYTES)
    copy->text = nxc_arena_strndup(arena, value->text, value->n_bytes);
  if (value->kind != NXC_LIST && value->kind != NXC_MAP) return;
  size_t n = value->kind == NXC_MAP ? 2 * value->n_items : value->n_items;
  nxc_value *items = nxc_arena_array(arena, n + 1, sizeof *items);
  for (size_t i = 0; i < n; i++) copy_into(arena, &items[i], &value->items[i]);
  copy->items = items;
}

nxc_value *nxc_value_copy(nxc_arena *arena, const nxc_value *value) {
  nxc_value *copy = nxc_arena_alloc(arena, sizeof *copy);
  copy_into(arena, copy, value);
  return copy;
}

static bool same_items(const nxc_value *a, const nxc_value *b) {
  if (a->n_items != b->n_items) return false;
  size_t n = a->kind == NXC_MAP ? 2 * a->n_items : a->n_items;
  for (size_t i = 0; i < n; i++)
    if (!nxc_value_equal(&a->items[i], &b->items[i])) return false;
  return true;
}

bool nxc_value_equal(const nxc_value *a, const nxc_value *b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
  case NXC_NULL:
  case NXC_MISSING: return true;
  case NXC_BOOL: return a->boolean == b->boolean;
  case NXC_INT:
    if ((a->digits == NULL) != (b->digits == NULL)) return false;
    return a->digits ? strcmp(a->digits, b->digits) == 0 : a->integer == b->integer;
  case NXC_FLOAT: return a->number == b->number || (isnan(a->number) && isnan(b->number));
  case NXC_STRING:
  case NXC_BYTES: return a->n_bytes == b->n_bytes && memcmp(a->text, b->text, a->n_bytes) == 0;
  case NXC_LIST:
  case NXC_MAP: return same_items(a, b);
  }
  return false;
}

/* Significant digits of the shortest decimal form, in scientific notation: "d.ddde[+-]xx". */
static void shortest(double number, char *text, size_t n_text) {
  /* 15 digits always survive a round trip of a normal number: fewer are then only trailing zeros. */
  int n_digits = fabs(number) >= DBL_MIN ? 15 : 1;
  for (; n_digits < 17; n_digits++) {
    snprintf(text, n_text, "%.*e", n_digits - 1, number);
    if (strtod(text, NULL) == number) return;
  }
  snprintf(text, n_text, "%.16e", number);
}

const char *nxc_float_repr(nxc_arena *arena, double number) {
  if (isnan(number)) return "nan";
  if (isinf(number)) return number < 0 ? "-inf" : "inf";
  char science[40], digits[24], text[64];
  shortest(fabs(number), science, sizeof science);
  int exponent = (int)strtol(strchr(science, 'e') + 1, NULL, 10);
  size_t n = 0;
  for (const char *c = science; *c != 'e'; c++)
    if (*c != '.') digits[n++] = *c;
  while (n > 1 && digits[n - 1] == '0') n--;
  digits[n] = '\0';
  const char *sign = signbit(number) ? "-" : "";
  if (exponent < -4 || exponent >= 16)
    snprintf(text, sizeof text, "%s%c%s%se%c%02d", sign, digits[0], n > 1 ? "." : "", digits + 1,
             exponent < 0 ? '-' : '+', abs(exponent));
  else if (exponent < 0) snprintf(text, sizeof text, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
  else if ((int)n <= exponent + 1)
    snprintf(text, sizeof text, "%s%s%.*s.0", sign, digits, exponent + 1 - (int)n, "0000000000000000");
  else snprintf(text, sizeof text, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
  return nxc_arena_strdup(arena, text);
}

/* Whether a string reads as itself without quotes inside a one-line rendering. */
static bool shows_bare(const char *text, size_t n_bytes) {
  if (n_bytes == 0 || text[0] == ' ' || text[n_bytes - 1] == ' ') return false;
  for (size_t i = 0; i < n_bytes; i++)
    if ((unsigned char)text[i] < ' ' || strchr(",[]{}\"'", text[i])) return false;
  return true;
}

static const char *show_text(nxc_arena *arena, const char *text, size_t n_bytes) {
  if (shows_bare(text, n_bytes)) return nxc_arena_strndup(arena, text, n_bytes);
  char *shown = nxc_arena_alloc(arena, 4 * n_bytes + 3), *to = shown;
  *to++ = '"';
  for (size_t i = 0; i < n_bytes; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\') *to++ = '\\';
    if (c == '\n') to += sprintf(to, "\\n");
    else if (c < ' ') to += sprintf(to, "\\x%02x", c);
    else *to++ = (char)c;
  }
  *to++ = '"';
  return shown;
}

static const char *show_items(nxc_arena *arena, const nxc_value *value) {
  bool is_map = value->kind == NXC_MAP;
  const char *text = is_map ? "{" : "[";
  for (size_t i = 0; i < value->n_items; i++) {
    const char *comma = i ? ", " : "";
    if (is_map)
      text = nxc_arena_printf(arena, "%s%s%s: %s", text, comma, nxc_value_show(arena, &value->items[2 * i]),
                              nxc_value_show(arena, &value->items[2 * i + 1]));
    else text = nxc_arena_printf(arena, "%s%s%s", text, comma, nxc_value_show(arena, &value->items[i]));
    if (strlen(text) > 200) return nxc_arena_printf(arena, "%.*s...", 200, text);
  }
  return nxc_arena_printf(arena, "%s%s", text, is_map ? "}" : "]");
}

const char *nxc_value_show(nxc_arena *arena, const nxc_value *value) {
  switch (value->kind) {
  case NXC_NULL: return "null";
  case NXC_MISSING: return "???";
  case NXC_BOOL: return value->boolean ? "true" : "false";
  case NXC_INT: return value->digits ? value->digits : nxc_arena_printf(arena, "%" PRId64, value->integer);
  case NXC_FLOAT: return nxc_float_repr(arena, value->number);
  case NXC_STRING: return show_text(arena, value->text, value->n_bytes);
  case NXC_BYTES: return nxc_arena_printf(arena, "%zu bytes", value->n_bytes);
  case NXC_LIST:
  case NXC_MAP: return show_items(arena, value);
  }
  return "";
}

static const char *text_json(nxc_arena *arena, const char *text, size_t n_bytes) {
  char *json = nxc_arena_alloc(arena, 6 * n_bytes + 3), *at = json;
  *at++ = '"';
  for (size_t i = 0; i < n_bytes; i++) {
    unsigned char byte = (unsigned char)text[i];
    if (byte == '"' || byte == '\\') *at++ = '\\';
    if (byte >= 0x20) *at++ = (char)byte;
    else at += sprintf(at, "\\u%04x", byte);
  }
  *at++ = '"';
  *at = '\0';
  return json;
}

static void write_branch(nxc_arena *arena, FILE *out, const nxc_value *value);

static const char *leaf_json(nxc_arena *arena, const nxc_value *value) {
  switch (value->kind) {
  case NXC_BOOL:
  case NXC_INT: return nxc_value_show(arena, value);
  case NXC_FLOAT: {
    const char *repr = nxc_float_repr(arena, value->number);
    return isfinite(value->number) ? repr : text_json(arena, repr, strlen(repr));
  }
  case NXC_STRING: return text_json(arena, value->text, value->n_bytes);
  default: return "null";
  }
}

static void write_json(nxc_arena *arena, FILE *out, const nxc_value *value) {
  if (value->kind == NXC_LIST || value->kind == NXC_MAP) write_branch(arena, out, value);
  else fputs(leaf_json(arena, value), out);
}

static void write_branch(nxc_arena *arena, FILE *out, const nxc_value *value) {
  bool is_map = value->kind == NXC_MAP;
  putc(is_map ? '{' : '[', out);
  for (size_t i = 0; i < value->n_items; i++) {
    const nxc_value *key = is_map ? &value->items[2 * i] : NULL;
    const char *name = key == NULL ? NULL : key->kind == NXC_STRING ? key->text : nxc_value_show(arena, key);
    if (i > 0) fputs(", ", out);
    if (name != NULL) fprintf(out, "%s: ", text_json(arena, name, strlen(name)));
    write_json(arena, out, &value->items[is_map ? 2 * i + 1 : i]);
  }
  putc(is_map ? '}' : ']', out);
}

/* Lists and maps through a stream, so that long ones take time in proportion. */
const char *nxc_value_json(nxc_arena *arena, const nxc_value *value) {
  if (value->kind != NXC_LIST && value->kind != NXC_MAP) return leaf_json(arena, value);
  char *text = NULL;
  size_t n_bytes = 0;
  FILE *out = open_memstream(&text, &n_bytes);
  if (out == NULL) return "null";
  write_branch(arena, out, value);
  fclose(out);
  const char *kept = nxc_arena_strndup(arena, text, n_bytes);
  free(text);
  return kept;
}
