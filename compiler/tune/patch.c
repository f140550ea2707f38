/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tune/patch.h"

#include "compiler/document/buffer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Bytes [start, end) of the text give way. */
typedef struct piece {
  size_t start, end;
  const char *text;
} piece;

typedef struct patcher {
  nxc_arena *arena;
  const nxc_binding *binding;
  const nxc_source *source;
  piece *pieces;
  size_t n_pieces;
} patcher;

const nxc_value *nxc_option_change_value(const nxc_option_change *edit) {
  static const nxc_value nothing = {.kind = NXC_NULL};
  return edit->value ? edit->value : edit->usual ? edit->usual : &nothing;
}

const char *nxc_option_change_show(nxc_arena *arena, const nxc_option_change *edit) {
  const char *name = edit->bound->row->name;
  if (edit->value == NULL) return nxc_arena_printf(arena, "%s taken out", name);
  return nxc_arena_printf(arena, "%s=%s", name, nxc_value_show(arena, edit->value));
}

static void replace(patcher *p, size_t start, size_t end, const char *text) {
  p->pieces = nxc_arena_grow(p->arena, p->pieces, p->n_pieces, sizeof *p->pieces);
  p->pieces[p->n_pieces++] = (piece){start, end, text};
}

/* ---- where things stand ---- */

static const char *text_at(const patcher *p, size_t offset) {
  return p->source->text + offset;
}

static size_t line_start(const patcher *p, size_t offset) {
  while (offset > 0 && p->source->text[offset - 1] != '\n') offset--;
  return offset;
}

static size_t skip_blanks(const patcher *p, size_t offset) {
  return offset + strspn(text_at(p, offset), " \t");
}

static bool is_here(const patcher *p, nxc_span at) {
  return at.source == p->source;
}

/* The end of what the node's text takes, with the brackets around a list or map in one line. */
static size_t end_of(const patcher *p, const nxc_node *node) {
  if (node->kind == NXC_NODE_SCALAR) return nxc_span_offset(node->at, true);
  size_t start = nxc_span_offset(node->at, false), end = start;
  bool brackets = *text_at(p, start) == '[' || *text_at(p, start) == '{';
  if (brackets) end++;
  for (size_t i = 0; i < node->n_children; i++) {
    size_t of_child = is_here(p, node->children[i]->at) ? end_of(p, node->children[i]) : 0;
    if (of_child > end) end = of_child;
  }
  if (!brackets) return end;
  end += strspn(text_at(p, end), " \t\r\n,");
  return end + (*text_at(p, end) == ']' || *text_at(p, end) == '}');
}

/* A key with a colon behind it, in a map; else words of a command. */
static bool is_pair(const patcher *p, const nxc_node *node) {
  size_t behind = nxc_span_offset(node->key_at, true);
  behind += *text_at(p, behind) == '"' || *text_at(p, behind) == '\'';
  return *text_at(p, skip_blanks(p, behind)) == ':';
}

static bool is_in_text(const patcher *p, const nxc_node *node) {
  return node != NULL && is_here(p, node->key_at) && is_here(p, node->at) && node->copy_of == NULL;
}

/* First on its line. */
static bool begins_line(const patcher *p, size_t offset) {
  return skip_blanks(p, line_start(p, offset)) == offset;
}

/* ---- values ---- */

static const char *scalar_text(const patcher *p, const nxc_value *value) {
  if (value->kind == NXC_STRING) return value->text;
  return value->kind == NXC_NULL ? "null" : nxc_value_show(p->arena, value);
}

/* As a map has it: flow style, which every loader here reads. */
static const char *pair_text(const patcher *p, const nxc_value *value) {
  if (value->kind != NXC_LIST) return scalar_text(p, value);
  return nxc_value_show(p->arena, value);
}

static const char *words_text(const patcher *p, const nxc_value *value) {
  if (value->kind != NXC_LIST) return scalar_text(p, value);
  const char *words = "";
  for (size_t i = 0; i < value->n_items; i++)
    words = nxc_arena_printf(p->arena, "%s%s%s", words, i ? " " : "", scalar_text(p, &value->items[i]));
  return words;
}

