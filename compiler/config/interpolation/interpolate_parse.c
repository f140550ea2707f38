/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/buffer.h"
#include "compiler/document/scalar.h"
#include "compiler/config/interpolation/interpolate_parse.h"

#include <ctype.h>
#include <string.h>

static const char close_it[] = "close it, or write \\${ for the text itself";

/* Nesting of interpolations, lists and maps inside one text: the parser recurses this deep at most. */
enum { NESTING_MAX = 200, NAME_PARTS_MAX = 64, USUAL_OPS = 16 };

static bool parse_interpolation(nxc_parser *p);
static bool parse_element(nxc_parser *p);
static bool bad_character(nxc_parser *p);

static bool opens_at(const nxc_parser *parser, const char *at) {
  return parser->end - at >= 2 && at[0] == '$' &&
         ((at[1] == '{' && parser->marks.brace) || (at[1] == '<' && parser->marks.angle));
}

bool nxc_formula_needed(const char *text, size_t n_bytes, nxc_marks marks) {
  for (const char *c = text, *end = text + n_bytes;
       end - c >= 2 && (c = memchr(c, '$', (size_t)(end - c) - 1)); c++)
    if ((c[1] == '{' && marks.brace) || (c[1] == '<' && marks.angle)) return true;
  return false;
}

static void emit(nxc_parser *p, nxc_op_code code, size_t n, const char *from, const nxc_value *value) {
  if (p->n_ops == p->ops_capacity) {
    p->ops_capacity *= 2;
    p->ops =
        memcpy(nxc_arena_array(p->arena, p->ops_capacity, sizeof *p->ops), p->ops, p->n_ops * sizeof *p->ops);
  }
  p->ops[p->n_ops++] = (nxc_op){.code = code,
                                .n = (uint32_t)n,
                                .offset = (uint32_t)(from - p->text),
                                .length = (uint32_t)(p->at - from),
                                .value = value ? *value : (nxc_value){.kind = NXC_NULL}};
}

static void emit_text(nxc_parser *p, const char *text, size_t n_bytes) {
  nxc_value value = nxc_string_value(nxc_arena_strndup(p->arena, text, n_bytes), n_bytes);
  emit(p, NXC_OP_VALUE, 0, p->at, &value);
}

static void skip_blanks(nxc_parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t')) p->at++;
}

static bool deeper(nxc_parser *p) {
  if (++p->depth <= NESTING_MAX) return true;
  return nxc_parser_fail(p, p->at, NULL, "interpolations are nested more than 200 deep");
}

/* The pieces of a text: plain runs gathered in `plain`, interpolations between them. */
typedef struct pieces {
  nxc_buffer plain;
  size_t n;
  bool only_interpolation;
} pieces;

static void flush_plain(nxc_parser *p, pieces *so_far) {
  if (so_far->plain.n_bytes == 0) return;
  emit_text(p, so_far->plain.bytes, so_far->plain.n_bytes);
  so_far->plain.n_bytes = 0;
  so_far->only_interpolation = false;
  so_far->n++;
}

/* A run of backslashes and what it stands before. True when the text goes on; *done at the closing quote. */
static bool parse_backslashes(nxc_parser *p, char quote, pieces *so_far, bool *done) {
  size_t n = 0;
  while (p->at < p->end && *p->at == '\\') n++, p->at++;
  bool opens = opens_at(p, p->at), closes = quote && p->at < p->end && *p->at == quote;
  if (!opens && !closes) {
    nxc_buffer_repeat(&so_far->plain, "\\", n);
    return true;
  }
  nxc_buffer_repeat(&so_far->plain, "\\", n / 2);
  if (n % 2) {
    size_t n_literal = opens ? 2 : 1;
    nxc_buffer_put(&so_far->plain, p->at, n_literal);
    p->at += n_literal;
    return true;
  }
  if (closes) {
    p->at++;
    *done = true;
    return true;
  }
  flush_plain(p, so_far);
  so_far->only_interpolation = so_far->n++ == 0;
  return parse_interpolation(p);
}

