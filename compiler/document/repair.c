/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/repair.h"

#include "compiler/diagnostics/secret.h"

#include <string.h>

static bool is_repeated(const nxc_node *node) {
  for (; node != NULL; node = node->parent)
    if (node->copy_of != NULL) return true;
  return false;
}

nxc_repair nxc_repair_key(nxc_arena *arena, const nxc_node *node, const char *name, bool safe) {
  if (node->key == NULL) return (nxc_repair){0};
  return nxc_repair_word(arena, node->key_at, node->key, name, safe && !is_repeated(node));
}

nxc_repair nxc_repair_misspelt_key(nxc_arena *arena, const nxc_node *node, nxc_near near) {
  return near.name ? nxc_repair_key(arena, node, near.name, near.certain) : (nxc_repair){0};
}

/* Whether the span is the scalar as it is written, and all of it. */
static bool is_whole(const nxc_node *node) {
  if (node->kind != NXC_NODE_SCALAR || node->raw == NULL || node->at.source == NULL) return false;
  if (node->raw_bytes > 0 && nxc_span_reads(node->at, node->raw)) return true; /* of a command line too */
  if (node->style == NXC_STYLE_PLAIN) return false;
  char quote = node->style == NXC_STYLE_SINGLE ? '\'' : '"';
  const char *text = node->at.source->text;
  size_t begin = nxc_span_offset(node->at, false), end = nxc_span_offset(node->at, true);
  return node->style != NXC_STYLE_BLOCK && end >= begin + 2 && text[begin] == quote && text[end - 1] == quote;
}

/* Byte offset behind a list or a map that is written in one line, in brackets; 0: it is none. */
static size_t behind_brackets(const nxc_node *node) {
  const nxc_source *source = node->at.source;
  if (node->kind == NXC_NODE_SCALAR || source == NULL) return 0;
  size_t at = nxc_span_offset(node->at, false), end = source->line_start[node->at.line], depth = 0;
  if (strchr("[{", source->text[at]) == NULL) return 0;
  for (char quote = '\0'; at < end; at++) {
    char c = source->text[at];
    bool opens = quote == '\0' && (c == '"' || c == '\'');
    if (opens || c == quote) quote = opens ? c : '\0';
    if (quote != '\0' && c == '\\') return 0;
    if (quote != '\0') continue;
    if (c == '#') return 0;
    depth += c == '[' || c == '{';
    if ((c == ']' || c == '}') && --depth == 0) return at + 1;
  }
  return 0;
}

/* A key without anything behind its colon. */
static bool is_empty(const nxc_node *node) {
  return node->kind == NXC_NODE_SCALAR && node->raw != NULL && node->raw_bytes == 0 &&
         node->style == NXC_STYLE_PLAIN && node->at.source != NULL;
}

nxc_repair nxc_repair_value(nxc_arena *arena, const nxc_node *node, const char *text, bool safe) {
  if (is_empty(node) && node->key != NULL && node->at.source->editable) {
    size_t at = nxc_span_offset(node->at, false);
    nxc_edit edit = {node->at.source, at, at, nxc_arena_printf(arena, " %s", text)};
    return at > 0 && edit.source->text[at - 1] == ':' ? nxc_repair_copy(arena, &(nxc_repair){&edit, 1, false})
                                                      : (nxc_repair){0};
  }
  size_t behind = behind_brackets(node);
  if (behind > 0) {
    nxc_edit edit = {node->at.source, nxc_span_offset(node->at, false), behind, text};
    return nxc_repair_copy(arena, &(nxc_repair){&edit, 1, safe && !is_repeated(node)});
  }
  if (!is_whole(node)) return (nxc_repair){0};
  return nxc_repair_span(arena, node->at, text, safe && !is_repeated(node));
}

