/* SPDX-License-Identifier: Apache-2.0 */
/* Relations of signatures, as "seq_start+S<=Q" or "zigzag=0|S%(2*zigzag)=0", over ranges: an attribute may be
 * another number on every rank.
 *
 *     relation    comparison | comparison | ...
 *     comparison  sum (= or <= or <) sum
 *     sum         product (+ or -) product ...      product   factor (* or / or %) factor ...
 *     factor      number, letter, #, attribute, inputs, (sum) or (sum ? sum : sum) */
#include "schema/op_check.h"

#include <assert.h>
#include <string.h>

/* What a part of a relation may be. Not known: it has a dimension that no operand has. Not good: it
 * overflows, or is of a kind that is defined for one number only and there are several. */
typedef struct range {
  int64_t least, greatest;
  bool known, good;
} range;

typedef struct reader {
  const nx_op_facts *facts;
  const char *at;
} reader;

static const range unknown = {.good = true}, bad = {.known = true};

static range number(int64_t value) {
  return (range){value, value, true, true};
}

static bool is_one(const range *x) {
  return x->least == x->greatest;
}

static range read_sum(reader *r);

/* (sum) or (sum ? sum : sum), behind the bracket. */
static range read_choice(reader *r) {
  range value = read_sum(r);
  if (*r->at == '?') {
    r->at++;
    range first = read_sum(r);
    assert(*r->at == ':');
    r->at++;
    range second = read_sum(r);
    value = value.known && value.good && is_one(&value) ? value.least ? first : second : bad;
  }
  assert(*r->at == ')');
  r->at++;
  return value;
}

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9');
}

static range read_name(reader *r) {
  const nx_op_facts *facts = r->facts;
  size_t n_chars = 1;
  while (is_name_char(r->at[n_chars])) n_chars++;
  const char *name = r->at;
  r->at += n_chars;
  if (n_chars == 1) {
    int64_t size = facts->of[(unsigned char)*name & 127];
    return size ? number(size) : unknown;
  }
  uint32_t index = nx_op_find_attr(facts->row, name, n_chars);
  if (index < NX_MAX_ATTRS) return (range){facts->least[index], facts->greatest[index], true, true};
  assert(n_chars == strlen("inputs") && memcmp(name, "inputs", n_chars) == 0);
  return number(facts->n_in);
}

static range read_factor(reader *r) {
  if (*r->at == '(') {
    r->at++;
    return read_choice(r);
  }
  if (*r->at == '#') {
    r->at++;
    return number(r->facts->group_size);
  }
  if (*r->at < '0' || *r->at > '9') return read_name(r);
  int64_t value = 0;
  for (; *r->at >= '0' && *r->at <= '9'; r->at++) value = 10 * value + (*r->at - '0');
  return number(value);
}

/* Numbers here are never negative, so the extremes of a product are those of its factors. */
static range multiply(const range *a, const range *b) {
  range product = {.known = true, .good = a->least >= 0 && b->least >= 0};
  if (__builtin_mul_overflow(a->least, b->least, &product.least) ||
      __builtin_mul_overflow(a->greatest, b->greatest, &product.greatest))
    return bad;
  return product;
}

static range divide(const range *a, const range *b, bool remainder) {
  if (!is_one(a) || !is_one(b) || b->least <= 0) return bad;
  return number(remainder ? a->least % b->least : a->least / b->least);
}

static range combine(char sign, const range *a, const range *b) {
  range sum = {.known = true, .good = true};
  if (!a->known || !b->known) return unknown;
  if (!a->good || !b->good) return bad;
  if (sign == '*') return multiply(a, b);
  if (sign == '/' || sign == '%') return divide(a, b, sign == '%');
  int64_t low = sign == '+' ? b->least : b->greatest, high = sign == '+' ? b->greatest : b->least;
  bool overflow = sign == '+' ? __builtin_add_overflow(a->least, low, &sum.least) ||
                                    __builtin_add_overflow(a->greatest, high, &sum.greatest)
                              : __builtin_sub_overflow(a->least, low, &sum.least) ||
                                    __builtin_sub_overflow(a->greatest, high, &sum.greatest);
  return overflow ? bad : sum;
}

static range read_product(reader *r) {
  range value = read_factor(r);
  while (*r->at == '*' || *r->at == '/' || *r->at == '%') {
    char sign = *r->at++;
    range next = read_factor(r);
    value = combine(sign, &value, &next);
  }
  return value;
}

static range read_sum(reader *r) {
  range value = read_product(r);
  while (*r->at == '+' || *r->at == '-') {
    char sign = *r->at++;
    range next = read_product(r);
    value = combine(sign, &value, &next);
  }
  return value;
}

static bool read_comparison(reader *r) {
  range left = read_sum(r);
  bool less = *r->at == '<', equal = r->at[less ? 1 : 0] == '=';
  assert(less || equal);
  r->at += (less ? 1 : 0) + (equal ? 1 : 0);
  range right = read_sum(r);
  if (!left.known || !right.known) return true;
  if (!left.good || !right.good) return false;
  if (less) return left.greatest < right.least || (equal && left.greatest == right.least);
  return is_one(&left) && is_one(&right) && left.least == right.least;
}

bool nx_op_relations_hold(const nx_op_facts *facts, const char *relations, const char **broken,
                          uint32_t *n_chars) {
  reader r = {facts, relations};
  for (;;) {
    while (*r.at == ' ') r.at++;
    if (*r.at == '\0') return true;
    *broken = r.at;
    bool holds = read_comparison(&r);
    while (*r.at == '|') {
      r.at++;
      holds = read_comparison(&r) || holds;
    }
    *n_chars = (uint32_t)(r.at - *broken);
    if (!holds) return false;
  }
}

bool nx_op_number(const nx_op_facts *facts, const char *text, const char **end, int64_t *number_out) {
  reader r = {facts, text};
  range value = read_factor(&r);
  *end = r.at;
  *number_out = value.least;
  return value.known && value.good && is_one(&value);
}
