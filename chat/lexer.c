/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/lexer.h"

#include "chat/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BRACKETS = 200 };

typedef struct lexer {
  nxj_pool *pool;
  const char *text, *end, *at;
  const char *counted; /* up to here lines and columns are counted, in the pool's */
  bool at_line_start; /* the last tag ended with a line */
  nxj_token *tokens;
  size_t n;
} lexer;

static void stand_at_start(lexer *lex) {
  lex->counted = lex->text;
  lex->pool->line = lex->pool->column = 1;
}

/* Where the pool says that a failure is. */
static void stand(lexer *lex, const char *at) {
  if (at < lex->counted) stand_at_start(lex); /* on the way to a failure: not often */
  for (; lex->counted < at; lex->counted++) {
    bool begins = ((unsigned char)*lex->counted & 0xc0) != 0x80; /* a code point */
    lex->pool->column += begins;
    if (*lex->counted == '\n') lex->pool->line++, lex->pool->column = 1;
  }
}

static nxj_token *add(lexer *lex, nxj_token_kind kind, const char *text, size_t n_bytes) {
  stand(lex, text);
  lex->tokens = nxj_grow(lex->pool, lex->tokens, lex->n, sizeof *lex->tokens);
  nxj_token *token = &lex->tokens[lex->n++];
  *token = (nxj_token){.kind = kind, .line = lex->pool->line, .column = lex->pool->column, .text = text,
                       .n_bytes = n_bytes};
  return token;
}

static bool starts(const lexer *lex, const char *at, const char *word) {
  size_t n = strlen(word);
  return (size_t)(lex->end - at) >= n && memcmp(at, word, n) == 0;
}

static const char *skip_space(const lexer *lex, const char *at) {
  size_t n;
  while (at < lex->end && nxj_is_space(nxj_decode(at, (size_t)(lex->end - at), &n))) at += n;
  return at;
}

/* -- between tags ---------------------------------------------------------------------------------------- */

/* The text before a tag, less what the tag takes off it. */
static void add_data(lexer *lex, const char *begin, const char *tag, bool is_output, char control) {
  const char *end = tag;
  if (control == '-') {
    end = begin + nxj_strip(nxj_string(begin, (size_t)(tag - begin)), NULL, false, true).n_bytes;
  } else if (control != '+' && !is_output) {
    const char *line = memrchr(begin, '\n', (size_t)(tag - begin));
    const char *first = line ? line + 1 : begin;
    bool whole = line != NULL || lex->at_line_start;
    if (whole && nxj_strip(nxj_string(first, (size_t)(tag - first)), NULL, true, false).n_bytes == 0)
      end = first;
  }
  if (end > begin) add(lex, NXJ_TOKEN_DATA, begin, (size_t)(end - begin));
}

/* Behind the end of a tag that stands at `at` ("%}", "#}" or "}}"), with its sign before it. */
static const char *end_tag(lexer *lex, const char *at, char control, bool trims) {
  at += 2;
  if (control == '-') at = skip_space(lex, at);
  else if (control != '+' && trims && at < lex->end && *at == '\n') at++;
  lex->at_line_start = at[-1] == '\n';
  return at;
}

/* Behind the sign, if there is one, of a tag's end; NULL where no end with `close` stands at `at`. */
static const char *find_close(const lexer *lex, const char *at, const char *close, char *control) {
  *control = at < lex->end && (*at == '-' || (*at == '+' && close[0] != '}')) ? *at : 0;
  if (*control) at++;
  return starts(lex, at, close) ? at : NULL;
}

/* `inside` is behind the tag's own sign. */
static const char *skip_comment(lexer *lex, const char *tag, const char *inside) {
  const char *close = memmem(inside, (size_t)(lex->end - inside), "#}", 2);
  stand(lex, tag);
  if (close == NULL) nxj_fail(lex->pool, "the comment has no end");
  return end_tag(lex, close, close > inside ? close[-1] : 0, true);
}

/* "{% raw %}": behind the tag; NULL where another tag stands there. `word` is raw or endraw. */
static const char *raw_tag(lexer *lex, const char *tag, const char *word, char *control) {
  const char *at = tag + 2;
  *control = at < lex->end && (*at == '-' || *at == '+') ? *at : 0;
  at = skip_space(lex, at + (*control != 0));
  if (!starts(lex, at, word)) return NULL;
  at = skip_space(lex, at + strlen(word));
  char close_control;
  const char *close = find_close(lex, at, "%}", &close_control);
  return close ? end_tag(lex, close, close_control, word[0] == 'e') : NULL;
}