static bool is_switch(const nxc_bound *bound) {
  return bound->row->domain.type == NXC_TYPE_BOOL;
}

/* ---- taking out ---- */

/* The whole line where nothing else stands on it; of a command only where it goes on behind it. */
static void take_out(patcher *p, size_t start, size_t end, bool pair) {
  size_t line = line_start(p, start), rest = skip_blanks(p, end);
  if (pair && *text_at(p, rest) == ',') rest = skip_blanks(p, rest + 1);
  bool comment = pair && *text_at(p, rest) == '#';
  bool alone = begins_line(p, start);
  bool goes_on = !pair && *text_at(p, rest) == '\\' && text_at(p, rest)[1] == '\n';
  if (comment) rest += strcspn(text_at(p, rest), "\n");
  bool ends = *text_at(p, rest) == '\n';
  if (ends && !alone && !comment) /* nothing trails */
    while (text_at(p, start)[-1] == ' ' || text_at(p, start)[-1] == '\t') start--;
  if (alone && goes_on) replace(p, line, rest + 2, "");
  else if (alone && pair && ends) replace(p, line, rest + 1, "");
  else replace(p, start, rest, "");
}

/* Of the value that a command's option has from a variable, `$NAME` or `"${NAME}"`; 0: it is none. */
static size_t variable_end(const patcher *p, size_t key_end) {
  size_t start = key_end + strspn(text_at(p, key_end), " \t="), at = start;
  bool quoted = *text_at(p, at) == '"';
  at += quoted;
  if (*text_at(p, at) != '$') return 0;
  bool braces = text_at(p, at)[1] == '{';
  at += braces ? strcspn(text_at(p, at), "}\n") : 1;
  if (braces && *text_at(p, at++) != '}') return 0;
  while (!braces && (isalnum((unsigned char)*text_at(p, at)) || *text_at(p, at) == '_')) at++;
  if (quoted && *text_at(p, at++) != '"') return 0;
  return *text_at(p, at) == '\0' || strchr(" \t\n\"')\\", *text_at(p, at)) != NULL ? at : 0;
}

static bool remove_option(patcher *p, const nxc_bound *bound) {
  const nxc_node *node = bound->node;
  if (!is_in_text(p, node)) return false;
  size_t start = nxc_span_offset(node->key_at, false), key_end = nxc_span_offset(node->key_at, true);
  size_t value_start = nxc_span_offset(node->at, false), end = end_of(p, node);
  bool pair = is_pair(p, node);
  start -= start > 0 && pair && (text_at(p, start)[-1] == '"' || text_at(p, start)[-1] == '\'');
  bool apart = value_start < key_end || strspn(text_at(p, key_end), " \t=\\\n\":'") < value_start - key_end;
  if (apart && !pair && !is_switch(bound)) end = variable_end(p, key_end);
  if (end == 0) return false;
  take_out(p, start, end > key_end ? end : key_end, pair);
  return true;
}

/* ---- changing ---- */

static bool change_value(patcher *p, const nxc_option_change *edit) {
  const nxc_node *node = edit->bound->node;
  if (!is_in_text(p, node)) return false;
  bool pair = is_pair(p, node);
  const char *text = pair ? pair_text(p, edit->value) : words_text(p, edit->value);
  size_t start = nxc_span_offset(node->at, false), end = end_of(p, node);
  bool block = node->kind == NXC_NODE_LIST && pair && *text_at(p, start) == '-';
  if (block) return false;
  replace(p, start, end, start == end ? nxc_arena_printf(p->arena, " %s", text) : text);
  return true;
}

/* ---- adding ---- */

/* The option of the same part of the file that stands nearest in the catalogue, and has words of its own in
 * the text. */