/* Text up to the end, or up to `quote`. Leaves one item. */
static bool parse_text(nxc_parser *p, char quote) {
  const char *start = p->at;
  pieces so_far = {.plain = {.arena = p->arena}};
  bool done = false;
  while (!done && p->at < p->end) {
    const char *plain = p->at;
    while (p->at < p->end && *p->at != '\\' && !(quote && *p->at == quote) && !opens_at(p, p->at))
      p->at++;
    if (p->at > plain) nxc_buffer_put(&so_far.plain, plain, (size_t)(p->at - plain));
    if (p->at < p->end && !parse_backslashes(p, quote, &so_far, &done)) return false;
  }
  if (quote && !done) return nxc_parser_fail(p, start - 1, "close the quote", "this quote is never closed");
  flush_plain(p, &so_far);
  if (so_far.n == 0) emit_text(p, "", 0);
  if (so_far.n > 1 || (quote && so_far.only_interpolation)) emit(p, NXC_OP_CONCAT, so_far.n, start, NULL);
  return true;
}

/* What a reference or a call consists of before its end or colon. */
typedef struct head {
  nxc_buffer plain; /* key text not yet emitted */
  size_t n_parts;   /* emitted parts */
  bool is_name;     /* could be a resolver's name */
  size_t n_inner;   /* parts that are interpolations, and the places of their NXC_OP_KEY */
  size_t inner[NAME_PARTS_MAX];
} head;

static void flush_head(nxc_parser *p, head *so_far) {
  if (so_far->plain.n_bytes == 0) return;
  emit_text(p, so_far->plain.bytes, so_far->plain.n_bytes);
  so_far->plain.n_bytes = 0;
  so_far->n_parts++;
}

static bool is_id(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (text[i] != '_' && !isalpha((unsigned char)text[i]) && (i == 0 || !isdigit((unsigned char)text[i])))
      return false;
  return n > 0;
}

static bool parse_key(nxc_parser *p, head *so_far, char close) {
  if (opens_at(p, p->at)) {
    flush_head(p, so_far);
    const char *start = p->at;
    if (!parse_interpolation(p)) return false;
    if (so_far->n_inner < NAME_PARTS_MAX) so_far->inner[so_far->n_inner++] = p->n_ops;
    else so_far->is_name = false;
    emit(p, NXC_OP_KEY, 0, start, NULL);
    so_far->n_parts++;
    return true;
  }
  const char *start = p->at;
  while (p->at < p->end && *p->at && !strchr("\\{}()[]:. \t'\"", *p->at)) {
    if (close == '>' && *p->at == '>') break;
    if (p->at[0] == '$' && p->at + 1 < p->end && p->at[1] == '<' && p->marks.angle && p->at > start) break;
    p->at++;
  }
  size_t n = (size_t)(p->at - start);
  if (n == 0 && p->at == p->end) return nxc_parser_fail(p, p->at, close_it, "this is never closed");
  if (n == 0) return nxc_parser_fail(p, p->at, "write the key", "a key is missing here");
  so_far->is_name = so_far->is_name && is_id(start, n);
  nxc_buffer_put(&so_far->plain, start, n);
  return true;
}

static bool parse_bracket(nxc_parser *p, head *so_far, char close) {
  so_far->is_name = false;
  nxc_buffer_put(&so_far->plain, p->at++, 1);
  if (!parse_key(p, so_far, close)) return false;
  if (p->at == p->end || *p->at != ']') return nxc_parser_fail(p, p->at, NULL, "a ']' is missing here");
  nxc_buffer_put(&so_far->plain, p->at++, 1);
  return true;
}

static bool parse_head(nxc_parser *p, head *so_far, char close) {
  while (p->at < p->end && *p->at == '.') {
    so_far->is_name = false;
    nxc_buffer_put(&so_far->plain, p->at++, 1);
  }
  bool ok = p->at < p->end && *p->at == '[' ? parse_bracket(p, so_far, close) : parse_key(p, so_far, close);
  while (ok && p->at < p->end && (*p->at == '.' || *p->at == '[')) {
    if (*p->at == '[') {
      ok = parse_bracket(p, so_far, close);
    } else {
      nxc_buffer_put(&so_far->plain, p->at++, 1);
      ok = parse_key(p, so_far, close);
    }
  }
  if (!ok) return false;
  flush_head(p, so_far);
  if (so_far->n_parts > 1) emit(p, NXC_OP_CONCAT, so_far->n_parts, p->at, NULL);
  return true;
}

