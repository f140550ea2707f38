/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/canon.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_escaped(nxc_buffer *text, uint32_t code) {
  char escape[16];
  if (code < 0x10000) {
    snprintf(escape, sizeof escape, "\\u%04" PRIx32, code);
  } else {
    code -= 0x10000;
    snprintf(escape, sizeof escape, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + (code >> 10),
             0xDC00 + (code & 0x3FF));
  }
  nxc_buffer_puts(text, escape);
}

/* DEL stays in the ASCII form, as in Python's json; without `ascii` what YAML forbids is escaped too, and
 * what it takes for a line break. */
static bool needs_escape(uint32_t code, bool ascii) {
  if (code < ' ' || (code >= 0xD800 && code < 0xE000)) return true;
  return ascii ? code > 0x7F
               : (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 || code == 0xFEFF ||
                     code == 0xFFFE || code == 0xFFFF;
}

void nxc_write_json_string(nxc_buffer *text, const char *bytes, size_t n_bytes, bool ascii) {
  static const char *const short_escapes[128] = {
      ['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\r'] = "\\r",
      ['\t'] = "\\t", ['\b'] = "\\b",  ['\f'] = "\\f"};
  nxc_buffer_puts(text, "\"");
  for (size_t i = 0, n; i < n_bytes; i += n) {
    uint32_t code = nxc_buffer_decode(bytes + i, n_bytes - i, &n);
    if (code < 128 && short_escapes[code]) nxc_buffer_puts(text, short_escapes[code]);
    else if (needs_escape(code, ascii)) put_escaped(text, code);
    else nxc_buffer_put(text, bytes + i, n);
  }
  nxc_buffer_puts(text, "\"");
}

void nxc_write_base64(nxc_buffer *text, const char *bytes, size_t n_bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < n_bytes; i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; k++) bits = bits << 8 | (i + k < n_bytes ? (unsigned char)bytes[i + k] : 0);
    char four[4];
    for (int k = 0; k < 4; k++) four[k] = i + (size_t)k <= n_bytes ? digits[bits >> (18 - 6 * k) & 63] : '=';
    nxc_buffer_put(text, four, 4);
  }
}

void nxc_write_canon(nxc_buffer *text, const nxc_value *value) {
  bool is_map = value->kind == NXC_MAP;
  switch (value->kind) {
  case NXC_INT:
  case NXC_FLOAT: nxc_buffer_puts(text, value->kind == NXC_INT ? "i" : "f"); /* fall through */
  case NXC_NULL:
  case NXC_BOOL: nxc_buffer_puts(text, nxc_value_show(text->arena, value)); break;
  case NXC_MISSING: nxc_buffer_puts(text, "s\"???\""); break;
  case NXC_STRING:
    nxc_buffer_puts(text, "s");
    nxc_write_json_string(text, value->text, value->n_bytes, true);
    break;
  case NXC_BYTES:
    nxc_buffer_puts(text, "b");
    nxc_write_base64(text, value->text, value->n_bytes);
    break;
  case NXC_LIST:
  case NXC_MAP:
    nxc_buffer_puts(text, is_map ? "{" : "[");
    for (size_t i = 0; i < value->n_items; i++) {
      if (i) nxc_buffer_puts(text, ",");
      nxc_write_canon(text, &value->items[is_map ? 2 * i : i]);
      if (!is_map) continue;
      nxc_buffer_puts(text, ":");
      nxc_write_canon(text, &value->items[2 * i + 1]);
    }
    nxc_buffer_puts(text, is_map ? "}" : "]");
  }
}

static void write_json_key(nxc_buffer *text, const nxc_value *key) {
  if (key->kind == NXC_STRING || key->kind == NXC_BYTES) {
    nxc_write_json_string(text, key->text, key->n_bytes, false);
    return;
  }
  const char *shown = nxc_value_show(text->arena, key);
  nxc_write_json_string(text, shown, strlen(shown), false);
}

static void write_json_at(nxc_buffer *text, const nxc_value *value, size_t depth) {
  bool is_map = value->kind == NXC_MAP;
  switch (value->kind) {
  case NXC_FLOAT:
    if (!isfinite(value->number)) {
      nxc_buffer_puts(text, "{\"$float\": \"");
      nxc_buffer_puts(text, nxc_float_repr(text->arena, value->number));
      nxc_buffer_puts(text, "\"}");
      break;
    } /* fall through */
  case NXC_INT:
  case NXC_NULL:
  case NXC_BOOL: nxc_buffer_puts(text, nxc_value_show(text->arena, value)); break;
  case NXC_MISSING: nxc_buffer_puts(text, "\"???\""); break;
  case NXC_STRING: nxc_write_json_string(text, value->text, value->n_bytes, false); break;
  case NXC_BYTES:
    nxc_buffer_puts(text, "{\"$bytes\": \"");
    nxc_write_base64(text, value->text, value->n_bytes);
    nxc_buffer_puts(text, "\"}");
    break;
  case NXC_LIST:
  case NXC_MAP:
    nxc_buffer_puts(text, is_map ? "{" : "[");
    for (size_t i = 0; i < value->n_items; i++) {
      nxc_buffer_puts(text, i ? ",\n" : "\n");
      nxc_buffer_repeat(text, "  ", depth + 1);
      if (is_map) {
        write_json_key(text, &value->items[2 * i]);
        nxc_buffer_puts(text, ": ");
      }
      write_json_at(text, &value->items[is_map ? 2 * i + 1 : i], depth + 1);
    }
    if (value->n_items) {
      nxc_buffer_puts(text, "\n");
      nxc_buffer_repeat(text, "  ", depth);
    }
    nxc_buffer_puts(text, is_map ? "}" : "]");
  }
}

void nxc_write_json(nxc_buffer *text, const nxc_value *value) {
  write_json_at(text, value, 0);
}
