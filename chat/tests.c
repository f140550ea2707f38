/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: what stands behind `is`. */
#include "chat/run.h"

#include <string.h>

/* A test of the value's kind: bit k is set where kind k passes. */
static nxj_value is_among(nxj_value value, unsigned kinds) {
  return nxj_bool(kinds >> value.kind & 1);
}

enum {
  LISTS = 1u << NXJ_LIST | 1u << NXJ_TUPLE,
  NUMBERS = 1u << NXJ_BOOL | 1u << NXJ_INT | 1u << NXJ_FLOAT,
  WALKED = LISTS | 1u << NXJ_ITERATOR | 1u << NXJ_STRING | 1u << NXJ_DICT | 1u << NXJ_UNDEFINED
};

#define NXJ_KIND_TEST(name, kinds)                                                                           \
  static nxj_value test_##name(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {              \
    (void)run, (void)arguments;                                                                              \
    return is_among(value, kinds);                                                                           \
  }

NXJ_KIND_TEST(undefined, 1u << NXJ_UNDEFINED)
NXJ_KIND_TEST(defined, ~(1u << NXJ_UNDEFINED))
NXJ_KIND_TEST(none, 1u << NXJ_NONE)
NXJ_KIND_TEST(boolean, 1u << NXJ_BOOL)
NXJ_KIND_TEST(integer, 1u << NXJ_INT)
NXJ_KIND_TEST(float, 1u << NXJ_FLOAT)
NXJ_KIND_TEST(number, NUMBERS)
NXJ_KIND_TEST(string, 1u << NXJ_STRING)
NXJ_KIND_TEST(mapping, 1u << NXJ_DICT)
NXJ_KIND_TEST(iterable, WALKED)
NXJ_KIND_TEST(sequence, WALKED &~(1u << NXJ_ITERATOR))
NXJ_KIND_TEST(callable, 1u << NXJ_CALLABLE)

static nxj_value test_true(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)run, (void)arguments;
  return nxj_bool(value.kind == NXJ_BOOL && value.truth);
}

static nxj_value test_false(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)run, (void)arguments;
  return nxj_bool(value.kind == NXJ_BOOL && !value.truth);
}

static nxj_value test_equal(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return nxj_bool(nxj_equal(run->pool, value, arguments->given[0]));
}

static nxj_value test_unequal(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return nxj_bool(!nxj_equal(run->pool, value, arguments->given[0]));
}

/* Of values that are one each (none, true, false) what templates ask; of others whether they are equal and
 * alike. */
static nxj_value test_sameas(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value other = arguments->given[0];
  return nxj_bool(value.kind == other.kind && nxj_equal(run->pool, value, other));
}

static int order_of(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_need_defined(run, value);
  nxj_need_defined(run, arguments->given[0]);
  return nxj_compare(run->pool, value, arguments->given[0]);
}

static nxj_value test_less(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return nxj_bool(order_of(run, value, arguments) < 0);
}

static nxj_value test_at_most(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return nxj_bool(order_of(run, value, arguments) <= 0);
}

static nxj_value test_greater(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return nxj_bool(order_of(run, value, arguments) > 0);
}

static nxj_value test_at_least(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return nxj_bool(order_of(run, value, arguments) >= 0);
}

static nxj_value test_in(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return nxj_bool(nxj_contains(run->pool, arguments->given[0], value));
}

static bool divides(nxj_run *run, int64_t number, int64_t by) {
  if (by == 0) nxj_fail(run->pool, "division by zero");
  return by == -1 || number % by == 0;
}

static nxj_value test_odd(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_bool(!divides(run, nxj_integer(run->pool, value, "what is odd"), 2));
}

static nxj_value test_even(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_bool(divides(run, nxj_integer(run->pool, value, "what is even"), 2));
}

static nxj_value test_divisible(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  int64_t number = nxj_integer(run->pool, value, "what is divided");
  return nxj_bool(divides(run, number, nxj_integer(run->pool, arguments->given[0], "the divisor")));
}

static nxj_value is_cased(nxj_run *run, nxj_value value, nxj_case form) {
  nxj_value text = nxj_str(run->pool, value);
  bool cased =
      nxj_cased(run->pool, text, NXJ_LOWER).n_bytes > 0 &&
      !nxj_equal(run->pool, nxj_cased(run->pool, text, NXJ_LOWER), nxj_cased(run->pool, text, NXJ_UPPER));
  return nxj_bool(cased && nxj_equal(run->pool, text, nxj_cased(run->pool, text, form)));
}

static nxj_value test_lower(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return is_cased(run, value, NXJ_LOWER);
}

static nxj_value test_upper(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return is_cased(run, value, NXJ_UPPER);
}

const nxj_row nxj_tests[] = {
    {"boolean", "", test_boolean},
    {"callable", "", test_callable},
    {"defined", "", test_defined},
    {"divisibleby", "num!", test_divisible},
    {"eq", "other!", test_equal},
    {"equalto", "other!", test_equal},
    {"==", "other!", test_equal},
    {"even", "", test_even},
    {"false", "", test_false},
    {"float", "", test_float},
    {"ge", "other!", test_at_least},
    {">=", "other!", test_at_least},
    {"greaterthan", "other!", test_greater},
    {"gt", "other!", test_greater},
    {">", "other!", test_greater},
    {"in", "seq!", test_in},
    {"integer", "", test_integer},
    {"iterable", "", test_iterable},
    {"le", "other!", test_at_most},
    {"<=", "other!", test_at_most},
    {"lessthan", "other!", test_less},
    {"lower", "", test_lower},
    {"lt", "other!", test_less},
    {"<", "other!", test_less},
    {"mapping", "", test_mapping},
    {"ne", "other!", test_unequal},
    {"!=", "other!", test_unequal},
    {"none", "", test_none},
    {"number", "", test_number},
    {"odd", "", test_odd},
    {"sameas", "other!", test_sameas},
    {"sequence", "", test_sequence},
    {"string", "", test_string},
    {"true", "", test_true},
    {"undefined", "", test_undefined},
    {"upper", "", test_upper},
    {NULL, NULL, NULL},
};