static const nxc_node *neighbour(const patcher *p, const nxc_bound *bound, size_t n_section) {
  const nxc_node *best = NULL;
  size_t best_distance = SIZE_MAX;
  for (size_t i = 0; i < p->binding->dialect->n_options; i++) {
    const nxc_bound *other = &p->binding->options[i];
    size_t here = other->row->place, there = bound->row->place;
    size_t distance = here > there ? here - there : there - here;
    bool same = strncmp(other->row->name, bound->row->name, n_section) == 0 &&
                strchr(other->row->name + n_section, '.') == NULL;
    bool scalar = other->given && other->node != NULL && other->node->kind == NXC_NODE_SCALAR &&
                  other->node->style != NXC_STYLE_BLOCK && !other->node->merged;
    if (!same || !scalar || distance >= best_distance || !is_in_text(p, other->node)) continue;
    size_t key = nxc_span_offset(other->node->key_at, false), value = nxc_span_offset(other->node->at, false);
    if (value < key || value - key > 200) continue; /* it came through a variable */
    best = other->node;
    best_distance = distance;
  }
  return best;
}

static size_t section_length(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot == NULL ? 0 : (size_t)(dot - name) + 1;
}

static void add_pair(patcher *p, const nxc_node *beside, const char *key, const char *value) {
  size_t start = nxc_span_offset(beside->key_at, false);
  bool quoted = *text_at(p, start) == '"' || (start > 0 && text_at(p, start)[-1] == '"');
  if (quoted && *text_at(p, start) != '"') start--;
  const char *mark = quoted ? "\"" : "";
  size_t line = line_start(p, start);
  bool flow = beside->parent != NULL && is_here(p, beside->parent->at) &&
              *text_at(p, nxc_span_offset(beside->parent->at, false)) == '{';
  bool own_line = begins_line(p, start);
  const char *pair = nxc_arena_printf(p->arena, "%s%s%s: %s", mark, key, mark, value);
  if (own_line) { /* in front, so that no comma is missed */
    const char *indent = nxc_arena_strndup(p->arena, text_at(p, line), start - line);
    replace(p, line, line, nxc_arena_printf(p->arena, "%s%s%s\n", indent, pair, flow ? "," : ""));
  } else if (flow) {
    replace(p, start, start, nxc_arena_printf(p->arena, "%s, ", pair));
  }
}

/* The name as the file writes its keys. */
static const char *key_like(const patcher *p, const nxc_node *beside, const char *name) {
  const char *last = name + section_length(name), *old = beside->key;
  bool dashes = strchr(old, '-') != NULL && strchr(old, '_') == NULL;
  bool underlines = strchr(old, '_') != NULL && strchr(old, '-') == NULL;
  char *key = nxc_arena_strdup(p->arena, last);
  for (char *c = key; *c != '\0'; c++) {
    if (dashes && *c == '_') *c = '-';
    if (underlines && *c == '-' && c != key) *c = '_';
  }
  return key;
}

static const char variables[] = "environment.";

/* Of a script's environment: in front of its first command. */
static bool add_variable(patcher *p, const char *name, const char *value) {
  const nxc_bound *environment = nxc_binding_find(p->binding, "environment");
  size_t at = 0;
  if (environment == NULL || !environment->given) return false;
  while (*text_at(p, at) == '#' || *text_at(p, at) == '\n') {
    at += strcspn(text_at(p, at), "\n");
    at += *text_at(p, at) == '\n';
  }
  replace(p, at, at, nxc_arena_printf(p->arena, "export %s=%s\n", name, value));
  return true;
}

static bool add_option(patcher *p, const nxc_option_change *edit) {
  const char *name = edit->bound->row->name;
  if (strncmp(name, variables, strlen(variables)) == 0)
    return add_variable(p, name + strlen(variables), words_text(p, edit->value));
  const nxc_node *beside = neighbour(p, edit->bound, section_length(name));
  if (beside == NULL) return false;
  if (is_pair(p, beside)) {
    bool dashed = strncmp(text_at(p, nxc_span_offset(beside->key_at, false)), "--", 2) == 0;
    const char *key = key_like(p, beside, name);
    add_pair(p, beside, dashed ? nxc_arena_printf(p->arena, "--%s", key) : key, pair_text(p, edit->value));
    return true;
  }
  size_t key_end = nxc_span_offset(beside->key_at, true), end = end_of(p, beside);
  bool off = is_switch(edit->bound) && !nxc_value_is_true(edit->value);
  if (off) return true;
  const char *value = is_switch(edit->bound) ? "" : words_text(p, edit->value);
  replace(p, end > key_end ? end : key_end, end > key_end ? end : key_end,
          nxc_arena_printf(p->arena, " --%s%s%s", name, *value ? " " : "", value));
  return true;
}

