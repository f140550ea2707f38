/* SPDX-License-Identifier: Apache-2.0 */
/* Words of unquoted arguments. The longest match wins; among equals number, keyword, character, name. */
#include "compiler/document/scalar.h"
#include "compiler/config/interpolation/interpolate_parse.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static size_t digits_at(const char *at, const char *end) {
  size_t n = 0;
  while (at + n < end && (isdigit((unsigned char)at[n]) ||
                          (n > 0 && at[n] == '_' && at + n + 1 < end && isdigit((unsigned char)at[n + 1]))))
    n++;
  return n;
}

/* 0 | [1-9](_?[0-9])* */
static size_t whole_at(const char *at, const char *end) {
  if (at < end && *at == '0') return 1;
  return digits_at(at, end);
}

static size_t exponent_at(const char *at, const char *end) {
  if (at >= end || (*at != 'e' && *at != 'E')) return 0;
  size_t n = 1;
  if (at + n < end && (at[n] == '+' || at[n] == '-')) n++;
  size_t n_digits = digits_at(at + n, end);
  return n_digits ? n + n_digits : 0;
}

/* Bytes of the number at `at`; *is_float tells which kind. */
static size_t number_at(const char *at, const char *end, bool *is_float) {
  size_t sign = at < end && (*at == '+' || *at == '-');
  const char *p = at + sign;
  *is_float = true;
  if (end - p >= 3 && (strncasecmp(p, "inf", 3) == 0 || strncasecmp(p, "nan", 3) == 0)) return sign + 3;
  size_t n_whole = whole_at(p, end), n = n_whole;
  *is_float = false;
  if (p + n < end && p[n] == '.') {
    size_t n_fraction = digits_at(p + n + 1, end);
    if (n_whole || n_fraction) {
      n += 1 + n_fraction;
      *is_float = true;
    }
  }
  if (n == 0) return 0;
  size_t n_exponent = exponent_at(p + n, end);
  if (n_exponent) *is_float = true;
  return sign + n + n_exponent;
}

static size_t name_at(const char *at, const char *end) {
  size_t n = 0;
  while (at + n < end &&
         (at[n] == '_' || isalpha((unsigned char)at[n]) || (n > 0 && isdigit((unsigned char)at[n]))))
    n++;
  return n;
}

static size_t blanks_at(const char *at, const char *end) {
  size_t n = 0;
  while (at + n < end && (at[n] == ' ' || at[n] == '\t')) n++;
  return n;
}

static bool take_number(nxc_parser *parser, size_t n, bool is_float, nxc_syntax_word *word) {
  const char *at = parser->at, *problem = NULL;
  bool signed_text = *at == '+' || *at == '-';
  if (!is_float) {
    if (!nxc_integer_from_digits(parser->arena, at + signed_text, n - signed_text, 10, *at == '-',
                                 &word->value, &problem))
      return nxc_parser_fail(parser, at, NULL, problem);
    return true;
  }
  word->value = (nxc_value){.kind = NXC_FLOAT};
  const char *letters = at + signed_text;
  if (strncasecmp(letters, "inf", 3) == 0) word->value.number = *at == '-' ? -INFINITY : INFINITY;
  else if (strncasecmp(letters, "nan", 3) == 0) word->value.number = NAN;
  else nxc_float_from_text(parser->arena, at, n, &word->value.number);
  return true;
}

static void take_name(nxc_arena *arena, const char *at, size_t n, nxc_syntax_word *word) {
  word->value = nxc_string_value(nxc_arena_strndup(arena, at, n), n);
  if (n == 4 && strncasecmp(at, "null", 4) == 0) word->value = (nxc_value){.kind = NXC_NULL};
  if (n == 4 && strncasecmp(at, "true", 4) == 0) word->value = (nxc_value){.kind = NXC_BOOL, .boolean = true};
  if (n == 5 && strncasecmp(at, "false", 5) == 0)
    word->value = (nxc_value){.kind = NXC_BOOL, .boolean = false};
}

/* A run of escapes; the word's own text is the unescaped one. */
static size_t take_escapes(nxc_parser *parser, nxc_syntax_word *word) {
  const char *at = parser->at;
  size_t n = 0;
  while (at + n + 1 < parser->end && at[n] == '\\' && at[n + 1] && strchr("\\()[]{}:=, \t", at[n + 1]))
    n += 2;
  if (n == 0) return 0;
  char *text = nxc_arena_alloc(parser->arena, n / 2 + 1);
  for (size_t i = 0; i < n / 2; i++) text[i] = at[2 * i + 1];
  word->text = text;
  word->value = nxc_string_value(text, n / 2);
  return n;
}

bool nxc_parser_word(nxc_parser *parser, bool colon, nxc_syntax_word *word) {
  const char *at = parser->at, *end = parser->end;
  *word = (nxc_syntax_word){.text = at};
  size_t n_blanks = blanks_at(at, end), n;
  const char *after = at + n_blanks;
  bool is_float;
  bool closes_angle = after < end && *after == '>' && parser->marks.angle;
  if (after < end && (*after == ',' || *after == ']' || *after == '}' || closes_angle))
    return true; /* the end of the element, its blanks included */
  if (after < end && *after == ':') {
    if (!colon) return true;
    word->n_bytes = n_blanks + 1 + blanks_at(after + 1, end);
  } else if (n_blanks) {
    word->n_bytes = n_blanks;
  } else if ((n = number_at(at, end, &is_float)) > 0 && n >= name_at(at, end)) {
    word->n_bytes = n;
    if (!take_number(parser, n, is_float, word)) return false;
    parser->at += n;
    return true;
  } else if ((n = name_at(at, end)) > 0) {
    word->n_bytes = n;
    take_name(parser->arena, at, n, word);
    parser->at += n;
    return true;
  } else if ((n = take_escapes(parser, word)) > 0) {
    word->n_bytes = n / 2;
    parser->at += n;
    return true;
  } else if (at < end && *at && strchr("/-\\+.$%*@?|", *at)) {
    word->n_bytes = 1;
  } else {
    return true;
  }
  word->value = nxc_string_value(nxc_arena_strndup(parser->arena, at, word->n_bytes), word->n_bytes);
  parser->at += word->n_bytes;
  return true;
}

bool nxc_parser_fail(nxc_parser *parser, const char *at, const char *fix, const char *message) {
  *parser->problem =
      (nxc_syntax_problem){.offset = (size_t)(at - parser->text), .message = message, .fix = fix};
  return false;
}
