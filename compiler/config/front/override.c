/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/override.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/buffer.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"
#include "compiler/config/interpolation/interpolate_parse.h"
#include "compiler/settings/catalogue.h"

#include <ctype.h>
#include <string.h>

typedef enum action { CHANGE, ADD, FORCE, DELETE } action;

typedef struct override {
  nxc_document *document;
  const nxc_dialect *dialect;
  nxc_sink *sink;
  const nxc_source *source;
  action action;
  size_t key_at, n_key; /* bytes of the argument */
  const char *key;      /* a[b] as a.b */
  bool has_value;
  nxc_parser words; /* its cursor is the parser's */
  unsigned depth;
  bool failed;
} override;

enum { DEPTH_MAX = 64, NAMES_MAX = 512 };

/* -- form ------------------------------------------------------------------------------------------------ */

static bool is_key_character(char c) {
  return isalnum((unsigned char)c) || strchr("_.-[]$", c) != NULL;
}

/* The marks in front of the key. */
static action action_of(const char *argument, size_t *n_marks) {
  *n_marks = argument[0] == '~' ? 1 : argument[0] != '+' ? 0 : argument[1] == '+' ? 2 : 1;
  if (argument[0] == '~') return DELETE;
  return *n_marks == 0 ? CHANGE : *n_marks == 1 ? ADD : FORCE;
}

bool nxc_override_is(const char *argument) {
  size_t n_marks, n_key = 0;
  action wanted = action_of(argument, &n_marks);
  const char *key = argument + n_marks;
  while (key[n_key] != '\0' && is_key_character(key[n_key])) n_key++;
  bool named = isalpha((unsigned char)key[0]) || key[0] == '_';
  return named && (key[n_key] == '=' || (wanted == DELETE && key[n_key] == '\0'));
}

/* -- places ---------------------------------------------------------------------------------------------- */

static nxc_span span_of(const override *o, const char *from, const char *to) {
  size_t first = (size_t)(from - o->source->text), last = (size_t)(to - o->source->text);
  uint32_t column = (uint32_t)nxc_source_column(o->source, 1, first);
  uint32_t end = (uint32_t)nxc_source_column(o->source, 1, last);
  return (nxc_span){o->source, 1, column + 1, end > column ? end - column : 1};
}

static nxc_span key_span(const override *o) {
  const char *key = o->source->text + o->key_at;
  return span_of(o, key, key + o->n_key);
}

static bool fail(override *o, const char *at, const char *fix, const char *problem) {
  if (!o->failed)
    nxc_report(o->sink, "NX1025", NXC_SEVERITY_ERROR, span_of(o, at, at + 1), fix, "%s", problem);
  o->failed = true;
  return false;
}

/* -- values ---------------------------------------------------------------------------------------------- */

static nxc_node *parse_element(override *o, const char *closers);

static void skip_blanks(override *o) {
  while (*o->words.at == ' ' || *o->words.at == '\t') o->words.at++;
}

static nxc_node *new_node(override *o, nxc_node_kind kind, const char *from) {
  return nxc_node_new(o->document->arena, kind, span_of(o, from, o->words.at));
}

static nxc_node *text_node(override *o, const char *from, const nxc_buffer *text) {
  nxc_node *node = new_node(o, NXC_NODE_SCALAR, from);
  node->raw = text->bytes ? text->bytes : "";
  node->raw_bytes = text->n_bytes;
  node->value = nxc_string_value(node->raw, node->raw_bytes);
  return node;
}

/* 'it\'s': a backslash matters before the quote alone. */
static nxc_node *parse_quoted(override *o) {
  const char *from = o->words.at, quote = *o->words.at++;
  nxc_buffer text = {.arena = o->document->arena};
  while (*o->words.at != '\0' && *o->words.at != quote) {
    bool escaped = o->words.at[0] == '\\' && o->words.at[1] == quote;
    o->words.at += escaped;
    nxc_buffer_put(&text, o->words.at++, 1);
  }
  if (*o->words.at == '\0') {
    fail(o, from, "close the quote", "a quote is opened and never closed");
    return NULL;
  }
  o->words.at++;
  return text_node(o, from, &text);
}