/* Elements up to `close`, which is eaten. *n receives their number. */
static bool parse_elements(nxc_parser *p, char close, size_t *n) {
  bool wanted = true; /* an element may stand here */
  *n = 0;
  for (;;) {
    skip_blanks(p);
    if (p->at == p->end) return nxc_parser_fail(p, p->at, NULL, "the text ends inside an interpolation");
    bool closes = *p->at == close, comma = *p->at == ',';
    if (closes && wanted && *n == 0) {
      p->at++;
      return true;
    }
    if ((closes || comma) && wanted) {
      emit_text(p, "", 0);
      p->formula->empty_argument = true;
      ++*n;
    }
    if (closes || comma) {
      p->at++;
      if (closes) return true;
      wanted = true;
      continue;
    }
    if (!wanted) return bad_character(p);
    if (!parse_element(p)) return false;
    wanted = false;
    ++*n;
  }
}

static bool parse_call(nxc_parser *p, const char *start, const head *name, char close) {
  if (!name->is_name)
    return nxc_parser_fail(p, p->at, "write '.' between keys",
                           "before ':' stands the name of a resolver: letters, digits, '_' and '.'");
  for (size_t i = 0; i < name->n_inner; i++) p->ops[name->inner[i]].code = NXC_OP_NAME;
  p->at++;
  size_t n;
  if (!parse_elements(p, close, &n)) return false;
  emit(p, NXC_OP_CALL, n, start, NULL);
  return true;
}

/* At `${` or `$<`. Leaves one item. */
static bool parse_interpolation(nxc_parser *p) {
  const char *start = p->at;
  char close = start[1] == '<' ? '>' : '}';
  head so_far = {.plain = {.arena = p->arena}, .is_name = true};
  if (!deeper(p)) return false;
  if (close == '>') p->formula->angle = true;
  p->at += 2;
  skip_blanks(p);
  if (p->at < p->end && *p->at == close)
    return nxc_parser_fail(p, start, NULL, "a key is missing between the brackets");
  if (!parse_head(p, &so_far, close)) return false;
  skip_blanks(p);
  if (p->at < p->end && *p->at == ':') {
    if (!parse_call(p, start, &so_far, close)) return false;
  } else {
    if (p->at == p->end || *p->at != close)
      return nxc_parser_fail(p, p->at < p->end ? p->at : start, close_it,
                             p->at == p->end ? "this interpolation is never closed"
                             : close == '}'  ? "a reference goes on with '.', '[' or '}'"
                                             : "a reference goes on with '.', '[' or '>'");
    p->at++;
    emit(p, NXC_OP_REFERENCE, 0, start, NULL);
  }
  p->depth--;
  return true;
}

static bool is_end(const nxc_parser *p) {
  return p->at == p->end;
}

static bool bad_character(nxc_parser *p) {
  if (is_end(p)) return nxc_parser_fail(p, p->at, NULL, "an argument is missing here");
  if (strchr("'\"[{", *p->at))
    return nxc_parser_fail(p, p->at, "put the whole argument in quotes", "',' is missing before this");
  size_t n_used;
  nxc_buffer_decode(p->at, (size_t)(p->end - p->at), &n_used);
  const char *message = nxc_arena_printf(p->arena, "the character %.*s cannot stand in an unquoted argument",
                                         (int)n_used, p->at);
  return nxc_parser_fail(p, p->at, "put the whole argument in quotes", message);
}