nxc_repair nxc_repair_text(nxc_arena *arena, const nxc_node *node, const char *text, bool safe) {
  if (!is_whole(node)) return (nxc_repair){0};
  char first = node->at.source->text[nxc_span_offset(node->at, false)];
  bool quoted = (first == '"' || first == '\'') && node->raw[0] != first;
  return nxc_repair_value(arena, node, quoted ? nxc_arena_printf(arena, "%c%s%c", first, text, first) : text,
                          safe);
}

/* -- lines of their own ---------------------------------------------------------------------------------- */

typedef struct own_line {
  const nxc_source *source;
  size_t begin, end;  /* its break included */
  size_t key, behind; /* bytes: where the pair begins; behind the value, and the comma of a map in braces */
} own_line;

static size_t skip_blanks(const char *text, size_t at, size_t end) {
  while (at < end && (text[at] == ' ' || text[at] == '\t')) at++;
  return at;
}

/* How its lines end; of the last one nothing need tell. */
static const char *line_break(const nxc_source *source) {
  size_t n_bytes, behind = source->line_start[1];
  nxc_source_line(source, 1, &n_bytes);
  return behind - n_bytes == 2 ? "\r\n" : "\n";
}

/* What may stand behind a pair: nothing, a comment, or of a command line the mark that it goes on. */
static bool is_rest(const char *text, size_t at, size_t end, bool option) {
  at = skip_blanks(text, at, end);
  if (option) return at == end || (text[at] == '\\' && at + 1 == end);
  return at == end || text[at] == '#';
}

nxc_repair nxc_repair_unwrap(nxc_arena *arena, const nxc_node *list, bool safe) {
  size_t behind = behind_brackets(list);
  if (behind == 0 || list->kind != NXC_NODE_LIST || list->n_children != 1) return (nxc_repair){0};
  const nxc_node *item = list->children[0];
  if (!is_whole(item) || item->at.line != list->at.line) return (nxc_repair){0};
  const nxc_source *source = list->at.source;
  const nxc_edit edits[2] = {{source, nxc_span_offset(list->at, false), nxc_span_offset(item->at, false), ""},
                             {source, nxc_span_offset(item->at, true), behind, ""}};
  const nxc_repair repair = {edits, 2, safe && !is_repeated(list)};
  return nxc_repair_copy(arena, &repair);
}

static bool is_option(const nxc_source *source, size_t at) {
  return strncmp(source->text + at, "--", 2) == 0;
}

/* The line, where nothing but this key and its value stand in it. */
static bool find_line(const nxc_node *node, own_line *line) {
  nxc_span key = node->key_at, value = node->at;
  size_t behind = is_whole(node)   ? nxc_span_offset(value, true)
                  : is_empty(node) ? nxc_span_offset(value, false)
                                   : behind_brackets(node);
  if (nxc_span_same(key, value)) behind = nxc_span_offset(key, true); /* a switch */
  if (node->key == NULL || key.source == NULL || behind == 0) return false;
  if (value.source != key.source || value.line != key.line) return false;
  const nxc_source *source = key.source;
  size_t n_bytes;
  const char *start = nxc_source_line(source, key.line, &n_bytes);
  *line = (own_line){source, (size_t)(start - source->text), source->line_start[key.line],
                     nxc_span_offset(key, false), behind};
  bool option = is_option(source, line->key);
  size_t end = line->begin + n_bytes, between = nxc_span_offset(key, true);
  if (skip_blanks(source->text, line->begin, end) != line->key) return false;
  if (!nxc_span_same(key, value) && nxc_span_offset(value, false) < between) return false;
  if (!option && source->text[skip_blanks(source->text, between, end)] != ':') return false;
  if (!option && source->text[line->behind] == ',') line->behind++;
  return is_rest(source->text, line->behind, end, option);
}

