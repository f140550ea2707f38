/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { EXPANDED_BYTES_MAX = 4 * 1024 * 1024, DEFAULTS_DEPTH_MAX = 16 };

/* A word that is being put together: its bytes, and for each the byte of the source that it came from. */
typedef struct draft {
  char *bytes;
  uint32_t *origins;
  size_t n_bytes;
  bool open; /* there is a word, even when it has no bytes yet ('') */
  bool quoted;
  const char *unset;
  bool from_environment;
} draft;

typedef struct command {
  nxc_words words;
} command;

typedef enum truth { NO, YES, MAYBE } truth;

/* if ... then ... elif ... else ... fi: which branch is taken. */
typedef struct branch {
  bool outside; /* what is around it is taken */
  bool taken;   /* this part is */
  bool done;    /* a part has been */
  bool testing; /* between if and then */
  truth result; /* of the tests so far */
  char joint;   /* what joins the next test: '|', '&', or 0 for the first */
} branch;

typedef struct shell {
  nxc_script *script;
  const nxc_source *source;
  nxc_sink *sink;
  const char *text;
  size_t n_bytes, at;
  size_t n_expanded;
  bool failed;
  command *commands;
  size_t n_commands;
  branch *branches;
  size_t n_branches;
  unsigned depth; /* of ${A:-${B:-...}} */
} shell;

/* -- places ---------------------------------------------------------------------------------------------- */

static nxc_span place(const nxc_source *source, size_t offset, size_t n_bytes) {
  uint32_t low = 0, high = source->n_lines;
  while (low + 1 < high) {
    uint32_t middle = low + (high - low) / 2;
    if (source->line_start[middle] <= offset) low = middle;
    else high = middle;
  }
  nxc_span at = {.source = source, .line = low + 1, .column = 1};
  for (size_t i = source->line_start[low]; i < offset && i < source->n_bytes; i++)
    at.column += ((unsigned char)source->text[i] & 0xC0) != 0x80;
  for (size_t i = offset; i < offset + n_bytes && i < source->n_bytes && source->text[i] != '\n'; i++)
    at.length += ((unsigned char)source->text[i] & 0xC0) != 0x80;
  if (at.length == 0) at.length = 1;
  return at;
}

static void fail(shell *s, size_t offset, const char *problem) {
  if (!s->failed)
    nxc_report(s->sink, "NX5909", NXC_SEVERITY_ERROR, place(s->source, offset, 1), NULL, "%s", problem);
  s->failed = true;
}

/* -- drafts ---------------------------------------------------------------------------------------------- */

static void put(shell *s, draft *word, char byte, size_t origin) {
  nxc_arena *arena = s->script->arena;
  word->bytes = nxc_arena_grow(arena, word->bytes, word->n_bytes, 1);
  word->origins = nxc_arena_grow(arena, word->origins, word->n_bytes, sizeof *word->origins);
  word->bytes[word->n_bytes] = byte;
  word->origins[word->n_bytes++] = (uint32_t)origin;
  word->open = true;
  if (++s->n_expanded > EXPANDED_BYTES_MAX) fail(s, origin, "variables make more text of this than arguments may be");
}

/* From its first byte to its last, where both stand on one line. */
static nxc_span place_of(const shell *s, const draft *word, size_t otherwise) {
  if (word->n_bytes == 0) return place(s->source, otherwise, 1);
  size_t first = word->origins[0], last = word->origins[word->n_bytes - 1];
  return place(s->source, first, last >= first ? last - first + 1 : 1);
}

static void keep(shell *s, nxc_words *words, nxc_word word) {
  words->items = nxc_arena_grow(s->script->arena, words->items, words->n_items, sizeof *words->items);
  words->items[words->n_items++] = word;
}