/* ${...} or $<...>, with what is nested in it; NULL where it does not end. */
static const char *end_of_reference(const char *at) {
  char open = at[1], close = open == '{' ? '}' : '>';
  unsigned depth = 0;
  for (at++; *at != '\0'; at++) {
    depth += *at == open;
    if (*at == close && --depth == 0) return at + 1;
  }
  return NULL;
}

/* One word is typed; several, and references, make a text. */
static nxc_node *parse_words(override *o, bool colon) {
  const char *from = o->words.at;
  nxc_buffer text = {.arena = o->document->arena};
  nxc_syntax_word word = {0}, only = {0};
  size_t n_words = 0;
  for (;; n_words++) {
    const char *at = o->words.at;
    if (at[0] == '$' && (at[1] == '{' || at[1] == '<')) {
      const char *end = end_of_reference(at);
      if (end == NULL) {
        fail(o, at, NULL, "this reference is never closed");
        return NULL;
      }
      nxc_buffer_put(&text, at, (size_t)(end - at));
      o->words.at = end;
      n_words++; /* never typed */
      continue;
    }
    if (!nxc_parser_word(&o->words, colon, &word)) {
      fail(o, o->words.at, NULL, o->words.problem->message);
      return NULL;
    }
    if (word.n_bytes == 0) break;
    bool blank = strspn(word.text, " \t") >= word.n_bytes;
    if (blank && *o->words.at == '\0') break;
    nxc_buffer_put(&text, word.text, word.n_bytes);
    only = word;
  }
  if (n_words == 0) return NULL;
  nxc_node *node = text_node(o, from, &text);
  if (n_words == 1) node->value = only.value;
  return node;
}

/* The items between brackets; `pair` reads one. */
static nxc_node *parse_items(override *o, nxc_node_kind kind, char close,
                             bool (*item)(override *, nxc_node *)) {
  const char *from = o->words.at++;
  nxc_node *node = new_node(o, kind, from);
  if (++o->depth > DEPTH_MAX) fail(o, from, NULL, "this is nested too deeply");
  skip_blanks(o);
  while (!o->failed && *o->words.at != close) {
    if (*o->words.at == '\0') fail(o, from, NULL, "this is never closed");
    if (o->failed || !item(o, node)) break;
    skip_blanks(o);
    if (*o->words.at == ',') {
      o->words.at++;
      skip_blanks(o);
      if (*o->words.at == close) fail(o, o->words.at, NULL, "a value is missing here");
    } else if (*o->words.at != close && *o->words.at != '\0') {
      fail(o, o->words.at, "quote the text", "this character cannot stand here");
    }
  }
  o->depth--;
  if (o->failed) return NULL;
  o->words.at++;
  return node;
}

static bool parse_list_item(override *o, nxc_node *list) {
  nxc_node *item = parse_element(o, ",]");
  if (item != NULL) nxc_node_append(o->document->arena, list, item);
  return item != NULL;
}

static bool parse_pair(override *o, nxc_node *map) {
  const char *from = o->words.at;
  bool quoted = *from == '\'' || *from == '"';
  nxc_node *key = quoted ? parse_quoted(o) : parse_words(o, false);
  if (key == NULL) return fail(o, o->words.at, NULL, "a key is missing here");
  skip_blanks(o);
  if (*o->words.at != ':') return fail(o, o->words.at, "write {key: value}", "a key without a colon");
  o->words.at++;
  nxc_node *value = parse_element(o, ",}");
  if (value == NULL) return false;
  nxc_node_set_key(value, &key->value, key->raw, key->at);
  nxc_node *earlier = nxc_node_find_key(o->document->arena, map, &key->value);
  if (earlier != NULL) nxc_node_replace(o->document->arena, earlier, value);
  else nxc_node_append(o->document->arena, map, value);
  return true;
}

