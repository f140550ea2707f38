/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/write/write.h"
#include "compiler/document/canon.h"
#include "compiler/document/scalar.h"

#include <math.h>
#include <string.h>

/* What would be read as an interpolation, and is escaped. */
typedef enum guard { GUARD_NOTHING, GUARD_BRACES, GUARD_ALL } guard;

/* Characters that stand for themselves everywhere in a text: most of ASCII's, and letters beyond it. */
static bool is_harmless(const nxc_value *value) {
  static const char ascii[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  for (size_t i = 0, n; i < value->n_bytes; i += n) {
    uint32_t code = nxc_buffer_decode(value->text + i, value->n_bytes - i, &n);
    bool letter = code >= 0xC0 && code < 0x2000;
    if (!letter && (code == 0 || code > 0x7F || strchr(ascii, (int)code) == NULL)) return false;
  }
  return true;
}

/* Whether a string can stand without quotes and still be this string. */
static bool is_plain_yaml(nxc_arena *arena, const nxc_value *value) {
  const char *problem;
  nxc_value read;
  if (value->n_bytes == 0 || !is_harmless(value)) return false;
  if (value->text[0] == '-' || value->text[0] == '.') return false;
  bool date = value->n_bytes == 10 && value->text[4] == '-' && value->text[7] == '-' &&
              strspn(value->text, "0123456789-") == 10;
  if (date) return false; /* to PyYAML */
  return nxc_scalar_read(arena, value->text, value->n_bytes, &read, &problem) && read.kind == NXC_STRING &&
         nxc_scalar_oddity(value->text, value->n_bytes, &read) == NXC_ODD_NONE;
}

/* Escapes what would be read as an interpolation: backslashes before it double, and one is added. */
static nxc_value guard_interpolation(nxc_arena *arena, const nxc_value *value, guard guarding) {
  nxc_buffer guarded = {.arena = arena};
  size_t n_backslashes = 0;
  for (size_t i = 0; i < value->n_bytes; i++) {
    const char *c = value->text + i;
    bool dollar = c[0] == '$' && i + 1 < value->n_bytes && guarding != GUARD_NOTHING;
    bool opens = dollar && (c[1] == '{' || (c[1] == '<' && guarding == GUARD_ALL));
    if (opens) nxc_buffer_repeat(&guarded, "\\", n_backslashes + 1);
    n_backslashes = c[0] == '\\' ? n_backslashes + 1 : 0;
    nxc_buffer_put(&guarded, c, 1);
  }
  return nxc_string_value(guarded.bytes ? guarded.bytes : "", guarded.n_bytes);
}

/* As YAML readers agree on it. */
static void write_float(nxc_buffer *text, double number) {
  const char *shown = nxc_float_repr(text->arena, number), *exponent = strchr(shown, 'e');
  if (isnan(number)) shown = ".nan";
  if (isinf(number)) shown = number < 0 ? "-.inf" : ".inf";
  if (exponent && !strchr(shown, '.')) /* 1e-05 is text to other YAML readers, 1.0e-05 is not */
    shown = nxc_arena_printf(text->arena, "%.*s.0%s", (int)(exponent - shown), shown, exponent);
  nxc_buffer_puts(text, shown);
}

static void write_string(nxc_buffer *text, const nxc_value *value) {
  if (is_plain_yaml(text->arena, value)) nxc_buffer_put(text, value->text, value->n_bytes);
  else nxc_write_json_string(text, value->text, value->n_bytes, false);
}

static void write_yaml_scalar(nxc_buffer *text, const nxc_value *value, bool is_key, guard guarding) {
  nxc_value guarded;
  switch (value->kind) {
  case NXC_FLOAT: write_float(text, value->number); break;
  case NXC_STRING:
    guarded = is_key ? *value : guard_interpolation(text->arena, value, guarding);
    write_string(text, &guarded);
    break;
  case NXC_MISSING:
    if (value->text == NULL) nxc_buffer_puts(text, "???");
    else write_string(text, value);
    break;
  case NXC_BYTES:
    nxc_buffer_puts(text, "!!binary \"");
    nxc_write_base64(text, value->text, value->n_bytes);
    nxc_buffer_puts(text, "\"");
    break;
  default: nxc_buffer_puts(text, nxc_value_show(text->arena, value)); break;
  }
}

static bool is_branch(const nxc_value *value) {
  return (value->kind == NXC_MAP || value->kind == NXC_LIST) && value->n_items > 0;
}

static void write_yaml_at(nxc_buffer *text, const nxc_value *value, size_t depth, bool in_list,
                          guard guarding) {
  bool is_map = value->kind == NXC_MAP;
  if (!is_branch(value)) {
    if (!is_map && value->kind != NXC_LIST) write_yaml_scalar(text, value, false, guarding);
    else nxc_buffer_puts(text, is_map ? "{}" : "[]");
    nxc_buffer_puts(text, "\n");
    return;
  }
  for (size_t i = 0; i < value->n_items; i++) {
    if (i || !in_list) nxc_buffer_repeat(text, "  ", depth);
    if (is_map) write_yaml_scalar(text, &value->items[2 * i], true, guarding);
    const nxc_value *item = &value->items[is_map ? 2 * i + 1 : i];
    nxc_buffer_puts(text, is_map ? is_branch(item) ? ":\n" : ": " : "- ");
    write_yaml_at(text, item, depth + 1, !is_map, guarding);
  }
}

void nxc_write_yaml(nxc_buffer *text, const nxc_value *value) {
  write_yaml_at(text, value, 0, false, GUARD_ALL);
}

void nxc_write_yaml_omegaconf(nxc_buffer *text, const nxc_value *value) {
  write_yaml_at(text, value, 0, false, GUARD_BRACES);
}

void nxc_write_yaml_plain(nxc_buffer *text, const nxc_value *value) {
  write_yaml_at(text, value, 0, false, GUARD_NOTHING);
}

/* -- in braces ------------------------------------------------------------------------------------------- */

static void write_flow_scalar(nxc_buffer *text, const nxc_value *value) {
  if (value->kind == NXC_STRING) nxc_write_json_string(text, value->text, value->n_bytes, false);
  else write_yaml_scalar(text, value, false, GUARD_NOTHING);
}

/* Maps take a line for each key, lists stand on one. */
static void write_flow_at(nxc_buffer *text, const nxc_value *value, size_t depth) {
  bool is_map = value->kind == NXC_MAP;
  if (!is_map && value->kind != NXC_LIST) {
    write_flow_scalar(text, value);
    return;
  }
  nxc_buffer_puts(text, is_map ? "{" : "[");
  for (size_t i = 0; i < value->n_items; i++) {
    nxc_buffer_puts(text, is_map ? i ? ",\n" : "\n" : i ? ", " : "");
    if (is_map) {
      nxc_buffer_repeat(text, "  ", depth + 1);
      write_flow_scalar(text, &value->items[2 * i]);
      nxc_buffer_puts(text, ": ");
    }
    write_flow_at(text, &value->items[is_map ? 2 * i + 1 : i], depth + is_map);
  }
  if (is_map && value->n_items > 0) {
    nxc_buffer_puts(text, "\n");
    nxc_buffer_repeat(text, "  ", depth);
  }
  nxc_buffer_puts(text, is_map ? "}" : "]");
}

void nxc_write_flow(nxc_buffer *text, const nxc_value *root) {
  write_flow_at(text, root, 0);
  nxc_buffer_puts(text, "\n");
}
