/* SPDX-License-Identifier: Apache-2.0 */
/* What may be written at the cursor: keys of the section, words of an option, paths within an interpolation,
 * options of a command line. The text is seldom whole while it is typed, so its lines tell where the cursor
 * is. */
#include "compiler/config/fronts.h"
#include "compiler/render/render.h"
#include "compiler/server/answers.h"
#include "compiler/settings/facts.h"

#include <stdlib.h>
#include <string.h>

/* CompletionItemKind. */
enum { KIND_PROPERTY = 10, KIND_VALUE = 12, KIND_MODULE = 9, KIND_REFERENCE = 18 };

typedef struct cursor {
  const nxc_analysis *analysis;
  nxc_arena *arena;
  const nxc_dialect *dialect;
  const char *line; /* from its start up to the cursor */
  const char *section;
  const char *word; /* what is typed of the key, the value or the path */
  json_t *items;
} cursor;

/* -- where the cursor is --------------------------------------------------------------------------------- */

static size_t line_start(const char *text, size_t at) {
  while (at > 0 && text[at - 1] != '\n') at--;
  return at;
}

static size_t indent_of(const char *line) {
  size_t n = strspn(line, " ");
  while (line[n] == '-' && line[n + 1] == ' ') n += 2 + strspn(line + n + 2, " ");
  return n;
}

/* The key that a line begins with, without its quotes; NULL: none. */
static const char *key_of(nxc_arena *arena, const char *line) {
  const char *at = line + indent_of(line);
  bool quoted = *at == '"' || *at == '\'';
  at += quoted;
  size_t n = strcspn(at, quoted ? "\"'\n" : ":\n #{[");
  const char *behind = at + n + quoted;
  return n > 0 && *behind == ':' ? nxc_arena_strndup(arena, at, n) : NULL;
}

/* The path of the section that a line of this indent stands in, by the lines above it. */
static const char *section_above(cursor *c, const char *text, size_t start, size_t indent) {
  const char *section = "";
  while (start > 0 && indent > 0) {
    start = line_start(text, start - 1);
    const char *line = text + start;
    size_t own = indent_of(line);
    const char *key = line[own] == '#' ? NULL : key_of(c->arena, line);
    if (key == NULL || own >= indent) continue;
    section = *section ? nxc_arena_printf(c->arena, "%s.%s", key, section) : key;
    indent = own;
  }
  return section;
}

/* The dialect that was told, or else the one that the text's keys hint at, whole or not. */
static const nxc_dialect *dialect_of(const nxc_analysis *analysis) {
  const nxc_compiled *compiled = &analysis->judged.compiled;
  if (compiled->dialect != NULL) return compiled->dialect;
  const nxc_dialect *best = NULL;
  size_t n_best = 0;
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    const char *version;
    size_t n_known = 0;
    if (nxc_front_find(analysis->judged.arena, dialect->name, &version) == NULL) continue;
    for (const char *at = analysis->open->text; at != NULL; at = strchr(at, '\n')) {
      at += *at == '\n';
      const char *key = indent_of(at) == 0 ? key_of(analysis->judged.arena, at) : NULL;
      n_known +=
          key != NULL && (nxc_option_find(dialect, key) != NULL || nxc_dialect_has_section(dialect, key));
    }
    if (n_known > n_best) best = dialect, n_best = n_known;
  }
  return best;
}

/* -- items ----------------------------------------------------------------------------------------------- */

static json_t *add_item(cursor *c, const char *label, int kind, const char *insert, const char *detail) {
  json_t *item = json_pack("{s:o, s:i, s:o}", "label", nxc_json_text(label), "kind", kind, "insertText",
                           nxc_json_text(insert));
  if (detail != NULL) json_object_set_new(item, "detail", nxc_json_text(detail));
  json_array_append_new(c->items, item);
  return item;
}

static void document_item(cursor *c, json_t *item, const nxc_option_row *row) {
  if (row->doc != NULL)
    json_object_set_new(item, "documentation",
                        json_pack("{s:s, s:o}", "kind", "markdown", "value", nxc_json_text(row->doc)));
  const nxc_value *initial = nxc_option_default(row, c->analysis->judged.compiled.version);
  const char *usual =
      initial ? nxc_arena_printf(c->arena, ", default %s", nxc_value_show(c->arena, initial)) : "";
  json_object_set_new(
      item, "detail",
      nxc_json_text(nxc_arena_printf(c->arena, "%s%s", nxc_type_name(row->domain.type), usual)));
}

static bool starts_with(const char *text, const char *begin) {
  return strncmp(text, begin, strlen(begin)) == 0;
}

/* The next step of every option of the section, each once; options of one section stand together. */
static void add_keys(cursor *c, const char *before, const char *behind) {
  const nxc_dialect *dialect = c->dialect;
  size_t n_section = strlen(c->section), first = 0, end = dialect->n_options;
  if (n_section > 0) end = nxc_dialect_section(dialect, c->section, &first);
  const char *last = "";
  for (size_t i = first; i < end; i++) {
    const nxc_option_row *row = &dialect->options[i];
    const char *rest = row->name + (n_section ? n_section + 1 : 0);
    const char *step = nxc_arena_strndup(c->arena, rest, strcspn(rest, "."));
    bool past = !nxc_in_version(row->versions, row->n_versions, c->analysis->judged.compiled.version);
    if (*step == '*' || strcmp(step, last) == 0 || !starts_with(step, c->word) || row->alias_of || past)
      continue;
    last = step;
    bool section = rest[strlen(step)] == '.';
    const char *insert = nxc_arena_printf(c->arena, "%s%s%s", before, step, section ? ":" : behind);
    json_t *item = add_item(c, nxc_arena_printf(c->arena, "%s%s", before, step),
                            section ? KIND_MODULE : KIND_PROPERTY, insert, section ? "a section" : NULL);
    if (!section) document_item(c, item, row);
  }
}

