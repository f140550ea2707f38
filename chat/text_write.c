/* SPDX-License-Identifier: Apache-2.0 */
/* str, repr and json.dumps. */
#include "chat/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- numbers --------------------------------------------------------------------------------------------- */

/* Digits and exponent of the shortest decimal that reads back as the number: 0.d1d2... x 10^exponent. */
static int shortest_digits(double number, char digits[24]) {
  char text[40];
  for (int precision = 0; precision <= 16; precision++) {
    snprintf(text, sizeof text, "%.*e", precision, number);
    if (strtod(text, NULL) == number) break;
  }
  size_t n = 0;
  const char *at = text;
  for (; *at != 'e'; at++)
    if (*at >= '0' && *at <= '9') digits[n++] = *at;
  while (n > 1 && digits[n - 1] == '0') n--;
  digits[n] = '\0';
  return atoi(at + 1) + 1;
}

static void put_plain(nxj_pool *pool, nxj_buffer *buffer, const char *digits, int exponent) {
  int n = (int)strlen(digits);
  for (int i = exponent < 0 ? exponent : 0; i < (n > exponent ? n : exponent); i++) {
    if (i == exponent) nxj_put_text(pool, buffer, i <= 0 ? "0." : ".");
    nxj_put(pool, buffer, i >= 0 && i < n ? &digits[i] : "0", 1);
  }
  if (n <= exponent) nxj_put_text(pool, buffer, ".0");
}

static void put_exponent(nxj_pool *pool, nxj_buffer *buffer, const char *digits, int exponent) {
  char tail[16];
  nxj_put(pool, buffer, digits, 1);
  if (digits[1] != '\0') nxj_put_text(pool, buffer, "."), nxj_put_text(pool, buffer, digits + 1);
  snprintf(tail, sizeof tail, "e%c%02d", exponent < 1 ? '-' : '+', abs(exponent - 1));
  nxj_put_text(pool, buffer, tail);
}

static void put_float(nxj_pool *pool, nxj_buffer *buffer, double number) {
  char digits[24];
  if (signbit(number) && !isnan(number)) nxj_put_text(pool, buffer, "-");
  if (isnan(number) || isinf(number)) {
    nxj_put_text(pool, buffer, isnan(number) ? "nan" : "inf");
    return;
  }
  int exponent = shortest_digits(fabs(number), digits);
  if (exponent > -4 && exponent <= 16) put_plain(pool, buffer, digits, exponent);
  else put_exponent(pool, buffer, digits, exponent);
}

static void put_integer(nxj_pool *pool, nxj_buffer *buffer, int64_t integer) {
  char text[32];
  snprintf(text, sizeof text, "%" PRId64, integer);
  nxj_put_text(pool, buffer, text);
}

/* -- repr ------------------------------------------------------------------------------------------------ */

static void put_escape(nxj_pool *pool, nxj_buffer *buffer, uint32_t code_point) {
  char text[16];
  const char *form = code_point < 0x100 ? "\\x%02x" : code_point < 0x10000 ? "\\u%04x" : "\\U%08x";
  snprintf(text, sizeof text, form, code_point);
  nxj_put_text(pool, buffer, text);
}

/* Controls, spaces but the usual one, and what no text may hold; what is not assigned is not known here. */
static bool is_printable(uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c < 0xa1) || c == 0xad) return false;
  if (c == 0x200b || (c >= 0x200c && c <= 0x200f) || (c >= 0x202a && c <= 0x202e)) return false;
  if ((c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe000 && c <= 0xf8ff) || c >= 0xe0000)
    return false;
  return c == ' ' || !nxj_is_space(c);
}

static void put_text_repr(nxj_pool *pool, nxj_buffer *buffer, nxj_value text) {
  bool single = memchr(text.text, '\'', text.n_bytes) != NULL,
       both = memchr(text.text, '"', text.n_bytes) != NULL;
  char quote = single && !both ? '"' : '\'';
  nxj_put(pool, buffer, &quote, 1);
  for (size_t at = 0, n; at < text.n_bytes; at += n) {
    uint32_t c = nxj_decode(text.text + at, text.n_bytes - at, &n);
    if (c == '\n') nxj_put_text(pool, buffer, "\\n");
    else if (c == '\r') nxj_put_text(pool, buffer, "\\r");
    else if (c == '\t') nxj_put_text(pool, buffer, "\\t");
    else if (!is_printable(c)) put_escape(pool, buffer, c);
    else {
      if (c == '\\' || c == (uint32_t)quote) nxj_put_text(pool, buffer, "\\");
      nxj_put(pool, buffer, text.text + at, n);
    }
  }
  nxj_put(pool, buffer, &quote, 1);
}

