/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void reserve(nxc_buffer *text, size_t n_bytes) {
  if (text->n_bytes + n_bytes + 1 <= text->capacity) return;
  size_t capacity = text->capacity ? text->capacity : 32;
  while (capacity < text->n_bytes + n_bytes + 1) capacity *= 2;
  char *larger = nxc_arena_alloc(text->arena, capacity);
  if (text->n_bytes) memcpy(larger, text->bytes, text->n_bytes);
  text->bytes = larger;
  text->capacity = capacity;
}

void nxc_buffer_put(nxc_buffer *text, const char *bytes, size_t n_bytes) {
  reserve(text, n_bytes);
  if (n_bytes) memcpy(text->bytes + text->n_bytes, bytes, n_bytes);
  text->n_bytes += n_bytes;
  text->bytes[text->n_bytes] = '\0';
}

void nxc_buffer_puts(nxc_buffer *text, const char *bytes) {
  nxc_buffer_put(text, bytes, strlen(bytes));
}

void nxc_buffer_repeat(nxc_buffer *text, const char *bytes, size_t n_times) {
  size_t n_bytes = strlen(bytes);
  reserve(text, n_times * n_bytes);
  while (n_times-- > 0) nxc_buffer_put(text, bytes, n_bytes);
}

uint32_t nxc_buffer_decode(const char *bytes, size_t n_bytes, size_t *n_used) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *at = (const unsigned char *)bytes;
  size_t n = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF5 ? 4 : 0;
  *n_used = 1;
  if (n == 1) return at[0];
  uint32_t code = n ? at[0] & (0x7Fu >> n) : 0;
  bool good = n > 1 && n <= n_bytes;
  for (size_t i = 1; good && i < n; i++) {
    good = (at[i] & 0xC0) == 0x80;
    code = code << 6 | (at[i] & 0x3F);
  }
  if (!good || code < least[n] || code > 0x10FFFF) return 0xDC00u + at[0];
  *n_used = n;
  return code;
}

static bool is_printable(uint32_t code) {
  return code >= ' ' && code != 0x7F && (code < 0x80 || code > 0xA0) && code != 0xAD && code != 0x2028 &&
         code != 0x2029 && code != 0xFEFF && (code < 0xD800 || code > 0xF8FF);
}

static void put_quoted(nxc_buffer *text, const char *bytes, size_t n_bytes, bool is_bytes) {
  bool has_single = memchr(bytes, '\'', n_bytes), has_double = memchr(bytes, '"', n_bytes);
  char quote = has_single && !has_double ? '"' : '\'';
  nxc_buffer_put(text, &quote, 1);
  for (size_t i = 0, n; i < n_bytes; i += n) {
    uint32_t code = nxc_buffer_decode(bytes + i, n_bytes - i, &n);
    char escape[12] = "";
    if (is_bytes) code = (unsigned char)bytes[i], n = 1;
    if (code == (uint32_t)quote || code == '\\') snprintf(escape, sizeof escape, "\\%c", (char)code);
    else if (code == '\n') strcpy(escape, "\\n");
    else if (code == '\r') strcpy(escape, "\\r");
    else if (code == '\t') strcpy(escape, "\\t");
    else if (is_bytes ? code < ' ' || code > 0x7E : code < 0x100 && !is_printable(code))
      snprintf(escape, sizeof escape, "\\x%02" PRIx32, code);
    else if (!is_bytes && !is_printable(code))
      snprintf(escape, sizeof escape, code < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, code);
    if (*escape) nxc_buffer_puts(text, escape);
    else nxc_buffer_put(text, bytes + i, n);
  }
  nxc_buffer_put(text, &quote, 1);
}

static void write_repr(nxc_buffer *text, const nxc_value *value) {
  bool is_map = value->kind == NXC_MAP;
  switch (value->kind) {
  case NXC_STRING: put_quoted(text, value->text, value->n_bytes, false); break;
  case NXC_BYTES:
    nxc_buffer_puts(text, "b");
    put_quoted(text, value->text, value->n_bytes, true);
    break;
  case NXC_NULL: nxc_buffer_puts(text, "None"); break;
  case NXC_MISSING: nxc_buffer_puts(text, "'\?\?\?'"); break;
  case NXC_BOOL: nxc_buffer_puts(text, value->boolean ? "True" : "False"); break;
  case NXC_INT:
  case NXC_FLOAT: nxc_buffer_puts(text, nxc_value_show(text->arena, value)); break;
  case NXC_LIST:
  case NXC_MAP:
    nxc_buffer_puts(text, is_map ? "{" : "[");
    for (size_t i = 0; i < value->n_items; i++) {
      if (i) nxc_buffer_puts(text, ", ");
      write_repr(text, &value->items[is_map ? 2 * i : i]);
      if (!is_map) continue;
      nxc_buffer_puts(text, ": ");
      write_repr(text, &value->items[2 * i + 1]);
    }
    nxc_buffer_puts(text, is_map ? "}" : "]");
  }
}

void nxc_write_python(nxc_buffer *text, const nxc_value *value) {
  if (value->kind == NXC_STRING) nxc_buffer_put(text, value->text, value->n_bytes);
  else if (value->kind == NXC_MISSING) nxc_buffer_puts(text, "???");
  else write_repr(text, value);
}