/* Without its last option the line before would go on into what follows: its backslash goes too. */
static void take_backslash(own_line *line, uint32_t number) {
  if (!is_option(line->source, line->key) || number < 2) return;
  size_t n_bytes, n_before;
  const char *text = nxc_source_line(line->source, number, &n_bytes);
  const char *before = nxc_source_line(line->source, number - 1, &n_before);
  if ((n_bytes > 0 && text[n_bytes - 1] == '\\') || n_before == 0 || before[n_before - 1] != '\\') return;
  line->begin = (size_t)(before - line->source->text) + n_before - 1;
  while (line->begin > 0 && line->source->text[line->begin - 1] == ' ') line->begin--;
  line->end = (size_t)(text - line->source->text) + n_bytes;
}

/* An option beside others in its line, or beside what starts the program. */
static bool find_option(const nxc_node *node, own_line *line) {
  nxc_span key = node->key_at, value = node->at;
  if (key.source == NULL || value.source != key.source || value.line != key.line) return false;
  bool is_switch = nxc_span_same(key, value);
  size_t begin = nxc_span_offset(key, false), end = nxc_span_offset(is_switch ? key : value, true);
  if (!is_option(key.source, begin) || (!is_switch && !is_whole(node)) || end <= begin) return false;
  const char *text = key.source->text;
  char quote = is_switch ? '\0' : text[nxc_span_offset(value, false) - 1];
  bool quoted = quote == '"' || quote == '\'';
  if (quoted && text[end] != quote) return false; /* others share its quotes */
  end += quoted;
  *line = (own_line){key.source, begin, end, begin, end};
  return true;
}

/* An empty section would be null. What repeats a key is no child. */
static bool leaves_others(const nxc_node *node) {
  const nxc_node *map = node->parent;
  return map != NULL && map->n_children > (map->children[node->index] == node ? 1 : 0);
}

nxc_repair nxc_repair_remove_words(nxc_arena *arena, const nxc_source *source, size_t begin, size_t end,
                                   bool safe) {
  uint32_t line = nxc_source_place(source, begin).line;
  size_t start = source->line_start[line - 1], next = source->line_start[line], from = begin;
  while (from > start && strchr(" \t", source->text[from - 1]) != NULL) from--;
  size_t behind = skip_blanks(source->text, end, next);
  if (from > start) return nxc_repair_removes(arena, source, from, end, safe);
  bool alone = behind + 1 < next && source->text[behind] == '\\' && source->text[behind + 1] == '\n';
  return alone ? nxc_repair_removes(arena, source, start, next, safe)
               : nxc_repair_removes(arena, source, begin, behind, safe);
}

nxc_repair nxc_repair_remove(nxc_arena *arena, const nxc_node *node, bool safe) {
  own_line line;
  if (!leaves_others(node)) return (nxc_repair){0};
  if (find_line(node, &line)) take_backslash(&line, node->key_at.line);
  else if (find_option(node, &line))
    return nxc_repair_remove_words(arena, line.source, line.begin, line.end, safe);
  else return (nxc_repair){0};
  return nxc_repair_removes(arena, line.source, line.begin, line.end, safe && !is_repeated(node));
}

nxc_repair nxc_repair_move(nxc_arena *arena, const nxc_node *node, const nxc_node *section, const char *key,
                           bool safe) {
  own_line from, first;
  if (section == NULL || section->kind != NXC_NODE_MAP || section->n_children == 0) return (nxc_repair){0};
  const nxc_node *top = section->children[0];
  if (!find_line(node, &from) || !leaves_others(node) || is_repeated(node) || is_repeated(top))
    return (nxc_repair){0};
  if (top->key_at.source != from.source || nxc_node_child(section, key) != NULL) return (nxc_repair){0};
  if (nxc_secret_in_line(from.source->text + from.begin, from.end - from.begin) < from.end - from.begin)
    return (nxc_repair){0}; /* a repair is shown */
  size_t n_bytes;
  const char *start = nxc_source_line(from.source, top->key_at.line, &n_bytes);
  first.begin = (size_t)(start - from.source->text);
  first.key = nxc_span_offset(top->key_at, false);
  if (skip_blanks(from.source->text, first.begin, first.begin + n_bytes) != first.key) return (nxc_repair){0};
  size_t named = nxc_span_offset(node->key_at, true), end = from.end;
  while (end > named && strchr("\r\n", from.source->text[end - 1])) end--;
  const char *quote = from.source->text[from.key] == '"' ? "\"" : "";
  if (*quote && from.source->text[from.behind - 1] != ',')
    return (nxc_repair){0}; /* the last in its braces */
  const char *moved =
      nxc_arena_printf(arena, "%.*s%s%s%s%.*s%s", (int)(first.key - first.begin), start, quote, key, quote,
                       (int)(end - named), from.source->text + named, line_break(from.source));
  nxc_edit edits[2] = {{from.source, from.begin, from.end, ""},
                       {from.source, first.begin, first.begin, moved}};
  const nxc_repair repair = {edits, 2, safe};
  return nxc_repair_copy(arena, &repair);
}

