/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of a shell: 64-bit integers, names of variables, and assignments to them. */
#include "compiler/config/front/shell/shell.h"

#include <ctype.h>
#include <string.h>

/* Operators by what binds more; a longer one stands before its own beginning. */
static const struct {
  const char *text;
  int binds;
} operators[] = {{"||", 3}, {"&&", 4}, {"==", 8}, {"!=", 8}, {"<=", 9}, {">=", 9}, {"<<", 10}, {">>", 10},
                 {"<", 9},  {">", 9},  {"|", 5},  {"^", 6},  {"&", 7},  {"+", 11}, {"-", 11},  {"**", 13},
                 {"*", 12}, {"/", 12}, {"%", 12}};
enum { N_OPERATORS = sizeof operators / sizeof *operators, POWER = 13 };

typedef struct sum {
  nxc_shell *s;
  const char *at;
  size_t origin;
  bool ok;      /* it is arithmetic, and a value of it can be told */
  bool skipped; /* what is read is not computed: behind && and in the other half of ?: */
  int depth;
} sum;

static int64_t read_assigned(sum *r);
static int64_t read_chosen(sum *r);

static void skip(sum *r) {
  while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take(sum *r, const char *sign) {
  skip(r);
  if (strncmp(r->at, sign, strlen(sign)) != 0) return false;
  r->at += strlen(sign);
  return true;
}

/* Decimal, 0x, 0 and BASE#. */
static int64_t read_number(sum *r) {
  uint64_t value = 0, base = 10;
  if (r->at[0] == '0' && (r->at[1] == 'x' || r->at[1] == 'X')) base = 16, r->at += 2;
  else if (r->at[0] == '0') base = 8;
  for (; isalnum((unsigned char)*r->at) || *r->at == '#'; r->at++) {
    if (*r->at == '#') {
      r->ok = r->ok && base == 10 && value >= 2 && value <= 36;
      base = value, value = 0;
      continue;
    }
    unsigned char c = (unsigned char)*r->at;
    uint64_t digit = isdigit(c) ? (uint64_t)(c - '0') : (uint64_t)(tolower(c) - 'a') + 10;
    r->ok = r->ok && digit < base;
    value = value * base + digit;
  }
  return (int64_t)value;
}

static int64_t value_of(sum *r, const char *name) {
  nxc_text text;
  int64_t value = 0;
  if (r->skipped) return 0;
  if (!nxc_shell_lookup(r->s, name, r->origin, &text)) r->ok = false;
  else if (text.n_bytes > 0) r->ok = nxc_shell_sum(r->s, &text, r->origin, &value) && r->ok;
  return value;
}

static void assign(sum *r, const char *name, int64_t value) {
  if (r->skipped) return;
  if (!r->ok) {
    nxc_shell_set_unknown(r->s, name, r->origin);
    return;
  }
  const char *shown = nxc_arena_printf(r->s->arena, "%lld", (long long)value);
  nxc_shell_set_text(r->s, name, nxc_text_from(r->s->arena, shown, strlen(shown), r->origin, 0), r->origin);
}

static int64_t apply(sum *r, const char *text, int64_t a, int64_t b) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
  if (strcmp(text, "+") == 0) return (int64_t)(x + y);
  if (strcmp(text, "-") == 0) return (int64_t)(x - y);
  if (strcmp(text, "*") == 0) return (int64_t)(x * y);
  if (strcmp(text, "/") == 0 || strcmp(text, "%") == 0) {
    if (b == 0) r->ok = r->ok && r->skipped;
    if (b == 0) return 0;
    if (b == -1) return *text == '/' ? (int64_t)(0 - x) : 0;
    return *text == '/' ? a / b : a % b;
  }
  if (strcmp(text, "**") == 0) {
    uint64_t value = 1;
    r->ok = r->ok && b >= 0;
    for (int64_t i = 0; i < b && i < 64; i++) value *= x;
    if (b >= 64 && a != 0 && a != 1 && a != -1) value = x % 2 == 0 ? 0 : value;
    r->ok = r->ok && (b < 64 || x % 2 == 0 || a == 1);
    return (int64_t)value;
  }
  if (strcmp(text, "<<") == 0) return (int64_t)(x << (y & 63));
  if (strcmp(text, ">>") == 0) return a >= 0 ? (int64_t)(x >> (y & 63)) : (int64_t)~(~x >> (y & 63));
  if (strcmp(text, "==") == 0) return a == b;
  if (strcmp(text, "!=") == 0) return a != b;
  if (strcmp(text, "<=") == 0) return a <= b;
  if (strcmp(text, ">=") == 0) return a >= b;
  if (strcmp(text, "<") == 0) return a < b;
  if (strcmp(text, ">") == 0) return a > b;
  if (strcmp(text, "&") == 0) return a & b;
  if (strcmp(text, "|") == 0) return a | b;
  if (strcmp(text, "^") == 0) return a ^ b;
  return *text == '&' ? a && b : a || b;
}