static void put_repr(nxj_pool *pool, nxj_buffer *buffer, nxj_value value);

static void put_list_repr(nxj_pool *pool, nxj_buffer *buffer, nxj_value value) {
  bool tuple = value.kind == NXJ_TUPLE;
  nxj_put_text(pool, buffer, tuple ? "(" : "[");
  for (size_t i = 0; i < value.list->n; i++) {
    if (i > 0) nxj_put_text(pool, buffer, ", ");
    put_repr(pool, buffer, value.list->items[i]);
  }
  if (tuple && value.list->n == 1) nxj_put_text(pool, buffer, ",");
  nxj_put_text(pool, buffer, tuple ? ")" : "]");
}

static void put_dict_repr(nxj_pool *pool, nxj_buffer *buffer, const nxj_dict *dict) {
  nxj_put_text(pool, buffer, "{");
  for (size_t i = 0; i < dict->n; i++) {
    if (i > 0) nxj_put_text(pool, buffer, ", ");
    put_repr(pool, buffer, dict->pairs[i].key);
    nxj_put_text(pool, buffer, ": ");
    put_repr(pool, buffer, dict->pairs[i].value);
  }
  nxj_put_text(pool, buffer, "}");
}

static void put_repr(nxj_pool *pool, nxj_buffer *buffer, nxj_value value) {
  nxj_work(pool, 1);
  nxj_enter(pool);
  switch (value.kind) {
  case NXJ_UNDEFINED: nxj_put_text(pool, buffer, "Undefined"); break;
  case NXJ_NONE: nxj_put_text(pool, buffer, "None"); break;
  case NXJ_BOOL: nxj_put_text(pool, buffer, value.truth ? "True" : "False"); break;
  case NXJ_INT: put_integer(pool, buffer, value.integer); break;
  case NXJ_FLOAT: put_float(pool, buffer, value.number); break;
  case NXJ_STRING: put_text_repr(pool, buffer, value); break;
  case NXJ_LIST:
  case NXJ_TUPLE: put_list_repr(pool, buffer, value); break;
  case NXJ_DICT: put_dict_repr(pool, buffer, value.dict); break;
  default: nxj_fail(pool, "%s cannot be written as text", nxj_kind_name(value.kind));
  }
  nxj_leave(pool);
}

nxj_value nxj_str(nxj_pool *pool, nxj_value value) {
  if (value.kind == NXJ_STRING) return value;
  if (value.kind == NXJ_UNDEFINED) return nxj_string("", 0);
  nxj_buffer buffer = {0};
  put_repr(pool, &buffer, value);
  return nxj_buffer_value(pool, &buffer);
}

/* -- json.dumps ------------------------------------------------------------------------------------------ */

typedef struct writer {
  nxj_pool *pool;
  nxj_buffer buffer;
  const nxj_json_form *form;
  size_t level;
} writer;

static void put_unit(writer *to, uint32_t unit) {
  char text[16];
  snprintf(text, sizeof text, "\\u%04x", unit);
  nxj_put_text(to->pool, &to->buffer, text);
}