static void finish(shell *s, draft *word, nxc_words *words, size_t start) {
  if (word->open)
    keep(s, words,
         (nxc_word){.text = nxc_arena_strndup(s->script->arena, word->n_bytes ? word->bytes : "", word->n_bytes),
                    .at = place_of(s, word, start),
                    .unset = word->unset,
                    .from_environment = word->from_environment,
                    .origins = word->origins});
  *word = (draft){0};
}

/* -- variables ------------------------------------------------------------------------------------------- */

const nxc_assigned *nxc_script_find(const nxc_script *script, const char *name, size_t n_bytes) {
  for (size_t i = script->n_assigned; i-- > 0;) {
    const nxc_assigned *assigned = &script->assigned[i];
    if (strncmp(assigned->name, name, n_bytes) == 0 && assigned->name[n_bytes] == '\0') return assigned;
  }
  return NULL;
}

static nxc_assigned *assign(nxc_script *script, const char *name, nxc_span at) {
  nxc_assigned *assigned = (nxc_assigned *)nxc_script_find(script, name, strlen(name));
  if (assigned == NULL) {
    script->assigned = nxc_arena_grow(script->arena, script->assigned, script->n_assigned, sizeof *assigned);
    assigned = &script->assigned[script->n_assigned++];
    *assigned = (nxc_assigned){.name = name};
  }
  assigned->at = at;
  return assigned;
}

void nxc_script_assign(nxc_script *script, const char *name, nxc_word value) {
  nxc_assigned *assigned = assign(script, name, value.at);
  nxc_word *item = nxc_arena_alloc(script->arena, sizeof *item);
  *item = value;
  assigned->words = (nxc_words){item, 1};
  assigned->array = false;
}

/* A variable of the environment, noted once. NULL: not set. */
static const char *read_environment(nxc_script *script, const char *name, nxc_span at, bool default_taken) {
  const char *value = getenv(name);
  for (size_t i = 0; i < script->n_variables; i++)
    if (strcmp(script->variables[i].name, name) == 0) return value;
  script->variables =
      nxc_arena_grow(script->arena, script->variables, script->n_variables, sizeof *script->variables);
  script->variables[script->n_variables++] =
      (nxc_variable){.name = name, .value = value, .default_taken = value == NULL && default_taken, .at = at};
  return value;
}

/* -- expansion ------------------------------------------------------------------------------------------- */