/* Unquoted words: one is typed, several are joined. */
static bool parse_words(nxc_parser *p) {
  const char *start = p->at;
  size_t n = 0;
  for (;;) {
    if (opens_at(p, p->at)) {
      if (!parse_interpolation(p)) return false;
      n++;
      continue;
    }
    nxc_syntax_word word;
    const char *at = p->at;
    if (!nxc_parser_word(p, true, &word)) return false;
    if (word.n_bytes == 0) break;
    bool alone = n == 0 && !opens_at(p, p->at);
    if (alone) { /* a value only when nothing follows */
      nxc_parser ahead = *p;
      nxc_syntax_word next;
      if (!nxc_parser_word(&ahead, true, &next)) return false;
      alone = next.n_bytes == 0;
    }
    if (alone) emit(p, NXC_OP_VALUE, 0, at, &word.value);
    else emit_text(p, word.text, word.n_bytes);
    n++;
  }
  if (n == 0) return bad_character(p);
  if (n > 1) emit(p, NXC_OP_CONCAT, n, start, NULL);
  return true;
}

static bool parse_map_key(nxc_parser *p) {
  const char *start = p->at;
  nxc_buffer joined = {.arena = p->arena};
  nxc_syntax_word word, first = {0};
  size_t n = 0;
  for (;; n++) {
    if (opens_at(p, p->at))
      return nxc_parser_fail(p, p->at, NULL, "a key inside {...} cannot be a reference");
    if (!nxc_parser_word(p, false, &word)) return false;
    if (word.n_bytes == 0) break;
    if (n == 0) first = word;
    nxc_buffer_put(&joined, word.text, word.n_bytes);
  }
  skip_blanks(p);
  if (n == 0 || p->at == p->end || *p->at != ':')
    return nxc_parser_fail(p, p->at, NULL, "inside {...} stand KEY: VALUE pairs with unquoted keys");
  p->at++;
  nxc_value key = n == 1 ? first.value : nxc_string_value(joined.bytes, joined.n_bytes);
  emit(p, NXC_OP_VALUE, 0, start, &key);
  return true;
}

static bool parse_map(nxc_parser *p, const char *start) {
  size_t n = 0;
  skip_blanks(p);
  while (p->at < p->end && (n > 0 || *p->at != '}')) {
    if (!parse_map_key(p)) return false;
    skip_blanks(p);
    if (!parse_element(p)) return false;
    n++;
    skip_blanks(p);
    if (p->at == p->end || *p->at != ',') break;
    p->at++;
    skip_blanks(p);
  }
  if (p->at == p->end || *p->at != '}') return nxc_parser_fail(p, p->at, NULL, "',' or '}' is missing here");
  p->at++;
  emit(p, NXC_OP_MAP, n, start, NULL);
  return true;
}

static bool parse_element(nxc_parser *p) {
  const char *start = p->at;
  if (is_end(p)) return nxc_parser_fail(p, p->at, NULL, "an argument is missing here");
  if (*p->at == '\'' || *p->at == '"') {
    p->at++;
    return parse_text(p, *start);
  }
  if (*p->at != '[' && *p->at != '{') return parse_words(p);
  if (!deeper(p)) return false;
  p->at++;
  if (*start == '{') {
    if (!parse_map(p, start)) return false;
  } else {
    size_t n;
    if (!parse_elements(p, ']', &n)) return false;
    emit(p, NXC_OP_LIST, n, start, NULL);
  }
  p->depth--;
  return true;
}

bool nxc_formula_parse(nxc_arena *arena, const char *text, size_t n_bytes, nxc_marks marks, bool element,
                       nxc_formula *formula, nxc_syntax_problem *problem) {
  nxc_op first[USUAL_OPS]; /* longer formulas move to the arena */
  *formula = (nxc_formula){0};
  nxc_parser p = {.arena = arena,
                  .text = text,
                  .at = text,
                  .end = text + n_bytes,
                  .marks = marks,
                  .ops = first,
                  .ops_capacity = USUAL_OPS,
                  .formula = formula,
                  .problem = problem};
  bool ok = element ? parse_element(&p) : parse_text(&p, '\0');
  if (ok && p.at != p.end) ok = bad_character(&p);
  if (p.ops == first && p.n_ops > 0)
    p.ops = memcpy(nxc_arena_array(arena, p.n_ops, sizeof *first), first, p.n_ops * sizeof *first);
  formula->ops = p.ops;
  formula->n_ops = p.n_ops;
  return ok;
}