/* -- what lacks ------------------------------------------------------------------------------------------ */

/* In a command line; a key of YAML may be written with hyphens too. */
static bool is_argument(nxc_span key) {
  return is_option(key.source, nxc_span_offset(key, false)) &&
         key.source->text[nxc_span_offset(key, true)] != ':';
}

/* Where the first of its children stands that begins a line; as an argument, where `option`. */
static bool first_line(const nxc_node *section, bool option, own_line *line) {
  for (size_t i = 0; section != NULL && section->kind == NXC_NODE_MAP && i < section->n_children; i++) {
    nxc_span key = section->children[i]->key_at;
    if (key.source == NULL || !key.source->editable || is_repeated(section->children[i])) continue;
    size_t n_bytes, at = nxc_span_offset(key, false);
    size_t begin = (size_t)(nxc_source_line(key.source, key.line, &n_bytes) - key.source->text);
    if (skip_blanks(key.source->text, begin, at) != at || is_argument(key) != option) continue;
    *line = (own_line){key.source, begin, begin + n_bytes, at, 0};
    return true;
  }
  return false;
}

static nxc_repair insert(nxc_arena *arena, const nxc_source *source, size_t at, const char *text) {
  nxc_edit edit = {source, at, at, text};
  return nxc_repair_copy(arena, &(nxc_repair){&edit, 1, false});
}

nxc_repair nxc_repair_add(nxc_arena *arena, const nxc_node *section, const char *key, const char *text) {
  own_line line;
  if (first_line(section, true, &line)) {
    bool goes_on = line.end > line.begin && line.source->text[line.end - 1] == '\\';
    return insert(arena, line.source, line.begin,
                  nxc_arena_printf(arena, "%.*s--%s%s%s%s%s", (int)(line.key - line.begin),
                                   line.source->text + line.begin, key, text ? " " : "", text ? text : "",
                                   goes_on ? " \\" : "", line_break(line.source)));
  }
  if (text == NULL || !first_line(section, false, &line)) return (nxc_repair){0};
  bool braces =
      section->at.source != NULL && section->at.source->text[nxc_span_offset(section->at, false)] == '{';
  const char *quote = line.source->text[line.key] == '"' ? "\"" : "";
  return insert(arena, line.source, line.begin,
                nxc_arena_printf(arena, "%.*s%s%s%s: %s%s%s", (int)(line.key - line.begin),
                                 line.source->text + line.begin, quote, key, quote, text, braces ? "," : "",
                                 line_break(line.source)));
}

nxc_repair nxc_repair_export(nxc_arena *arena, const nxc_node *root, const char *name, const char *text) {
  own_line line;
  if (!first_line(root, true, &line)) return (nxc_repair){0};
  const nxc_source *source = line.source;
  uint32_t at = strncmp(source->text, "#!", 2) == 0 && source->n_lines > 1 ? 1 : 0;
  return insert(arena, source, source->line_start[at],
                nxc_arena_printf(arena, "export %s=%s%s", name, text, line_break(source)));
}