static bool is_name(char c) {
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
static void put_unknown(shell *s, draft *word, const char *text, size_t n_bytes, size_t origin) {
  word->unset = nxc_arena_strndup(s->script->arena, text, n_bytes);
  for (size_t i = 0; i < n_bytes && !s->failed; i++) put(s, word, text[i], origin + i);
}

/* Bytes of a value; outside quotes blanks in it end words. */
static void put_value(shell *s, draft *word, nxc_words *words, const char *value, bool quoted, size_t origin) {
  for (; *value != '\0' && !s->failed; value++) {
    if (quoted || !is_blank(*value)) put(s, word, *value, origin);
    else finish(s, word, words, origin);
  }
}

/* A word of a variable, whose bytes keep the places where they are written. */
static void put_assigned(shell *s, draft *word, nxc_words *words, const nxc_word *value, bool quoted,
                         size_t origin) {
  word->from_environment = word->from_environment || value->from_environment;
  if (value->unset != NULL) word->unset = value->unset;
  bool here = value->at.source == s->source && value->origins != NULL;
  for (size_t i = 0; value->text[i] != '\0' && !s->failed; i++) {
    size_t at = here ? value->origins[i] : origin;
    if (quoted || !is_blank(value->text[i])) put(s, word, value->text[i], at);
    else finish(s, word, words, at);
  }
}

typedef struct reference {
  const char *name;
  size_t n_name;
  const char *otherwise; /* behind :- ; NULL: none */
  size_t n_otherwise;
  bool all;   /* [@] or [*] */
  bool plain; /* nothing that only a shell would do */
} reference;

/* NAME, NAME[@] or NAME:-TEXT, between the braces. */
static reference parse_reference(const char *inside, size_t n_bytes) {
  reference found = {.name = inside, .plain = true};
  while (found.n_name < n_bytes && is_name(inside[found.n_name])) found.n_name++;
  const char *rest = inside + found.n_name;
  size_t n_rest = n_bytes - found.n_name;
  if (n_rest >= 3 && rest[0] == '[' && strchr("@*", rest[1]) && rest[2] == ']') {
    found.all = true;
    rest += 3;
    n_rest -= 3;
  }
  if (n_rest >= 2 && rest[0] == ':' && strchr("-=", rest[1])) {
    found.otherwise = rest + 2;
    found.n_otherwise = n_rest - 2;
  } else if (n_rest >= 1 && rest[0] == '-') {
    found.otherwise = rest + 1;
    found.n_otherwise = n_rest - 1;
  } else if (n_rest > 0) {
    found.plain = false;
  }
  if (found.n_name == 0) found.plain = false;
  return found;
}

static void expand_reference(shell *s, draft *word, nxc_words *words, const reference *r, const char *written,
                             size_t n_written, bool quoted, size_t origin);

/* $NAME, ${...}, $(...) and `...` at `at` of a text whose first byte came from `base`; gives the bytes taken. */
static size_t expand(shell *s, draft *word, nxc_words *words, const char *text, size_t n_bytes, bool quoted,
                     size_t base) {
  size_t n_taken = 1;
  if (*text == '`') {
    while (n_taken < n_bytes && text[n_taken] != '`') n_taken++;
    if (n_taken < n_bytes) n_taken++;
    put_unknown(s, word, text, n_taken, base);
  } else if (n_bytes > 1 && text[1] == '(') {
    n_taken = behind_bracket(text, n_bytes, 1);
    put_unknown(s, word, text, n_taken, base);
  } else if (n_bytes > 1 && text[1] == '{') {
    n_taken = behind_bracket(text, n_bytes, 1);
    reference r = parse_reference(text + 2, n_taken > 3 ? n_taken - 3 : 0);
    expand_reference(s, word, words, &r, text, n_taken, quoted, base);
  } else if (n_bytes > 1 && (is_name(text[1]) || strchr("@*#?$!", text[1]))) {
    bool digit = isdigit((unsigned char)text[1]) || !is_name(text[1]);
    n_taken = 2;
    while (!digit && n_taken < n_bytes && is_name(text[n_taken])) n_taken++;
    reference r = {.name = text + 1, .n_name = n_taken - 1, .plain = is_name(text[1])};
    expand_reference(s, word, words, &r, text, n_taken, quoted, base);
  } else {
    put(s, word, '$', base);
  }
  return n_taken;
}

/* What stands behind `:-`, without its quotes and with its own variables. */
static void put_default(shell *s, draft *word, nxc_words *words, const reference *r, const char *written,
                        bool quoted, size_t origin) {
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
      finish(s, word, words, at);
    }
    text += n_taken;
    n_left -= n_taken;
  }
  s->depth--;
}

