/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/document/names.h"
#include "compiler/config/front/words_shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* -- places ---------------------------------------------------------------------------------------------- */

/* Places are asked for from left to right, mostly, so the last one is where counting goes on. */
nxc_span nxc_shell_place(nxc_shell *s, size_t offset, size_t n_bytes) {
  const nxc_source *source = s->source;
  uint32_t low = 0, high = source->n_lines;
  while (low + 1 < high) {
    uint32_t middle = low + (high - low) / 2;
    if (source->line_start[middle] <= offset) low = middle;
    else high = middle;
  }
  size_t from = source->line_start[low];
  nxc_span at = {.source = source, .line = low + 1, .column = 1};
  if (s->placed.line == at.line && s->placed_offset <= offset) {
    from = s->placed_offset;
    at.column = s->placed.column;
  }
  for (size_t i = from; i < offset && i < source->n_bytes; i++)
    at.column += ((unsigned char)source->text[i] & 0xC0) != 0x80;
  s->placed = at;
  s->placed_offset = offset;
  for (size_t i = offset; i < offset + n_bytes && i < source->n_bytes && source->text[i] != '\n'; i++)
    at.length += ((unsigned char)source->text[i] & 0xC0) != 0x80;
  if (at.length == 0) at.length = 1;
  return at;
}

void nxc_shell_fail(nxc_shell *s, size_t offset, const char *problem) {
  if (!s->failed)
    nxc_report(s->sink, "NX5909", NXC_SEVERITY_ERROR, nxc_shell_place(s, offset, 1), NULL, "%s", problem);
  s->failed = true;
}

/* -- drafts ---------------------------------------------------------------------------------------------- */

static void put(nxc_shell *s, nxc_draft *word, char byte, size_t origin) {
  nxc_arena *arena = s->script->arena;
  word->bytes = nxc_arena_grow(arena, word->bytes, word->n_bytes, 1);
  word->origins = nxc_arena_grow(arena, word->origins, word->n_bytes, sizeof *word->origins);
  word->bytes[word->n_bytes] = byte;
  word->origins[word->n_bytes++] = (uint32_t)origin;
  word->open = true;
  if (++s->n_expanded > EXPANDED_BYTES_MAX)
    nxc_shell_fail(s, origin, "variables make more text of this than arguments may be");
}

/* From its first byte to its last, where both stand on one line. */
static nxc_span place_of(nxc_shell *s, const nxc_draft *word, size_t otherwise) {
  if (word->n_bytes == 0) return nxc_shell_place(s, otherwise, 1);
  size_t first = word->origins[0], last = word->origins[word->n_bytes - 1];
  return nxc_shell_place(s, first, last >= first ? last - first + 1 : 1);
}

void nxc_shell_keep(nxc_shell *s, nxc_words *words, nxc_word word) {
  words->items = nxc_arena_grow(s->script->arena, words->items, words->n_items, sizeof *words->items);
  words->items[words->n_items++] = word;
}

void nxc_shell_finish(nxc_shell *s, nxc_draft *word, nxc_words *words, size_t start) {
  if (word->open)
    nxc_shell_keep(s, words,
                   (nxc_word){.text = nxc_arena_strndup(s->script->arena, word->n_bytes ? word->bytes : "",
                                                        word->n_bytes),
                              .at = place_of(s, word, start),
                              .unset = word->unset,
                              .from_environment = word->from_environment,
                              .origins = word->origins});
  *word = (nxc_draft){0};
}

/* -- variables ------------------------------------------------------------------------------------------- */

/* The place of a name's position in a table that is made when it is first needed. */
static void **position_of(nxc_script *script, nxc_names **table, const char *name, size_t n_bytes) {
  if (*table == NULL) *table = nxc_names_new(script->arena);
  return nxc_names_slot(*table, name, n_bytes);
}