/* What a bare value may not hold, in Hydra's words as in ours. */
static bool complain_of_rest(override *o, const char *closers) {
  char c = *o->words.at;
  if (c == ',' && *closers == '\0')
    return fail(o, o->words.at, "write [a,b] for a list, or quote the text",
                "several values are a sweep, which is not one training");
  if (c == '(') return fail(o, o->words.at, "write the value", "functions are not read here");
  if (c == '=') return fail(o, o->words.at, "write \\=, or quote the value", "a second = in one override");
  return fail(o, o->words.at, "quote the value", "this character needs quotes");
}

static nxc_node *parse_element(override *o, const char *closers) {
  skip_blanks(o);
  nxc_node *node;
  switch (*o->words.at) {
  case '\'':
  case '"': node = parse_quoted(o); break;
  case '[': node = parse_items(o, NXC_NODE_LIST, ']', parse_list_item); break;
  case '{': node = parse_items(o, NXC_NODE_MAP, '}', parse_pair); break;
  default: node = parse_words(o, true); break;
  }
  skip_blanks(o);
  bool ended = *o->words.at == '\0' ? *closers == '\0' : strchr(closers, *o->words.at) != NULL;
  if (!o->failed && !ended && *o->words.at != '\0') complain_of_rest(o, closers);
  if (!o->failed && node == NULL && *closers != '\0') fail(o, o->words.at, NULL, "a value is missing here");
  return o->failed ? NULL : node;
}

/* NULL (reported): it cannot be read. */
static nxc_node *parse_value(override *o) {
  const char *from = o->words.at;
  nxc_node *value = parse_element(o, "");
  const nxc_buffer nothing = {.arena = o->document->arena};
  return value != NULL || o->failed ? value : text_node(o, from, &nothing);
}

/* -- the tree -------------------------------------------------------------------------------------------- */

static const char *last_dot(const char *key) {
  return strrchr(key, '.');
}

/* The nearest key: of those beside it in the file, else, to be added, of the dialect's options. */
static const char *nearest_key(const override *o) {
  nxc_arena *arena = o->document->arena;
  const char *dot = last_dot(o->key), *names[NAMES_MAX];
  size_t n_names = 0;
  const char *section = dot ? nxc_arena_strndup(arena, o->key, (size_t)(dot - o->key)) : "";
  const nxc_node *map = dot ? nxc_node_lookup(o->document->root, section) : o->document->root;
  size_t n_children = map != NULL && map->kind == NXC_NODE_MAP ? map->n_children : 0;
  for (size_t i = 0; i < n_children && n_names < NAMES_MAX; i++) {
    const char *key = map->children[i]->key;
    names[n_names++] = dot ? nxc_arena_printf(arena, "%s.%s", section, key) : key;
  }
  const char *found = nxc_nearest(o->key, names, n_names);
  if (found != NULL || o->dialect == NULL) return found;
  for (n_names = 0; n_names < o->dialect->n_options && n_names < NAMES_MAX; n_names++)
    names[n_names] = o->dialect->options[n_names].name;
  found = nxc_nearest(o->key, names, n_names);
  return found && o->action != DELETE ? nxc_arena_printf(arena, "+%s", found) : NULL;
}

static bool report_absent(const override *o) {
  nxc_arena *arena = o->document->arena;
  const nxc_option_row *row = o->dialect ? nxc_option_find(o->dialect, o->key) : NULL;
  bool known = row != NULL && strcmp(row->name, o->key) == 0;
  const char *nearest = known ? NULL : nearest_key(o), *rest = o->source->text + o->key_at;
  const char *fix = nxc_arena_printf(arena, "write +%s to add it", rest);
  if (nearest) fix = nxc_arena_printf(arena, "did you mean %s? To add the key write +%s", nearest, rest);
  if (o->action == DELETE) fix = nxc_did_you_mean(arena, "", nearest);
  nxc_report(o->sink, "NX1026", NXC_SEVERITY_ERROR, key_span(o), fix, "the file has no %s%s", o->key,
             known ? ", although it is an option" : "");
  return false;
}