static void add_words(cursor *c, const char *key) {
  const char *name = *c->section ? nxc_arena_printf(c->arena, "%s.%s", c->section, key) : key;
  const nxc_option_row *row = nxc_option_find(c->dialect, name);
  if (row != NULL && row->alias_of != NULL) row = nxc_option_find(c->dialect, row->alias_of);
  if (row == NULL) return;
  for (size_t i = 0; i < row->domain.n_values; i++)
    if (starts_with(row->domain.values[i], c->word))
      add_item(c, row->domain.values[i], KIND_VALUE, row->domain.values[i], NULL);
  static const char *const truths[] = {"true", "false"};
  for (size_t i = 0; row->domain.type == NXC_TYPE_BOOL && i < 2; i++)
    if (starts_with(truths[i], c->word)) add_item(c, truths[i], KIND_VALUE, truths[i], NULL);
  if (row->domain.nullable && starts_with("null", c->word)) add_item(c, "null", KIND_VALUE, "null", NULL);
  const nxc_value *initial = nxc_option_default(row, c->analysis->judged.compiled.version);
  bool plain = initial != NULL && (initial->kind == NXC_INT || initial->kind == NXC_FLOAT);
  const char *usual = plain ? nxc_value_show(c->arena, initial) : NULL;
  if (usual != NULL && starts_with(usual, c->word)) add_item(c, usual, KIND_VALUE, usual, "the default");
}

/* Every path of the document that begins so. */
static void add_paths(cursor *c, const nxc_node *map, const char *shut) {
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *child = map->children[i];
    if (child->key == NULL) continue;
    const char *path = nxc_node_path(c->arena, child);
    bool scalar = child->kind == NXC_NODE_SCALAR;
    const nxc_value *value = scalar && !child->failed ? nxc_node_public_value(c->arena, child) : NULL;
    if (starts_with(path, c->word))
      add_item(c, path, KIND_REFERENCE, scalar ? nxc_arena_printf(c->arena, "%s%s", path, shut) : path,
               value ? nxc_value_show(c->arena, value) : NULL);
    if (!scalar) add_paths(c, child, shut);
  }
}

/* Those beside the scalar, behind one dot. */
static void add_siblings(cursor *c, const char *shut) {
  const nxc_document *document = c->analysis->judged.compiled.document;
  const nxc_node *map = document && *c->section ? nxc_node_lookup(document->root, c->section) : NULL;
  if (map == NULL && document != NULL && *c->section == '\0') map = document->root;
  for (size_t i = 0; map != NULL && i < map->n_children; i++) {
    const nxc_node *child = map->children[i];
    const char *path = child->key ? nxc_arena_printf(c->arena, ".%s", child->key) : "";
    if (*path && starts_with(path, c->word))
      add_item(c, path, KIND_REFERENCE, nxc_arena_printf(c->arena, "%s%s", path, shut), NULL);
  }
}

/* -- answering ------------------------------------------------------------------------------------------- */

/* The last ${ or $< that nothing closes before the cursor. */
static const char *open_reference(const char *line, const char **shut) {
  const char *open = NULL;
  for (const char *at = line; (at = strchr(at, '$')) != NULL; at++)
    if ((at[1] == '{' && strchr(at, '}') == NULL) || (at[1] == '<' && strchr(at, '>') == NULL)) open = at;
  *shut = open && open[1] == '<' ? ">" : "}";
  return open;
}

static const char *last_word(const char *line) {
  const char *word = line;
  for (const char *at = line; *at != '\0'; at++)
    if (strchr(" \t\"'[{,(:$", *at)) word = at + 1;
  return word;
}

static void complete(cursor *c, const char *text, size_t start) {
  const char *shut, *reference = open_reference(c->line, &shut), *key = key_of(c->arena, c->line);
  c->section = section_above(c, text, start, indent_of(c->line));
  c->word = last_word(c->line);
  const nxc_document *document = c->analysis->judged.compiled.document;
  if (reference != NULL) {
    c->word = reference + 2;
    if (*c->word == '.') add_siblings(c, shut);
    else if (document != NULL) add_paths(c, document->root, shut);
  } else if (c->dialect != NULL && starts_with(c->word, "--")) {
    c->word += 2;
    c->section = "";
    add_keys(c, "--", " ");
  } else if (c->dialect != NULL && key != NULL) {
    add_words(c, key);
  } else if (c->dialect != NULL) {
    if (c->line[strspn(c->line, " ")] == '{' || strcmp(c->dialect->name, "neox") == 0) c->section = "";
    add_keys(c, "", ": ");
  }
}

json_t *nxc_answer_completion(const nxc_analysis *analysis, const json_t *params) {
  const nxc_open_text *open = analysis->open;
  size_t offset = nxc_answer_offset(analysis, params), start = line_start(open->text, offset);
  cursor c = {.analysis = analysis,
              .arena = analysis->judged.arena,
              .dialect = dialect_of(analysis),
              .line = nxc_arena_strndup(analysis->judged.arena, open->text + start, offset - start),
              .items = json_array()};
  complete(&c, open->text, start);
  return json_pack("{s:b, s:o}", "isIncomplete", 0, "items", c.items);
}
