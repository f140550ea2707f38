/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/write/write.h"

#include <ctype.h>
#include <string.h>

/* -- words ----------------------------------------------------------------------------------------------- */

static bool is_reference(const char *at) {
  return *at == '$' && (strchr("{(_", at[1] ? at[1] : ' ') != NULL || isalnum((unsigned char)at[1]));
}

static void write_expanding(nxc_buffer *text, const char *word) {
  nxc_buffer_puts(text, "\"");
  for (; *word != '\0'; word++) {
    if (strchr("\"\\`", *word) || (*word == '$' && !is_reference(word))) nxc_buffer_puts(text, "\\");
    nxc_buffer_put(text, word, 1);
  }
  nxc_buffer_puts(text, "\"");
}

static bool has_reference(const char *word) {
  for (; *word != '\0'; word++)
    if (is_reference(word)) return true;
  return false;
}

/* Bare where a shell would read it as one word that means itself. */
void nxc_write_shell_word(nxc_buffer *text, const char *word, bool expands) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%^";
  if (*word != '\0' && word[strspn(word, plain)] == '\0') {
    nxc_buffer_puts(text, word);
    return;
  }
  if (expands && has_reference(word)) {
    write_expanding(text, word);
    return;
  }
  nxc_buffer_puts(text, "'");
  for (; *word != '\0'; word++) {
    if (*word == '\'') nxc_buffer_puts(text, "'\\''");
    else nxc_buffer_put(text, word, 1);
  }
  nxc_buffer_puts(text, "'");
}

/* -- options --------------------------------------------------------------------------------------------- */

static const nxc_value *member(const nxc_value *map, const char *name) {
  for (size_t i = 0; map != NULL && map->kind == NXC_MAP && i < map->n_items; i++)
    if (map->items[2 * i].kind == NXC_STRING && strcmp(map->items[2 * i].text, name) == 0)
      return &map->items[2 * i + 1];
  return NULL;
}

static const char *word_of(nxc_arena *arena, const nxc_value *value) {
  return value->kind == NXC_STRING ? value->text : nxc_value_show(arena, value);
}

/* A switch that is off, and null, are not there. */
static bool is_absent(const nxc_value *value) {
  return value->kind == NXC_NULL || (value->kind == NXC_BOOL && !value->boolean);
}

/* A text that begins with a hyphen would be taken for an option. */
static bool looks_like_option(const nxc_value *value) {
  return value->kind == NXC_STRING && value->text[0] == '-' && strchr(value->text, ' ') == NULL;
}

/* Of a file that was read, the path alone. */
static void write_option(nxc_buffer *text, const char *name, const nxc_value *value) {
  if (value->kind == NXC_MAP && member(value, "path") != NULL) value = member(value, "path");
  nxc_buffer_puts(text, "--");
  nxc_buffer_puts(text, name);
  if (value->kind == NXC_BOOL) return;
  const nxc_value *items = value->kind == NXC_LIST ? value->items : value;
  size_t n_items = value->kind == NXC_LIST ? value->n_items : 1;
  bool joined = value->kind != NXC_LIST && looks_like_option(value);
  for (size_t i = 0; i < n_items; i++) {
    nxc_buffer_puts(text, joined ? "=" : " ");
    nxc_write_shell_word(text, word_of(text->arena, &items[i]), true);
  }
}

/* -- the script around them ------------------------------------------------------------------------------ */

static void write_variables(nxc_buffer *text, const nxc_value *environment, const nxc_value *world) {
  for (size_t i = 0; environment != NULL && i < environment->n_items; i++) {
    const nxc_value *value = &environment->items[2 * i + 1];
    nxc_buffer_puts(text, "export ");
    nxc_buffer_puts(text, environment->items[2 * i].text);
    nxc_buffer_puts(text, "=");
    nxc_write_shell_word(text, word_of(text->arena, value), true);
    nxc_buffer_puts(text, "\n");
  }
  if (world == NULL || member(environment, "WORLD_SIZE") != NULL) return;
  nxc_buffer_puts(text, "export WORLD_SIZE=");
  nxc_buffer_puts(text, word_of(text->arena, world));
  nxc_buffer_puts(text, "\n");
}

static void write_launcher(nxc_buffer *text, const nxc_value *launch) {
  nxc_buffer_puts(text, "torchrun");
  for (size_t i = 0; i < launch->n_items; i++) {
    const char *name = launch->items[2 * i].text;
    if (strcmp(name, "world") == 0 || strcmp(name, "program") == 0) continue;
    if (launch->items[2 * i + 1].kind == NXC_MAP) continue; /* options of another launcher, maybe */
    nxc_buffer_puts(text, " ");
    write_option(text, name, &launch->items[2 * i + 1]);
  }
  const nxc_value *program = member(launch, "program");
  nxc_buffer_puts(text, " ");
  nxc_buffer_puts(text, program ? program->text : "pretrain_gpt.py");
}

void nxc_write_arguments(nxc_buffer *text, const nxc_value *root) {
  const nxc_value *launch = member(root, "launch"), *environment = member(root, "environment");
  bool script = launch != NULL || (environment != NULL && environment->n_items > 0);
  const nxc_value nothing = {.kind = NXC_MAP};
  if (script) {
    write_variables(text, environment, member(launch, "world"));
    write_launcher(text, launch ? launch : &nothing);
  }
  bool first = true;
  for (size_t i = 0; i < root->n_items; i++) {
    const nxc_value *value = &root->items[2 * i + 1];
    if (value == launch || value == environment || is_absent(value)) continue;
    nxc_buffer_puts(text, script ? " \\\n    " : first ? "" : "\n");
    write_option(text, root->items[2 * i].text, value);
    first = false;
  }
  nxc_buffer_puts(text, "\n");
}
