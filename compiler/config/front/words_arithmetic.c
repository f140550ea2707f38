/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/words_shell.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

/* Operators by what binds more; a longer one stands before its own beginning. */
static const struct {
  const char *text;
  int binds;
} operators[] = {{"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<=", 4}, {">=", 4}, {"<<", 5}, {">>", 5},
                 {"<", 4},  {">", 4},  {"+", 6},  {"-", 6},  {"**", 8}, {"*", 7},  {"/", 7},  {"%", 7}};
enum { N_OPERATORS = sizeof operators / sizeof *operators };

typedef struct sum {
  const char *at;
  bool ok;
  int depth;
} sum;

static void skip(sum *r) {
  while (isspace((unsigned char)*r->at)) r->at++;
}

static int64_t read_binary(sum *r, int binds);

static int64_t read_number(sum *r) {
  int64_t value = 0;
  r->ok = r->ok && isdigit((unsigned char)*r->at) && (r->at[0] != '0' || !isalnum((unsigned char)r->at[1]));
  while (r->ok && isdigit((unsigned char)*r->at))
    r->ok = !__builtin_mul_overflow(value, (int64_t)10, &value) &&
            !__builtin_add_overflow(value, (int64_t)(*r->at++ - '0'), &value);
  return value;
}

static int64_t read_operand(sum *r) {
  skip(r);
  if (++r->depth > DEPTH_MAX) r->ok = false;
  char sign = strchr("+-!(", *r->at) && *r->at != '\0' ? *r->at++ : '\0';
  int64_t value = 0;
  if (!r->ok) return 0;
  if (sign == '(') {
    value = read_binary(r, 1);
    skip(r);
    r->ok = r->ok && *r->at == ')';
    if (r->ok) r->at++;
  } else {
    value = sign ? read_operand(r) : read_number(r);
    if (sign == '-') r->ok = r->ok && !__builtin_sub_overflow((int64_t)0, value, &value);
    if (sign == '!') value = !value;
  }
  r->depth--;
  return value;
}

static int64_t power(sum *r, int64_t base, int64_t exponent) {
  int64_t value = 1;
  r->ok = r->ok && exponent >= 0 && exponent < 64;
  for (int64_t i = 0; r->ok && i < exponent; i++) r->ok = !__builtin_mul_overflow(value, base, &value);
  return value;
}

static int64_t apply(sum *r, const char *text, int64_t a, int64_t b) {
  int64_t value = 0;
  if (strcmp(text, "+") == 0) r->ok = r->ok && !__builtin_add_overflow(a, b, &value);
  else if (strcmp(text, "-") == 0) r->ok = r->ok && !__builtin_sub_overflow(a, b, &value);
  else if (strcmp(text, "*") == 0) r->ok = r->ok && !__builtin_mul_overflow(a, b, &value);
  else if (strcmp(text, "**") == 0) value = power(r, a, b);
  else if (strchr("/%", *text)) {
    r->ok = r->ok && b != 0 && !(a == INT64_MIN && b == -1);
    if (r->ok) value = *text == '/' ? a / b : a % b;
  } else if (strcmp(text, "<<") == 0 || strcmp(text, ">>") == 0) {
    r->ok = r->ok && a >= 0 && a < INT32_MAX && b >= 0 && b < 31;
    if (r->ok) value = *text == '<' ? a << b : a >> b;
  } else if (strcmp(text, "==") == 0) value = a == b;
  else if (strcmp(text, "!=") == 0) value = a != b;
  else if (strcmp(text, "<=") == 0) value = a <= b;
  else if (strcmp(text, ">=") == 0) value = a >= b;
  else if (strcmp(text, "<") == 0) value = a < b;
  else if (strcmp(text, ">") == 0) value = a > b;
  else value = *text == '&' ? a && b : a || b;
  return value;
}

static int64_t read_binary(sum *r, int binds) {
  int64_t value = read_operand(r);
  while (r->ok) {
    skip(r);
    size_t i = 0;
    while (i < N_OPERATORS && strncmp(r->at, operators[i].text, strlen(operators[i].text)) != 0) i++;
    if (i == N_OPERATORS || operators[i].binds < binds) break;
    r->at += strlen(operators[i].text);
    int64_t right = read_binary(r, operators[i].binds + (operators[i].binds < 8));
    value = apply(r, operators[i].text, value, right);
  }
  return value;
}

bool nxc_shell_arithmetic(const char *text, int64_t *value) {
  sum r = {.at = text, .ok = true};
  *value = read_binary(&r, 1);
  skip(&r);
  return r.ok && *r.at == '\0';
}