const nxc_assigned *nxc_script_find(const nxc_script *script, const char *name, size_t n_bytes) {
  if (script->assigned_by_name == NULL) return NULL;
  size_t position = (size_t)(uintptr_t)nxc_names_find(script->assigned_by_name, name, n_bytes);
  return position > 0 ? &script->assigned[position - 1] : NULL;
}

nxc_assigned *nxc_shell_assign(nxc_script *script, const char *name, nxc_span at) {
  void **position = position_of(script, &script->assigned_by_name, name, strlen(name));
  if (*position == NULL) {
    script->assigned =
        nxc_arena_grow(script->arena, script->assigned, script->n_assigned, sizeof *script->assigned);
    script->assigned[script->n_assigned++] = (nxc_assigned){.name = name};
    *position = (void *)(uintptr_t)script->n_assigned;
  }
  nxc_assigned *assigned = &script->assigned[(uintptr_t)*position - 1];
  assigned->at = at;
  return assigned;
}

void nxc_script_assign(nxc_script *script, const char *name, nxc_word value) {
  nxc_assigned *assigned = nxc_shell_assign(script, name, value.at);
  nxc_word *item = nxc_arena_alloc(script->arena, sizeof *item);
  *item = value;
  assigned->words = (nxc_words){item, 1};
  assigned->array = false;
  assigned->exported = true;
}

/* A variable of the environment, noted once. NULL: not set. */
static const char *read_environment(nxc_script *script, const char *name, nxc_span at, bool default_taken) {
  const char *value = getenv(name);
  void **position = position_of(script, &script->variables_by_name, name, strlen(name));
  if (*position != NULL) return value;
  script->variables =
      nxc_arena_grow(script->arena, script->variables, script->n_variables, sizeof *script->variables);
  script->variables[script->n_variables++] =
      (nxc_variable){.name = name, .value = value, .default_taken = value == NULL && default_taken, .at = at};
  *position = (void *)(uintptr_t)script->n_variables;
  return value;
}

/* -- expansion ------------------------------------------------------------------------------------------- */