static void put_json_text(writer *to, nxj_value text) {
  static const char *const escapes[] = {['\b'] = "\\b", ['\t'] = "\\t",  ['\n'] = "\\n",  ['\f'] = "\\f",
                                        ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\"};
  nxj_put_text(to->pool, &to->buffer, "\"");
  for (size_t at = 0, n; at < text.n_bytes; at += n) {
    uint32_t c = nxj_decode(text.text + at, text.n_bytes - at, &n);
    if (c < sizeof escapes / sizeof *escapes && escapes[c]) nxj_put_text(to->pool, &to->buffer, escapes[c]);
    else if (c >= 0x10000 && to->form->ascii) {
      put_unit(to, 0xd800 + ((c - 0x10000) >> 10));
      put_unit(to, 0xdc00 + ((c - 0x10000) & 0x3ff));
    } else if (c < 0x20 || (c >= 0x7f && to->form->ascii)) put_unit(to, c);
    else nxj_put(to->pool, &to->buffer, text.text + at, n);
  }
  nxj_put_text(to->pool, &to->buffer, "\"");
}

static void put_value(writer *to, nxj_value value);

static void put_line(writer *to) {
  nxj_value indent = to->form->indent;
  if (indent.kind == NXJ_NONE) return;
  nxj_put_text(to->pool, &to->buffer, "\n");
  for (size_t i = 0; i < to->level; i++) {
    if (indent.kind == NXJ_STRING) nxj_put(to->pool, &to->buffer, indent.text, indent.n_bytes);
    else for (int64_t j = 0; j < indent.integer; j++) nxj_put_text(to->pool, &to->buffer, " ");
  }
}

static void put_between(writer *to, size_t i) {
  if (i > 0) nxj_put(to->pool, &to->buffer, to->form->item_separator.text, to->form->item_separator.n_bytes);
  put_line(to);
}

static void put_key(writer *to, nxj_value key) {
  bool known = key.kind == NXJ_STRING || key.kind == NXJ_NONE || nxj_is_number(key);
  if (!known) nxj_fail(to->pool, "%s cannot be a key of JSON", nxj_kind_name(key.kind));
  if (key.kind != NXJ_STRING) nxj_put_text(to->pool, &to->buffer, "\"");
  put_value(to, key);
  if (key.kind != NXJ_STRING) nxj_put_text(to->pool, &to->buffer, "\"");
  nxj_put(to->pool, &to->buffer, to->form->key_separator.text, to->form->key_separator.n_bytes);
}

/* The pair that comes next in order of the keys, behind `last`. */
static const nxj_pair *next_pair(writer *to, const nxj_dict *dict, const nxj_pair *last) {
  const nxj_pair *next = NULL;
  for (size_t i = 0; i < dict->n; i++) {
    const nxj_pair *pair = &dict->pairs[i];
    if (last && nxj_compare(to->pool, pair->key, last->key) <= 0) continue;
    if (next == NULL || nxj_compare(to->pool, pair->key, next->key) < 0) next = pair;
  }
  return next;
}

static void put_dict(writer *to, const nxj_dict *dict) {
  nxj_put_text(to->pool, &to->buffer, "{");
  to->level++;
  const nxj_pair *last = NULL;
  for (size_t i = 0; i < dict->n; i++) {
    last = to->form->sorted ? next_pair(to, dict, last) : &dict->pairs[i];
    put_between(to, i);
    put_key(to, last->key);
    put_value(to, last->value);
  }
  to->level--;
  if (dict->n > 0) put_line(to);
  nxj_put_text(to->pool, &to->buffer, "}");
}

static void put_list(writer *to, const nxj_list *list) {
  nxj_put_text(to->pool, &to->buffer, "[");
  to->level++;
  for (size_t i = 0; i < list->n; i++) put_between(to, i), put_value(to, list->items[i]);
  to->level--;
  if (list->n > 0) put_line(to);
  nxj_put_text(to->pool, &to->buffer, "]");
}

static void put_json_float(writer *to, double number) {
  if (isfinite(number)) put_float(to->pool, &to->buffer, number);
  else nxj_put_text(to->pool, &to->buffer, isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity");
}

static void put_value(writer *to, nxj_value value) {
  nxj_work(to->pool, 1);
  nxj_enter(to->pool);
  switch (value.kind) {
  case NXJ_NONE: nxj_put_text(to->pool, &to->buffer, "null"); break;
  case NXJ_BOOL: nxj_put_text(to->pool, &to->buffer, value.truth ? "true" : "false"); break;
  case NXJ_INT: put_integer(to->pool, &to->buffer, value.integer); break;
  case NXJ_FLOAT: put_json_float(to, value.number); break;
  case NXJ_STRING: put_json_text(to, value); break;
  case NXJ_LIST:
  case NXJ_TUPLE: put_list(to, value.list); break;
  case NXJ_DICT: put_dict(to, value.dict); break;
  default: nxj_fail(to->pool, "%s cannot be written as JSON", nxj_kind_name(value.kind));
  }
  nxj_leave(to->pool);
}

nxj_value nxj_json(nxj_pool *pool, nxj_value value, const nxj_json_form *form) {
  writer to = {.pool = pool, .form = form};
  put_value(&to, value);
  return nxj_buffer_value(pool, &to.buffer);
}