/* ---- the whole ---- */

/* A pair with a comment on its line, which would go with it. */
static bool has_comment(const patcher *p, const nxc_node *node) {
  if (!is_in_text(p, node) || !is_pair(p, node)) return false;
  size_t rest = skip_blanks(p, end_of(p, node));
  if (*text_at(p, rest) == ',') rest = skip_blanks(p, rest + 1);
  return *text_at(p, rest) == '#';
}

/* A switch of a command has no value: it stands there or not. */
static bool apply(patcher *p, const nxc_option_change *edit) {
  const nxc_node *node = edit->bound->node;
  bool there = edit->bound->given && node != NULL;
  if (there && edit->value == NULL && edit->usual != NULL && has_comment(p, node)) {
    const nxc_option_change said = {edit->bound, edit->usual, edit->usual};
    return change_value(p, &said);
  }
  if (edit->value == NULL) return !there || remove_option(p, edit->bound);
  if (!there) return add_option(p, edit);
  bool bare = is_switch(edit->bound) && is_in_text(p, node) && !is_pair(p, node);
  if (bare && nxc_value_is_true(edit->value)) return true;
  return bare ? remove_option(p, edit->bound) : change_value(p, edit);
}

static int compare_pieces(const void *a, const void *b) {
  const piece *left = a, *right = b;
  if (left->start != right->start) return left->start < right->start ? -1 : 1;
  return (left->end > right->end) - (left->end < right->end);
}

/* Whether all of a line is gone but blanks, which end the text. */
static bool is_empty_line(const patcher *p, const nxc_buffer *text, size_t at) {
  size_t n = text->n_bytes;
  while (n > 0 && text->bytes[n - 1] == ' ') n--;
  return *text_at(p, at) == '\n' && n > 0 && n < text->n_bytes && text->bytes[n - 1] == '\n';
}

const char *nxc_patch(nxc_arena *arena, const nxc_binding *binding, const nxc_option_change *edits,
                      size_t n_edits) {
  patcher p = {.arena = arena, .binding = binding, .source = binding->origin.first};
  if (p.source == NULL) return NULL;
  for (size_t i = 0; i < n_edits; i++)
    if (!apply(&p, &edits[i])) return NULL;
  if (p.n_pieces > 1) qsort(p.pieces, p.n_pieces, sizeof *p.pieces, compare_pieces);
  nxc_buffer text = {.arena = arena};
  size_t at = 0;
  nxc_buffer_puts(&text, "");
  for (size_t i = 0; i < p.n_pieces; i++) {
    if (p.pieces[i].start < at && p.pieces[i].end <= at) continue;  /* within what is gone */
    size_t start = p.pieces[i].start > at ? p.pieces[i].start : at; /* two that go share the blanks between */
    nxc_buffer_put(&text, p.source->text + at, start - at);
    bool apart = text.n_bytes > 0 && text.bytes[text.n_bytes - 1] == ' ';
    nxc_buffer_puts(&text, p.pieces[i].text + (apart && *p.pieces[i].text == ' '));
    at = p.pieces[i].end;
    bool last = i + 1 == p.n_pieces || p.pieces[i + 1].start > at;
    if (!last || *p.pieces[i].text != '\0' || !is_empty_line(&p, &text, at)) continue;
    while (text.bytes[text.n_bytes - 1] == ' ') text.n_bytes--;
    at++;
  }
  nxc_buffer_put(&text, p.source->text + at, p.source->n_bytes - at);
  return text.bytes;
}