static const char *read_raw(lexer *lex, const char *tag, const char *inside) {
  char control;
  for (const char *at = inside; (at = memmem(at, (size_t)(lex->end - at), "{%", 2)) != NULL; at++) {
    bool at_line_start = lex->at_line_start;
    const char *behind = raw_tag(lex, at, "endraw", &control);
    if (behind == NULL) continue;
    bool after = lex->at_line_start;
    lex->at_line_start = at_line_start;
    add_data(lex, inside, at, false, control);
    lex->at_line_start = after;
    return behind;
  }
  stand(lex, tag);
  nxj_fail(lex->pool, "raw has no endraw");
}

/* -- within tags ----------------------------------------------------------------------------------------- */

static bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static const char *read_name(lexer *lex) {
  const char *at = lex->at;
  while (at < lex->end && (is_name_byte(*at) || is_digit(*at))) at++;
  nxj_token *token = add(lex, NXJ_TOKEN_NAME, lex->at, (size_t)(at - lex->at));
  token->text = nxj_copy(lex->pool, lex->at, token->n_bytes);
  return at;
}

static const char *digits_end(const lexer *lex, const char *at) {
  while (at < lex->end && (is_digit(*at) || (*at == '_' && at + 1 < lex->end && is_digit(at[1])))) at++;
  return at;
}

static const char *read_number(lexer *lex) {
  const char *at = digits_end(lex, lex->at);
  bool is_float = false;
  if (at + 1 < lex->end && *at == '.' && is_digit(at[1])) is_float = true, at = digits_end(lex, at + 1);
  if (at < lex->end && (*at == 'e' || *at == 'E')) {
    const char *power = at + 1;
    if (power < lex->end && (*power == '+' || *power == '-')) power++;
    if (power < lex->end && is_digit(*power)) is_float = true, at = digits_end(lex, power);
  }
  char digits[64];
  size_t n = 0;
  nxj_token *token = add(lex, is_float ? NXJ_TOKEN_FLOAT : NXJ_TOKEN_INT, lex->at, (size_t)(at - lex->at));
  if (at < lex->end && (is_name_byte(*at) || is_digit(*at))) nxj_fail(lex->pool, "this is no number");
  for (const char *from = lex->at; from < at; from++) {
    if (n + 1 == sizeof digits) nxj_fail(lex->pool, "the number is too long");
    if (*from != '_') digits[n++] = *from;
  }
  digits[n] = '\0';
  errno = 0;
  token->value = is_float ? nxj_float(strtod(digits, NULL)) : nxj_int(strtoll(digits, NULL, 10));
  if (!is_float && errno != 0) nxj_fail(lex->pool, "the number is too large");
  return at;
}