bool nxc_shell_is_name(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The byte behind the bracket that closes the one at `at`; the end of the text where there is none. */
static size_t behind_bracket(const char *text, size_t n_bytes, size_t at) {
  char open = text[at], close = open == '(' ? ')' : '}';
  size_t depth = 0;
  for (; at < n_bytes; at++) {
    if (text[at] == '\\') at++;
    else if (text[at] == open) depth++;
    else if (text[at] == close && --depth == 0) return at + 1;
  }
  return n_bytes;
}

/* What a shell would know and this does not: it stays as it is written. */
static void put_unknown(nxc_shell *s, nxc_draft *word, const char *text, size_t n_bytes, size_t origin) {
  word->unset = nxc_arena_strndup(s->script->arena, text, n_bytes);
  for (size_t i = 0; i < n_bytes && !s->failed; i++) put(s, word, text[i], origin + i);
}

/* Bytes of a value; outside quotes blanks in it end words. */
static void put_value(nxc_shell *s, nxc_draft *word, nxc_words *words, const char *value, bool quoted,
                      size_t origin) {
  for (; *value != '\0' && !s->failed; value++) {
    if (quoted || !is_blank(*value)) put(s, word, *value, origin);
    else nxc_shell_finish(s, word, words, origin);
  }
}

/* A word of a variable, whose bytes keep the places where they are written. */
void nxc_shell_put_assigned(nxc_shell *s, nxc_draft *word, nxc_words *words, const nxc_word *value,
                            bool quoted, size_t origin) {
  word->from_environment = word->from_environment || value->from_environment;
  if (value->unset != NULL) word->unset = value->unset;
  bool here = value->at.source == s->source && value->origins != NULL;
  const char *unknown = value->unset ? strstr(value->text, value->unset) : NULL; /* $(...) is not divided */
  size_t from = unknown ? (size_t)(unknown - value->text) : 0;
  size_t end = unknown ? from + strlen(value->unset) : 0;
  for (size_t i = 0; value->text[i] != '\0' && !s->failed; i++) {
    size_t at = here ? value->origins[i] : origin;
    bool whole = quoted || (i >= from && i < end);
    if (whole || !is_blank(value->text[i])) put(s, word, value->text[i], at);
    else nxc_shell_finish(s, word, words, at);
  }
}

void nxc_shell_split(nxc_shell *s, const nxc_word *value, nxc_words *words) {
  nxc_draft word = {.from_environment = value->from_environment};
  char quote = '\0';
  for (size_t i = 0; value->text[i] != '\0' && !s->failed; i++) {
    char c = value->text[i];
    size_t at = value->origins && value->at.source == s->source ? value->origins[i] : 0;
    if (c == quote) quote = '\0';
    else if (quote == '\0' && (c == '\'' || c == '"')) quote = c, word.open = true;
    else if (quote == '\0' && is_blank(c)) nxc_shell_finish(s, &word, words, at);
    else if (quote != '\'' && c == '\\' && value->text[i + 1] == '\n') i++;
    else put(s, &word, c, at);
  }
  nxc_shell_finish(s, &word, words, 0);
}

typedef struct reference {
  const char *name;
  size_t n_name;
  const char *otherwise; /* behind :- ; NULL: none */
  size_t n_otherwise;
  bool instead; /* :+ ; what stands there takes the place of a value */
  bool all;     /* [@] or [*] */
  bool plain; /* nothing that only a shell would do */
} reference;

/* NAME, NAME[@], NAME:-TEXT or NAME:+TEXT, between the braces. */
static reference parse_reference(const char *inside, size_t n_bytes) {
  reference found = {.name = inside, .plain = true};
  while (found.n_name < n_bytes && nxc_shell_is_name(inside[found.n_name])) found.n_name++;
  const char *rest = inside + found.n_name;
  size_t n_rest = n_bytes - found.n_name;
  if (n_rest >= 3 && rest[0] == '[' && strchr("@*", rest[1]) && rest[2] == ']') {
    found.all = true;
    rest += 3;
    n_rest -= 3;
  }
  size_t n_sign = n_rest >= 2 && rest[0] == ':' ? 2 : 1;
  if (n_rest >= n_sign && strchr(n_sign == 2 ? "-=+" : "-+", rest[n_sign - 1])) {
    found.instead = rest[n_sign - 1] == '+';
    found.otherwise = rest + n_sign;
    found.n_otherwise = n_rest - n_sign;
  } else if (n_rest > 0) {
    found.plain = false;
  }
  if (found.n_name == 0) found.plain = false;
  return found;
}

static void expand_reference(nxc_shell *s, nxc_draft *word, nxc_words *words, const reference *r,
                             const char *written, size_t n_written, bool quoted, size_t origin);

static size_t expand(nxc_shell *s, nxc_draft *word, nxc_words *words, const char *text, size_t n_bytes,
                     bool quoted, size_t base);

void nxc_shell_put_text(nxc_shell *s, nxc_draft *word, const char *text, size_t n_bytes, size_t origin) {
  nxc_words none = {0};
  word->open = true;
  for (size_t i = 0; i < n_bytes && !s->failed;) {
    if (text[i] == '\\' && i + 1 < n_bytes && text[i + 1] == '\n') i += 2;
    else if (text[i] == '$' || text[i] == '`')
      i += expand(s, word, &none, text + i, n_bytes - i, true, origin + i);
    else put(s, word, text[i], origin + i), i++;
  }
}

/* Names stand for their values in arithmetic, with and without $. */
static bool put_operands(nxc_shell *s, nxc_draft *sum, const char *text, size_t n_bytes, size_t origin) {
  for (size_t i = 0; i < n_bytes && !s->failed;) {
    size_t n_name = 0;
    while (i + n_name < n_bytes && nxc_shell_is_name(text[i + n_name])) n_name++;
    if (n_name > 0 && !isdigit((unsigned char)text[i])) {
      const char *name = nxc_arena_printf(s->script->arena, "${%.*s}", (int)n_name, text + i);
      nxc_shell_put_text(s, sum, name, strlen(name), origin);
    } else {
      n_name = n_name > 0 ? n_name : 1;
      if (text[i] == '$') {
        nxc_words none = {0};
        n_name = expand(s, sum, &none, text + i, n_bytes - i, true, origin);
      } else {
        for (size_t k = 0; k < n_name; k++) put(s, sum, text[i + k], origin);
      }
    }
    i += n_name;
  }
  return sum->unset == NULL && !s->failed;
}

bool nxc_shell_compute(nxc_shell *s, const char *text, size_t n_bytes, size_t origin, nxc_draft *used,
                       int64_t *value) {
  nxc_draft sum = {.open = true};
  if (++s->depth > DEFAULTS_DEPTH_MAX) return false;
  bool known = put_operands(s, &sum, text, n_bytes, origin);
  s->depth--;
  used->from_environment = used->from_environment || sum.from_environment;
  const char *operands = nxc_arena_strndup(s->script->arena, sum.n_bytes ? sum.bytes : "", sum.n_bytes);
  return known && nxc_shell_arithmetic(operands, value);
}

/* $((...)) of known integers becomes its value. */
static bool put_arithmetic(nxc_shell *s, nxc_draft *word, const char *text, size_t n_bytes, size_t origin) {
  int64_t value;
  bool sum = n_bytes >= 5 && strncmp(text, "$((", 3) == 0 && strncmp(text + n_bytes - 2, "))", 2) == 0;
  if (!sum || !nxc_shell_compute(s, text + 3, n_bytes - 5, origin, word, &value)) return false;
  const char *shown = nxc_arena_printf(s->script->arena, "%lld", (long long)value);
  for (; *shown != '\0'; shown++) put(s, word, *shown, origin);
  return true;
}

/* $NAME, ${...}, $(...) and `...` at `at` of a text whose first byte came from `base`; gives the bytes taken.
 */
static size_t expand(nxc_shell *s, nxc_draft *word, nxc_words *words, const char *text, size_t n_bytes,
                     bool quoted, size_t base) {
  size_t n_taken = 1;
  if (*text == '`') {
    while (n_taken < n_bytes && text[n_taken] != '`') n_taken++;
    if (n_taken < n_bytes) n_taken++;
    put_unknown(s, word, text, n_taken, base);
  } else if (n_bytes > 1 && text[1] == '(') {
    n_taken = nxc_shell_put_here(s, word, text, n_bytes, base);
    if (n_taken > 0) return n_taken;
    n_taken = behind_bracket(text, n_bytes, 1);
    if (!put_arithmetic(s, word, text, n_taken, base)) put_unknown(s, word, text, n_taken, base);
  } else if (n_bytes > 1 && text[1] == '{') {
    n_taken = behind_bracket(text, n_bytes, 1);
    bool own = n_taken > 3 && strchr("@*", text[2]) != NULL; /* ${@:2} */
    s->empty_list = s->empty_list || own;
    if (own) return n_taken;
    reference r = parse_reference(text + 2, n_taken > 3 ? n_taken - 3 : 0);
    expand_reference(s, word, words, &r, text, n_taken, quoted, base);
  } else if (n_bytes > 1 && (text[1] == '@' || text[1] == '*')) { /* a script is read without arguments */
    n_taken = 2;
    s->empty_list = true;
  } else if (n_bytes > 1 && (nxc_shell_is_name(text[1]) || strchr("#?$!", text[1]))) {
    bool digit = isdigit((unsigned char)text[1]) || !nxc_shell_is_name(text[1]);
    n_taken = 2;
    while (!digit && n_taken < n_bytes && nxc_shell_is_name(text[n_taken])) n_taken++;
    reference r = {.name = text + 1, .n_name = n_taken - 1, .plain = nxc_shell_is_name(text[1])};
    expand_reference(s, word, words, &r, text, n_taken, quoted, base);
  } else {
    put(s, word, '$', base);
  }
  return n_taken;
}

/* What stands behind `:-` or `:+`, without its quotes and with its own variables. */
static void put_default(nxc_shell *s, nxc_draft *word, nxc_words *words, const reference *r,
                        const char *written, bool quoted, size_t origin) {
  const char *text = r->otherwise;
  size_t n_left = r->n_otherwise;
  word->open = true;
  if (s->depth == DEFAULTS_DEPTH_MAX) {
    put_unknown(s, word, text, n_left, origin + (size_t)(text - written));
    return;
  }
  s->depth++;
  while (n_left > 0 && !s->failed) {
    size_t n_taken = 1, at = origin + (size_t)(text - written);
    if (*text == '$') n_taken = expand(s, word, words, text, n_left, quoted, at);
    else if (quoted || !is_blank(*text)) {
      if (*text != '"' && *text != '\'') put(s, word, *text, at);
    } else {
      nxc_shell_finish(s, word, words, at);
    }
    text += n_taken;
    n_left -= n_taken;
  }
  s->depth--;
}

/* ${NAME:+TEXT}: the text where the name has a value. */
static void put_instead(nxc_shell *s, nxc_draft *word, nxc_words *words, const reference *r,
                        const nxc_assigned *own, const char *written, bool quoted, size_t origin) {
  const char *name = nxc_arena_strndup(s->script->arena, r->name, r->n_name), *value = NULL;
  if (own == NULL) value = read_environment(s->script, name, nxc_shell_place(s, origin, 1), false);
  else if (own->words.n_items > 0) value = nxc_shell_tested(&own->words.items[0]);
  if (value != NULL && *value != '\0') put_default(s, word, words, r, written, quoted, origin);
}

static void expand_reference(nxc_shell *s, nxc_draft *word, nxc_words *words, const reference *r,
                             const char *written, size_t n_written, bool quoted, size_t origin) {
  const nxc_assigned *own = r->plain ? nxc_script_find(s->script, r->name, r->n_name) : NULL;
  if (!r->plain) {
    put_unknown(s, word, written, n_written, origin);
    return;
  }
  if (r->instead) {
    put_instead(s, word, words, r, own, written, quoted, origin);
    return;
  }
  for (size_t i = 0; own != NULL && i < own->words.n_items && !s->failed; i++) {
    if (i > 0) nxc_shell_finish(s, word, words, origin);
    nxc_shell_put_assigned(s, word, words, &own->words.items[i], quoted, origin);
    if (own->array && quoted) word->open = true;
  }
  if (own != NULL && own->words.n_items == 0) s->empty_list = true;
  if (own != NULL || s->failed) return;
  const char *name = nxc_arena_strndup(s->script->arena, r->name, r->n_name);
  const char *value =
      read_environment(s->script, name, nxc_shell_place(s, origin, n_written), r->otherwise != NULL);
  if (value != NULL && (*value != '\0' || r->otherwise == NULL)) {
    word->from_environment = true;
    put_value(s, word, words, value, quoted, origin);
  } else if (r->otherwise != NULL) {
    put_default(s, word, words, r, written, quoted, origin);
  } else if (value == NULL && !r->all) {
    put_unknown(s, word, written, n_written, origin);
  }
}

nxc_word nxc_script_expand(nxc_script *script, const char *text, nxc_span at) {
  nxc_shell s = {.script = script, .source = at.source, .sink = nxc_sink_new(script->arena), .text = text};
  s.n_bytes = at.source->n_bytes;
  nxc_draft word = {.open = true};
  nxc_words words = {0};
  for (size_t n_left = strlen(text); n_left > 0 && !s.failed;) {
    size_t n_taken = 1;
    if (*text == '$') n_taken = expand(&s, &word, &words, text, n_left, true, 0);
    else put(&s, &word, *text, 0);
    text += n_taken;
    n_left -= n_taken;
  }
  return (nxc_word){.text = nxc_arena_strndup(script->arena, word.n_bytes ? word.bytes : "", word.n_bytes),
                    .at = at,
                    .unset = word.unset,
                    .from_environment = word.from_environment};
}

/* -- reading words --------------------------------------------------------------------------------------- */

static void read_single(nxc_shell *s, nxc_draft *word) {
  size_t start = s->at++;
  word->open = word->quoted = true;
  while (s->at < s->n_bytes && s->text[s->at] != '\'' && !s->failed) {
    put(s, word, s->text[s->at], s->at);
    s->at++;
  }
  if (s->at >= s->n_bytes) nxc_shell_fail(s, start, "this quote does not end");
  s->at++;
}

static void read_double(nxc_shell *s, nxc_draft *word, nxc_words *words) {
  size_t start = s->at++;
  bool was_open = word->open;
  word->open = word->quoted = true;
  s->empty_list = false;
  while (s->at < s->n_bytes && s->text[s->at] != '"' && !s->failed) {
    char c = s->text[s->at], next = s->at + 1 < s->n_bytes ? s->text[s->at + 1] : '\0';
    if (c == '\\' && next == '\n') s->at += 2;
    else if (c == '\\' && next != '\0' && strchr("\"\\$`", next)) put(s, word, next, s->at + 1), s->at += 2;
    else if (c == '$' || c == '`')
      s->at += expand(s, word, words, s->text + s->at, s->n_bytes - s->at, true, s->at);
    else put(s, word, c, s->at), s->at++;
  }
  if (s->at >= s->n_bytes) nxc_shell_fail(s, start, "this quote does not end");
  s->at++;
  if (s->empty_list && word->n_bytes == 0) word->open = was_open;
}

/* Bytes of a backslash that lets the line go on, with the break behind it; 0 where there is none. */
static size_t continuation_bytes(const nxc_shell *s) {
  if (s->text[s->at] != '\\' || s->at + 1 >= s->n_bytes) return 0;
  if (s->text[s->at + 1] == '\n') return 2;
  if (s->text[s->at + 1] != '\r') return 0;
  return s->at + 2 < s->n_bytes && s->text[s->at + 2] == '\n' ? 3 : 2;
}

void nxc_shell_skip_blanks(nxc_shell *s, bool lines) {
  while (s->at < s->n_bytes) {
    char c = s->text[s->at];
    size_t n_continued = continuation_bytes(s);
    if (c == '#') {
      while (s->at < s->n_bytes && s->text[s->at] != '\n') s->at++;
    } else if (n_continued > 0) {
      s->at += n_continued;
    } else if (is_blank(c) && (lines || c != '\n')) {
      s->at++;
      if (c == '\n' && s->n_here > 0) nxc_shell_read_here(s);
    } else {
      return;
    }
  }
}

bool nxc_shell_ends_word(char c) {
  return is_blank(c) || strchr(";&|()<>", c) != NULL;
}

/* One word of the text, which may become none or several. */
void nxc_shell_read_word(nxc_shell *s, nxc_words *words) {
  nxc_draft word = {0};
  size_t start = s->at;
  while (s->at < s->n_bytes && !nxc_shell_ends_word(s->text[s->at]) && !s->failed) {
    char c = s->text[s->at], next = s->at + 1 < s->n_bytes ? s->text[s->at + 1] : '\0';
    if (c == '\'') read_single(s, &word);
    else if (c == '"') read_double(s, &word, words);
    else if (continuation_bytes(s) > 0) break;
    else if (c == '\\' && next != '\0') put(s, &word, next, s->at + 1), s->at += 2;
    else if (c == '$' || c == '`')
      s->at += expand(s, &word, words, s->text + s->at, s->n_bytes - s->at, false, s->at);
    else put(s, &word, c, s->at), s->at++;
  }
  nxc_shell_finish(s, &word, words, start);
}