static bool report_present(const override *o, const nxc_node *node) {
  const nxc_remark remark = {nxc_node_span(node), "it is here"};
  nxc_sink_report(o->sink,
                  &(nxc_finding){.id = "NX1027",
                                 .severity = NXC_SEVERITY_ERROR,
                                 .at = key_span(o),
                                 .fix = "leave the + out to change it, or write ++",
                                 .message = nxc_arena_printf(o->document->arena,
                                                             "%s cannot be added: the file has it", o->key),
                                 .remarks = &remark,
                                 .n_remarks = 1});
  return false;
}

static bool delete(override *o, nxc_node *node, const nxc_node *value) {
  nxc_arena *arena = o->document->arena;
  if (value != NULL && !nxc_value_equal(nxc_node_value(arena, node), nxc_node_value(arena, value))) {
    nxc_report(o->sink, "NX1028", NXC_SEVERITY_ERROR, value->at,
               "leave =VALUE out, or write the value that it has",
               "%s stays: it has another value than this one", o->key);
    return false;
  }
  if (node->parent->kind == NXC_NODE_MAP) {
    nxc_node_remove(arena, node);
    return true;
  }
  nxc_report(o->sink, "NX1028", NXC_SEVERITY_ERROR, key_span(o), "give the whole list anew, without the item",
             "%s is an item of a list, and only keys can be taken out", o->key);
  return false;
}

static bool apply(override *o, nxc_node *value) {
  nxc_node *node = nxc_node_lookup(o->document->root, o->key);
  bool own = strncmp(o->key, "hydra.", 6) == 0; /* Hydra's own, which no file has */
  bool branch = value != NULL && value->kind != NXC_NODE_SCALAR;
  bool nothing = node != NULL && node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_NULL;
  if (node == NULL && (o->action == DELETE || (o->action == CHANGE && !own))) return report_absent(o);
  if (o->action == DELETE) return delete(o, node, value);
  if (o->action == ADD && node != NULL && !nothing && !branch) return report_present(o, node);
  return nxc_document_put(o->document, o->source, o->key_at, o->n_key, value, o->sink);
}

/* -- all ------------------------------------------------------------------------------------------------- */

static const char *with_dots(nxc_arena *arena, const char *key, size_t n_bytes) {
  char *dotted = nxc_arena_alloc(arena, n_bytes + 1), *to = dotted;
  for (size_t i = 0; i < n_bytes; i++)
    if (key[i] != ']') *to++ = key[i] == '[' ? '.' : key[i];
  return dotted;
}

bool nxc_override_apply(nxc_document *document, const char *argument, const nxc_dialect *dialect,
                        nxc_sink *sink) {
  nxc_syntax_problem problem = {0};
  override o = {.document = document, .dialect = dialect, .sink = sink};
  o.source = nxc_source_new(document->arena, "override", argument, strlen(argument));
  o.action = action_of(o.source->text, &o.key_at);
  const char *key = o.source->text + o.key_at, *equals = strchr(key, '=');
  o.n_key = equals ? (size_t)(equals - key) : strlen(key);
  o.key = with_dots(document->arena, key, o.n_key);
  o.has_value = equals != NULL;
  o.words = (nxc_parser){.arena = document->arena,
                         .text = o.source->text,
                         .at = equals ? equals + 1 : key + o.n_key,
                         .end = o.source->text + o.source->n_bytes,
                         .problem = &problem};
  nxc_node *value = o.has_value ? parse_value(&o) : NULL;
  return !o.failed && apply(&o, value);
}