static void expand_reference(shell *s, draft *word, nxc_words *words, const reference *r, const char *written,
                             size_t n_written, bool quoted, size_t origin) {
  const nxc_assigned *own = r->plain ? nxc_script_find(s->script, r->name, r->n_name) : NULL;
  if (!r->plain) {
    put_unknown(s, word, written, n_written, origin);
    return;
  }
  for (size_t i = 0; own != NULL && i < own->words.n_items && !s->failed; i++) {
    if (i > 0) finish(s, word, words, origin);
    put_assigned(s, word, words, &own->words.items[i], quoted, origin);
    if (own->array && quoted) word->open = true;
  }
  if (own != NULL || s->failed) return;
  const char *name = nxc_arena_strndup(s->script->arena, r->name, r->n_name);
  const char *value =
      read_environment(s->script, name, place(s->source, origin, n_written), r->otherwise != NULL);
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
  shell s = {.script = script, .source = at.source, .sink = nxc_sink_new(script->arena), .text = text};
  s.n_bytes = at.source->n_bytes;
  draft word = {.open = true};
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

static void read_single(shell *s, draft *word) {
  size_t start = s->at++;
  word->open = word->quoted = true;
  while (s->at < s->n_bytes && s->text[s->at] != '\'' && !s->failed) {
    put(s, word, s->text[s->at], s->at);
    s->at++;
  }
  if (s->at >= s->n_bytes) fail(s, start, "this quote does not end");
  s->at++;
}

static void read_double(shell *s, draft *word, nxc_words *words) {
  size_t start = s->at++;
  word->open = word->quoted = true;
  while (s->at < s->n_bytes && s->text[s->at] != '"' && !s->failed) {
    char c = s->text[s->at], next = s->at + 1 < s->n_bytes ? s->text[s->at + 1] : '\0';
    if (c == '\\' && next == '\n') s->at += 2;
    else if (c == '\\' && next != '\0' && strchr("\"\\$`", next)) put(s, word, next, s->at + 1), s->at += 2;
    else if (c == '$' || c == '`')
      s->at += expand(s, word, words, s->text + s->at, s->n_bytes - s->at, true, s->at);
    else put(s, word, c, s->at), s->at++;
  }
  if (s->at >= s->n_bytes) fail(s, start, "this quote does not end");
  s->at++;
}

static void skip_blanks(shell *s, bool lines) {
  while (s->at < s->n_bytes) {
    char c = s->text[s->at], next = s->at + 1 < s->n_bytes ? s->text[s->at + 1] : '\0';
    bool continued = c == '\\' && (next == '\n' || (next == '\r' && s->at + 2 < s->n_bytes));
    if (c == '#') {
      while (s->at < s->n_bytes && s->text[s->at] != '\n') s->at++;
    } else if (continued) {
      s->at += next == '\n' ? 2 : 3;
    } else if (is_blank(c) && (lines || c != '\n')) {
      s->at++;
    } else {
      return;
    }
  }
}

static bool ends_word(char c) {
  return is_blank(c) || strchr(";&|()<>", c) != NULL;
}

/* One word of the text, which may become none or several. */
static void read_word(shell *s, nxc_words *words) {
  draft word = {0};
  size_t start = s->at;
  while (s->at < s->n_bytes && !ends_word(s->text[s->at]) && !s->failed) {
    char c = s->text[s->at], next = s->at + 1 < s->n_bytes ? s->text[s->at + 1] : '\0';
    if (c == '\'') read_single(s, &word);
    else if (c == '"') read_double(s, &word, words);
    else if (c == '\\' && (next == '\n' || next == '\r')) break;
    else if (c == '\\' && next != '\0') put(s, &word, next, s->at + 1), s->at += 2;
    else if (c == '$' || c == '`')
      s->at += expand(s, &word, words, s->text + s->at, s->n_bytes - s->at, false, s->at);
    else put(s, &word, c, s->at), s->at++;
  }
  finish(s, &word, words, start);
}

/* -- branches -------------------------------------------------------------------------------------------- */

static bool is_taken(const shell *s) {
  return s->n_branches == 0 || (s->branches[s->n_branches - 1].taken && !s->branches[s->n_branches - 1].testing);
}

static bool is_word(const nxc_words *words, size_t i, const char *text) {
  return i < words->n_items && strcmp(words->items[i].text, text) == 0;
}

/* What a test compares: a variable of the environment that is not set is empty, what only a run would tell is
 * unknown (NULL). */
static const char *tested(const nxc_word *word) {
  if (word->unset == NULL) return word->text;
  const char *name = word->unset + strspn(word->unset, "${");
  bool variable = *word->unset == '$' && (isalpha((unsigned char)*name) || *name == '_');
  return variable && strcmp(word->text, word->unset) == 0 ? "" : NULL;
}

static truth negate(truth value) {
  return value == MAYBE ? MAYBE : value == YES ? NO : YES;
}

/* [ -n A ], [[ A == B ]] and their like; anything else may be so or not. */
static truth judge_test(const nxc_words *words, size_t from) {
  size_t end = words->n_items;
  bool negated = false;
  for (; from < end; from++) {
    if (is_word(words, from, "!")) negated = !negated;
    else if (!is_word(words, from, "[") && !is_word(words, from, "[[") && !is_word(words, from, "test")) break;
  }
  while (end > from && (is_word(words, end - 1, "]") || is_word(words, end - 1, "]]"))) end--;
  truth found = MAYBE;
  if (end - from == 2) {
    const char *value = tested(&words->items[from + 1]);
    if (value != NULL && is_word(words, from, "-n")) found = *value != '\0' ? YES : NO;
    if (value != NULL && is_word(words, from, "-z")) found = *value == '\0' ? YES : NO;
  } else if (end - from == 3) {
    const char *a = tested(&words->items[from]), *b = tested(&words->items[from + 2]);
    bool equal = a != NULL && b != NULL && strcmp(a, b) == 0;
    bool known = a != NULL && b != NULL && strpbrk(b, "*?[") == NULL;
    bool asks_equal = is_word(words, from + 1, "=") || is_word(words, from + 1, "==") || is_word(words, from + 1, "-eq");
    bool asks_other = is_word(words, from + 1, "!=") || is_word(words, from + 1, "-ne");
    if (known && asks_equal) found = equal ? YES : NO;
    if (known && asks_other) found = equal ? NO : YES;
  }
  return negated ? negate(found) : found;
}

static void add_test(branch *in, truth value, char joint) {
  truth before = in->result;
  if (in->joint == '|') in->result = before == YES || value == YES ? YES : before == NO && value == NO ? NO : MAYBE;
  else if (in->joint == '&') in->result = before == NO || value == NO ? NO : before == YES && value == YES ? YES : MAYBE;
  else in->result = value;
  in->joint = joint;
}

static void open_branch(shell *s) {
  bool outside = is_taken(s);
  s->branches = nxc_arena_grow(s->script->arena, s->branches, s->n_branches, sizeof *s->branches);
  s->branches[s->n_branches++] = (branch){.outside = outside, .testing = true};
}

/* A word that opens, divides or closes a branch ends its command, so that what follows is one of its own. */
static bool is_keyword(const char *text) {
  static const char *const words[] = {"then", "else", "fi", "do", "done", "{", "}"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(text, words[i]) == 0) return true;
  return false;
}

/* Whether the command was about branches alone. */
static bool take_branch(shell *s, const nxc_words *words, char joint) {
  branch *in = s->n_branches ? &s->branches[s->n_branches - 1] : NULL;
  if (is_word(words, 0, "if")) {
    open_branch(s);
    add_test(&s->branches[s->n_branches - 1], judge_test(words, 1), joint);
  } else if (in != NULL && is_word(words, 0, "elif")) {
    in->testing = true;
    in->joint = 0;
    add_test(in, judge_test(words, 1), joint);
  } else if (in != NULL && is_word(words, 0, "then")) {
    in->testing = false;
    in->taken = in->outside && !in->done && in->result != NO;
    in->done = in->done || in->taken;
  } else if (in != NULL && is_word(words, 0, "else")) {
    in->taken = in->outside && !in->done;
    in->done = true;
  } else if (in != NULL && is_word(words, 0, "fi")) {
    s->n_branches--;
  } else if (in != NULL && in->testing) {
    add_test(in, judge_test(words, 0), joint);
  } else {
    return is_keyword(words->items[0].text);
  }
  return true;
}

/* -- commands -------------------------------------------------------------------------------------------- */

/* The length of NAME= or NAME+= here; 0 when there is none. */
static size_t assignment_length(const shell *s) {
  size_t n_bytes = 0;
  const char *at = s->text + s->at;
  size_t n_left = s->n_bytes - s->at;
  while (n_bytes < n_left && is_name(at[n_bytes])) n_bytes++;
  if (n_bytes == 0 || isdigit((unsigned char)*at)) return 0;
  if (n_bytes < n_left && at[n_bytes] == '=') return n_bytes + 1;
  return n_bytes + 1 < n_left && at[n_bytes] == '+' && at[n_bytes + 1] == '=' ? n_bytes + 2 : 0;
}

static void read_array(shell *s, nxc_words *words) {
  size_t start = s->at++;
  for (;;) {
    skip_blanks(s, true);
    if (s->failed || s->at >= s->n_bytes || s->text[s->at] == ')') break;
    size_t before = s->at;
    read_word(s, words);
    if (s->at == before) s->at++;
  }
  if (s->at >= s->n_bytes) fail(s, start, "this array does not end");
  s->at++;
}

static void read_assignment(shell *s, size_t n_head) {
  bool appends = s->text[s->at + n_head - 2] == '+';
  size_t n_name = n_head - 1 - appends;
  const char *name = nxc_arena_strndup(s->script->arena, s->text + s->at, n_name);
  nxc_span at = place(s->source, s->at, n_name);
  s->at += n_head;
  bool array = s->at < s->n_bytes && s->text[s->at] == '(';
  nxc_words words = {0};
  const nxc_assigned *before = appends ? nxc_script_find(s->script, name, n_name) : NULL;
  for (size_t i = 0; before != NULL && i < before->words.n_items; i++) keep(s, &words, before->words.items[i]);
  if (array) read_array(s, &words);
  else {
    /* the value is one word, whatever variables put into it */
    nxc_words pieces = {0};
    read_word(s, &pieces);
    for (size_t i = 0; i < pieces.n_items; i++) keep(s, &words, pieces.items[i]);
  }
  s->script->is_script = true;
  if (!is_taken(s)) return;
  nxc_assigned *assigned = assign(s->script, name, at);
  assigned->words = words;
  assigned->array = array || (appends && before != NULL && before->array) || words.n_items > 1;
}

/* > FILE and its like, which are no arguments. */
static void skip_redirection(shell *s, nxc_words *words) {
  nxc_word *last = words->n_items ? &words->items[words->n_items - 1] : NULL;
  bool number = last && strspn(last->text, "0123456789") == strlen(last->text) && s->at > 0 &&
                isdigit((unsigned char)s->text[s->at - 1]);
  if (number) words->n_items--;
  while (s->at < s->n_bytes && strchr("<>&", s->text[s->at])) s->at++;
  skip_blanks(s, false);
  nxc_words target = {0};
  read_word(s, &target);
}

/* One command, to the end of its line or to what separates it from the next. */
static void read_command(shell *s) {
  command read = {0};
  char joint = 0;
  for (;;) {
    skip_blanks(s, false);
    if (s->failed || s->at >= s->n_bytes) break;
    char c = s->text[s->at];
    bool leading = read.words.n_items == 0 || (read.words.n_items == 1 && (is_word(&read.words, 0, "export") ||
                                                                           is_word(&read.words, 0, "local") ||
                                                                           is_word(&read.words, 0, "declare")));
    size_t n_head = leading ? assignment_length(s) : 0;
    bool duplicates = c == '&' && s->at + 1 < s->n_bytes && s->text[s->at + 1] == '>';
    if (n_head > 0) {
      read_assignment(s, n_head);
    } else if (c == '<' || c == '>' || duplicates) {
      skip_redirection(s, &read.words);
    } else if (ends_word(c)) {
      s->at++;
      if ((c == '|' || c == '&') && s->at < s->n_bytes && s->text[s->at] == c) {
        joint = c;
        s->at++;
      }
      break;
    } else {
      read_word(s, &read.words);
      if (read.words.n_items == 1 && is_keyword(read.words.items[0].text)) break;
    }
  }
  if (read.words.n_items == 0) return;
  if (take_branch(s, &read.words, joint) || !is_taken(s)) return;
  s->commands = nxc_arena_grow(s->script->arena, s->commands, s->n_commands, sizeof *s->commands);
  s->commands[s->n_commands++] = read;
}

/* -- what is what ---------------------------------------------------------------------------------------- */

static bool ends_in_py(const char *text) {
  size_t n_bytes = strlen(text);
  return n_bytes > 3 && strcmp(text + n_bytes - 3, ".py") == 0;
}

/* The first word that names a Python program; n_items when there is none. */
static size_t find_program(const nxc_words *words) {
  size_t i = 0;
  while (i < words->n_items && !ends_in_py(words->items[i].text)) i++;
  return i;
}

static size_t count_options(const nxc_words *words, size_t from) {
  size_t n_options = 0;
  for (size_t i = from; i < words->n_items; i++) n_options += strncmp(words->items[i].text, "--", 2) == 0;
  return n_options;
}

/* The command that runs a program with the most options is the training. */
static bool take_training(shell *s) {
  const nxc_words *best = NULL;
  size_t n_best = 0;
  for (size_t i = 0; i < s->n_commands; i++) {
    const nxc_words *words = &s->commands[i].words;
    size_t program = find_program(words), n_options = count_options(words, program);
    if (program == words->n_items || n_options < n_best) continue;
    best = words;
    n_best = n_options;
  }
  if (best == NULL) return false;
  size_t program = find_program(best);
  for (size_t i = 0; i < best->n_items; i++)
    if (i != program) keep(s, i < program ? &s->script->launcher : &s->script->arguments, best->items[i]);
  return s->script->is_script = true;
}

/* Without a command that runs a program: every variable that holds options, and every bare option. */
static void take_all(shell *s) {
  nxc_script *script = s->script;
  for (size_t i = 0; i < script->n_assigned; i++) {
    const nxc_assigned *assigned = &script->assigned[i];
    bool launcher = strstr(assigned->name, "DISTRIBUTED") || strstr(assigned->name, "LAUNCH") ||
                    strstr(assigned->name, "TORCHRUN");
    nxc_words words = {0};
    for (size_t j = 0; j < assigned->words.n_items; j++) {
      draft word = {.open = assigned->array};
      put_assigned(s, &word, &words, &assigned->words.items[j], assigned->array, 0);
      finish(s, &word, &words, 0);
    }
    if (words.n_items == 0 || strncmp(words.items[0].text, "--", 2) != 0) continue;
    for (size_t j = 0; j < words.n_items; j++)
      keep(s, launcher ? &script->launcher : &script->arguments, words.items[j]);
  }
  for (size_t i = 0; i < s->n_commands; i++) {
    const nxc_words *words = &s->commands[i].words;
    if (script->is_script && strncmp(words->items[0].text, "--", 2) != 0) continue;
    for (size_t j = 0; j < words->n_items; j++) keep(s, &script->arguments, words->items[j]);
  }
}

bool nxc_script_read(nxc_arena *arena, const nxc_source *source, nxc_sink *sink, nxc_script *script) {
  *script = (nxc_script){.arena = arena};
  shell s = {.script = script, .source = source, .sink = sink, .text = source->text, .n_bytes = source->n_bytes};
  if (strlen(source->text) != source->n_bytes) {
    fail(&s, strlen(source->text), "arguments hold no NUL bytes");
    return false;
  }
  while (s.at < s.n_bytes && !s.failed) {
    read_command(&s);
    skip_blanks(&s, true);
  }
  if (!s.failed && !take_training(&s)) take_all(&s);
  return !s.failed;
}