static uint32_t read_code(lexer *lex, const char **at, int n_digits, unsigned base) {
  uint32_t code = 0;
  int n = 0;
  for (; n < n_digits && *at < lex->end; n++, (*at)++) {
    char c = **at, lower = (char)(c | 0x20);
    unsigned digit = is_digit(c)                    ? (unsigned)(c - '0')
                     : lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a') + 10
                                                    : 99;
    if (digit >= base) break;
    code = code * base + digit;
  }
  bool whole = base == 8 || n == n_digits;
  if (!whole || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    nxj_fail(lex->pool, "the escape is no code point");
  return code;
}

/* Behind the backslash. */
static const char *read_escape(lexer *lex, const char *at, nxj_buffer *text) {
  static const char letters[] = "abfnrtv\\'\"", codes[] = "\a\b\f\n\r\t\v\\'\"";
  const char *letter = strchr(letters, *at);
  char bytes[4];
  uint32_t code;
  if (*at == '\n') return at + 1;
  if (letter && *letter) {
    nxj_put(lex->pool, text, &codes[letter - letters], 1);
    return at + 1;
  }
  if (*at == 'N') nxj_fail(lex->pool, "\\N{...} in a text is not covered");
  if (*at == 'x' || *at == 'u' || *at == 'U') {
    int n_digits = *at == 'x' ? 2 : *at == 'u' ? 4 : 8;
    at++, code = read_code(lex, &at, n_digits, 16);
  } else if (*at >= '0' && *at <= '7') {
    code = read_code(lex, &at, 3, 8);
  } else {
    nxj_put_text(lex->pool, text, "\\");
    return at;
  }
  nxj_put(lex->pool, text, bytes, nxj_encode(code, bytes));
  return at;
}

static const char *read_string(lexer *lex) {
  nxj_token *token = add(lex, NXJ_TOKEN_STRING, lex->at, 1);
  nxj_buffer text = {0};
  const char quote = *lex->at, *at = lex->at + 1;
  while (at < lex->end && *at != quote) {
    if (*at == '\\' && at + 1 < lex->end) {
      at = read_escape(lex, at + 1, &text);
    } else {
      nxj_put(lex->pool, &text, at, 1);
      at++;
    }
  }
  if (at == lex->end) nxj_fail(lex->pool, "the text has no closing %c", quote);
  token->value = nxj_buffer_value(lex->pool, &text);
  return at + 1;
}

static const char *read_sign(lexer *lex) {
  static const char *const signs[] = {"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "(",
                                      ")",  "[",  "]",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ",", ";"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
    if (!starts(lex, lex->at, signs[i])) continue;
    size_t n = strlen(signs[i]);
    add(lex, NXJ_TOKEN_SIGN, lex->at, n)->text = signs[i];
    return lex->at + n;
  }
  stand(lex, lex->at);
  nxj_fail(lex->pool, "a template has no sign '%c'", *lex->at);
}

static const char *read_token(lexer *lex) {
  if (is_name_byte(*lex->at)) return read_name(lex);
  if (is_digit(*lex->at)) return read_number(lex);
  if (*lex->at == '\'' || *lex->at == '"') return read_string(lex);
  return read_sign(lex);
}

/* From behind "{%" or "{{" to behind its end. Within brackets no end is looked for, so that }} may close two
 * dicts. */
static void read_tag(lexer *lex, const char *tag, bool is_output) {
  size_t n_brackets = 0;
  char control;
  for (;;) {
    lex->at = skip_space(lex, lex->at);
    if (lex->at == lex->end) break;
    const char *close = n_brackets == 0 ? find_close(lex, lex->at, is_output ? "}}" : "%}", &control) : NULL;
    if (close) {
      add(lex, is_output ? NXJ_TOKEN_OUTPUT_END : NXJ_TOKEN_BLOCK_END, lex->at, 1);
      lex->at = end_tag(lex, close, control, !is_output);
      return;
    }
    if (strchr("([{", *lex->at)) n_brackets++;
    if (strchr(")]}", *lex->at) && n_brackets > 0) n_brackets--;
    if (n_brackets > MOST_BRACKETS) break;
    lex->at = read_token(lex);
  }
  stand(lex, tag);
  nxj_fail(lex->pool, n_brackets > MOST_BRACKETS ? "the tag has too many brackets" : "the tag has no end");
}

/* The next "{%", "{{" or "{#"; NULL: none. */
static const char *find_tag(const lexer *lex, const char *at) {
  for (; (at = memchr(at, '{', (size_t)(lex->end - at))) != NULL; at++)
    if (at + 1 < lex->end && (at[1] == '%' || at[1] == '{' || at[1] == '#')) return at;
  return NULL;
}

static void read_piece(lexer *lex, const char *tag) {
  const char *begin = lex->at;
  bool is_output = tag[1] == '{';
  char control = tag + 2 < lex->end && (tag[2] == '-' || tag[2] == '+') ? tag[2] : 0;
  add_data(lex, begin, tag, is_output, control);
  if (tag[1] == '#') {
    lex->at = skip_comment(lex, tag, tag + 2 + (control != 0));
    return;
  }
  const char *inside = is_output ? NULL : raw_tag(lex, tag, "raw", &control);
  if (inside) {
    lex->at = read_raw(lex, tag, inside);
    return;
  }
  add(lex, is_output ? NXJ_TOKEN_OUTPUT_BEGIN : NXJ_TOKEN_BLOCK_BEGIN, tag, 2);
  lex->at = tag + 2 + (control != 0);
  read_tag(lex, tag, is_output);
}

/* Line ends as \n; one at the very end is not part of the template. */
static nxj_value normalize(nxj_pool *pool, const char *text, size_t n_bytes) {
  char *copy = nxj_alloc(pool, n_bytes + 1);
  size_t n = 0;
  for (size_t i = 0; i < n_bytes; i++) {
    if (text[i] == '\r' && i + 1 < n_bytes && text[i + 1] == '\n') continue;
    copy[n++] = text[i] == '\r' ? '\n' : text[i];
  }
  if (n > 0 && copy[n - 1] == '\n') n--;
  copy[n] = '\0';
  return nxj_string(copy, n);
}

nxj_token *nxj_tokens(nxj_pool *pool, const char *text, size_t n_bytes) {
  nxj_value source = normalize(pool, text, n_bytes);
  lexer lex = {.pool = pool, .text = source.text, .end = source.text + source.n_bytes, .at = source.text,
               .at_line_start = true};
  stand_at_start(&lex);
  for (const char *tag; (tag = find_tag(&lex, lex.at)) != NULL;) read_piece(&lex, tag);
  if (lex.at < lex.end) add(&lex, NXJ_TOKEN_DATA, lex.at, (size_t)(lex.end - lex.at));
  add(&lex, NXJ_TOKEN_END, lex.end, 0);
  return lex.tokens;
}