/* A name's value, and = += ++ and their like behind it. */
static int64_t read_name(sum *r) {
  static const char *const signs[] = {"**=", "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};
  size_t n_name = strspn(r->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
  const char *name = nxc_arena_strndup(r->s->arena, r->at, n_name);
  r->at += n_name;
  skip(r);
  if (*r->at == '[') {
    r->ok = false;
    return 0;
  }
  if (*r->at == '=' && r->at[1] != '=') {
    r->at++;
    int64_t value = read_chosen(r);
    assign(r, name, value);
    return value;
  }
  int64_t before = value_of(r, name), value = before;
  if (take(r, "++")) assign(r, name, (int64_t)((uint64_t)before + 1));
  else if (take(r, "--")) assign(r, name, (int64_t)((uint64_t)before - 1));
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
    if (!take(r, signs[i])) continue;
    const char *sign = nxc_arena_strndup(r->s->arena, signs[i], strlen(signs[i]) - 1);
    value = apply(r, sign, before, read_chosen(r));
    assign(r, name, value);
    break;
  }
  return value;
}

static int64_t read_operand(sum *r) {
  enum { DEPTH_MAX = 64 };
  int64_t value = 0;
  skip(r);
  if (++r->depth > DEPTH_MAX) r->ok = false;
  if (!r->ok && r->depth > DEPTH_MAX) return 0;
  char sign = *r->at;
  bool step = (sign == '+' || sign == '-') && r->at[1] == sign &&
              (isalpha((unsigned char)r->at[2]) || r->at[2] == '_');
  if (step) {
    r->at += 2;
    size_t n_name = strspn(r->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    const char *name = nxc_arena_strndup(r->s->arena, r->at, n_name);
    r->at += n_name;
    value = apply(r, "+", value_of(r, name), sign == '+' ? 1 : -1);
    assign(r, name, value);
  } else if (sign == '(') {
    r->at++;
    value = read_assigned(r);
    r->ok = take(r, ")") && r->ok;
  } else if (sign != '\0' && strchr("+-!~", sign)) {
    r->at++;
    value = read_operand(r);
    if (sign == '-') value = (int64_t)(0 - (uint64_t)value);
    if (sign == '!') value = !value;
    if (sign == '~') value = ~value;
  } else if (isdigit((unsigned char)sign)) {
    value = read_number(r);
  } else if (isalpha((unsigned char)sign) || sign == '_') {
    value = read_name(r);
  } else {
    r->ok = false;
  }
  r->depth--;
  return value;
}

static int64_t read_binary(sum *r, int binds) {
  int64_t value = read_operand(r);
  for (;;) {
    skip(r);
    size_t i = 0, n_sign = 0;
    while (i < N_OPERATORS && strncmp(r->at, operators[i].text, strlen(operators[i].text)) != 0) i++;
    if (i == N_OPERATORS || operators[i].binds < binds || r->depth > 60) return value;
    if (strncmp(r->at, "**", 2) == 0) i = 15;
    n_sign = strlen(operators[i].text);
    if (r->at[n_sign] == '=' && operators[i].binds != 8 && operators[i].binds != 9) return value;
    r->at += n_sign;
    bool before = r->skipped;
    if (strcmp(operators[i].text, "&&") == 0) r->skipped = before || !value;
    if (strcmp(operators[i].text, "||") == 0) r->skipped = before || value;
    r->depth++;
    int64_t right = read_binary(r, operators[i].binds + (operators[i].binds < POWER));
    r->depth--;
    value = apply(r, operators[i].text, value, right);
    r->skipped = before;
  }
}

/* A ? B : C */
static int64_t read_chosen(sum *r) {
  int64_t value = read_binary(r, 1);
  if (!take(r, "?")) return value;
  bool before = r->skipped;
  if (++r->depth > 60) r->ok = false;
  r->skipped = before || !value;
  int64_t yes = r->ok ? read_assigned(r) : 0;
  r->ok = take(r, ":") && r->ok;
  r->skipped = before || value;
  int64_t no = r->ok ? read_chosen(r) : 0;
  r->skipped = before;
  r->depth--;
  return value ? yes : no;
}

/* With commas. */
static int64_t read_assigned(sum *r) {
  int64_t value = read_chosen(r);
  while (r->depth < 60 && take(r, ",")) value = read_chosen(r);
  return value;
}

bool nxc_shell_sum(nxc_shell *s, const nxc_text *text, size_t at, int64_t *value) {
  *value = 0;
  if (nxc_text_any(text, NXC_MARK_UNKNOWN) || !nxc_shell_enter(s, at)) return false;
  sum r = {.s = s, .at = nxc_text_string(s->arena, text), .origin = at, .ok = true};
  skip(&r);
  if (*r.at != '\0') *value = read_assigned(&r);
  skip(&r);
  s->depth--;
  return r.ok && *r.at == '\0';
}
