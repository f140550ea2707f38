/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/canon.h"
#include "compiler/config/scalar.h"

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

/* DEL stays in the ASCII form, as in Python's json; without `ascii` what YAML forbids is escaped too. */
static bool needs_escape(uint32_t code, bool ascii) {
  if (code < ' ' || (code >= 0xD800 && code < 0xE000)) return true;
  return ascii ? code > 0x7F
               : (code >= 0x7F && code < 0xA0) || code == 0xFEFF || code == 0xFFFE || code == 0xFFFF;
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

static void put_base64(nxc_buffer *text, const char *bytes, size_t n_bytes) {
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
    put_base64(text, value->text, value->n_bytes);
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
    put_base64(text, value->text, value->n_bytes);
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

/* Whether a string can stand without quotes and still be this string. */
static bool is_plain_yaml(nxc_arena *arena, const nxc_value *value) {
  const char *problem;
  nxc_value read;
  if (value->n_bytes == 0 || strlen(value->text) != value->n_bytes) return false;
  if (strspn(value->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") !=
      value->n_bytes)
    return false;
  if (value->text[0] == '-' || value->text[0] == '.') return false;
  return nxc_scalar_read(arena, value->text, value->n_bytes, &read, &problem) && read.kind == NXC_STRING &&
         nxc_scalar_oddity(value->text, value->n_bytes, &read) == NXC_ODD_NONE;
}

/* Escapes what would be read as an interpolation: backslashes before it double, and one is added. */
static nxc_value guard_interpolation(nxc_arena *arena, const nxc_value *value, bool angle) {
  nxc_buffer guarded = {.arena = arena};
  size_t n_backslashes = 0;
  for (size_t i = 0; i < value->n_bytes; i++) {
    const char *c = value->text + i;
    bool opens = c[0] == '$' && i + 1 < value->n_bytes && (c[1] == '{' || (c[1] == '<' && angle));
    if (opens) nxc_buffer_repeat(&guarded, "\\", n_backslashes + 1);
    n_backslashes = c[0] == '\\' ? n_backslashes + 1 : 0;
    nxc_buffer_put(&guarded, c, 1);
  }
  return nxc_string_value(guarded.bytes ? guarded.bytes : "", guarded.n_bytes);
}

static void write_yaml_float(nxc_buffer *text, double number) {
  const char *shown = nxc_float_repr(text->arena, number), *exponent = strchr(shown, 'e');
  if (isnan(number)) shown = ".nan";
  if (isinf(number)) shown = number < 0 ? "-.inf" : ".inf";
  if (exponent && !strchr(shown, '.')) /* 1e-05 is text to other YAML readers, 1.0e-05 is not */
    shown = nxc_arena_printf(text->arena, "%.*s.0%s", (int)(exponent - shown), shown, exponent);
  nxc_buffer_puts(text, shown);
}

static void write_yaml_scalar(nxc_buffer *text, const nxc_value *value, bool is_key, bool angle) {
  nxc_value guarded;
  switch (value->kind) {
  case NXC_FLOAT: write_yaml_float(text, value->number); break;
  case NXC_STRING:
    guarded = is_key ? *value : guard_interpolation(text->arena, value, angle);
    if (is_plain_yaml(text->arena, &guarded)) nxc_buffer_put(text, guarded.text, guarded.n_bytes);
    else nxc_write_json_string(text, guarded.text, guarded.n_bytes, false);
    break;
  case NXC_BYTES:
    nxc_buffer_puts(text, "!!binary \"");
    put_base64(text, value->text, value->n_bytes);
    nxc_buffer_puts(text, "\"");
    break;
  default: nxc_buffer_puts(text, nxc_value_show(text->arena, value)); break;
  }
}

static void write_yaml_at(nxc_buffer *text, const nxc_value *value, size_t depth, bool in_list, bool angle) {
  bool is_map = value->kind == NXC_MAP;
  if ((!is_map && value->kind != NXC_LIST) || value->n_items == 0) {
    if (!is_map && value->kind != NXC_LIST) write_yaml_scalar(text, value, false, angle);
    else nxc_buffer_puts(text, is_map ? "{}" : "[]");
    nxc_buffer_puts(text, "\n");
    return;
  }
  for (size_t i = 0; i < value->n_items; i++) {
    if (i || !in_list) nxc_buffer_repeat(text, "  ", depth);
    if (is_map) write_yaml_scalar(text, &value->items[2 * i], true, angle);
    const nxc_value *item = &value->items[is_map ? 2 * i + 1 : i];
    bool nested = (item->kind == NXC_MAP || item->kind == NXC_LIST) && item->n_items;
    nxc_buffer_puts(text, is_map ? nested ? ":\n" : ": " : "- ");
    write_yaml_at(text, item, depth + 1, !is_map, angle);
  }
}

void nxc_write_yaml(nxc_buffer *text, const nxc_value *value) {
  write_yaml_at(text, value, 0, false, true);
}

void nxc_write_yaml_omegaconf(nxc_buffer *text, const nxc_value *value) {
  write_yaml_at(text, value, 0, false, false);
}
