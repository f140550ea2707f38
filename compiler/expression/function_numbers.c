/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of numbers. */
#include "compiler/expression/expression_function.h"

#include <math.h>
#include <stdlib.h>

static const nxc_value *extreme(evaluation *e, arguments args, size_t n_args, int sign) {
  args = nxc_spread(e, args, &n_args);
  if (n_args == 0) return nxc_evaluation_fail(e, "min and max need a value");
  const nxc_value *best = args[0];
  for (size_t i = 1; i < n_args; i++) {
    int order;
    if (!nxc_evaluation_compare(e, args[i], best, &order)) return NULL;
    if (order * sign > 0) best = args[i];
  }
  return best;
}

static const nxc_value *call_min(evaluation *e, arguments args, size_t n_args) {
  return extreme(e, args, n_args, -1);
}

static const nxc_value *call_max(evaluation *e, arguments args, size_t n_args) {
  return extreme(e, args, n_args, 1);
}

static const nxc_value *to_int(evaluation *e, double number) {
  if (!(number > -9.2e18 && number < 9.2e18))
    return nxc_evaluation_fail(e, "the number is no integer that fits");
  return nxc_value_of_int(e, (int64_t)number);
}

static const nxc_value *rounded(evaluation *e, const nxc_value *value, double (*round_by)(double)) {
  double number;
  if (value->kind == NXC_INT) return value;
  if (!nxc_value_number(value, &number)) return nxc_evaluation_fail(e, "rounding needs a number");
  return to_int(e, round_by(number));
}

static const nxc_value *call_floor(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return rounded(e, args[0], floor);
}

static const nxc_value *call_ceil(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return rounded(e, args[0], ceil);
}

static const nxc_value *call_round(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return rounded(e, args[0], nearbyint);
}

static const nxc_value *call_int(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  const nxc_value *value = args[0];
  if (value->kind == NXC_BOOL) return nxc_value_of_int(e, value->boolean);
  if (value->kind != NXC_STRING) return rounded(e, value, trunc);
  char *end;
  long long integer = strtoll(value->text, &end, 10);
  if (end == value->text || *end != '\0') return nxc_evaluation_fail(e, "%s is no integer", value->text);
  return nxc_value_of_int(e, integer);
}

static const nxc_value *call_float(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  double number;
  if (nxc_value_number(args[0], &number)) return nxc_value_of_number(e, number);
  if (args[0]->kind != NXC_STRING)
    return nxc_evaluation_fail(e, "%s is no number", nxc_kind_name(args[0]->kind));
  char *end;
  number = strtod(args[0]->text, &end);
  if (end == args[0]->text || *end != '\0') return nxc_evaluation_fail(e, "%s is no number", args[0]->text);
  return nxc_value_of_number(e, number);
}

static const nxc_value *call_sum(evaluation *e, arguments args, size_t n_args) {
  args = nxc_spread(e, args, &n_args);
  const nxc_value *sum = nxc_value_of_int(e, 0);
  for (size_t i = 0; i < n_args && sum != NULL; i++) sum = nxc_evaluation_add(e, sum, args[i]);
  return sum;
}

static const nxc_value *call_product(evaluation *e, arguments args, size_t n_args) {
  args = nxc_spread(e, args, &n_args);
  int64_t product = 1;
  for (size_t i = 0; i < n_args; i++) {
    if (args[i]->kind != NXC_INT) return nxc_evaluation_fail(e, "product needs integers");
    if (__builtin_mul_overflow(product, args[i]->integer, &product))
      return nxc_evaluation_fail(e, "the result is too large");
  }
  return nxc_value_of_int(e, product);
}

static const nxc_value *call_abs(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  double number;
  if (!nxc_value_number(args[0], &number)) return nxc_evaluation_fail(e, "abs needs a number");
  if (number >= 0) return args[0];
  if (args[0]->kind == NXC_FLOAT) return nxc_value_of_number(e, -number);
  if (args[0]->integer == INT64_MIN) return nxc_evaluation_fail(e, "the result is too large");
  return nxc_value_of_int(e, -args[0]->integer);
}

static const nxc_value *call_log2(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  double number;
  if (!nxc_value_number(args[0], &number) || number <= 0)
    return nxc_evaluation_fail(e, "log2 needs a positive number");
  double result = log2(number);
  return result == floor(result) ? to_int(e, result) : nxc_value_of_number(e, result);
}

static const nxc_value *call_gcd(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  if (args[0]->kind != NXC_INT || args[1]->kind != NXC_INT)
    return nxc_evaluation_fail(e, "gcd needs integers");
  int64_t a = args[0]->integer, b = args[1]->integer;
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return nxc_value_of_int(e, a);
}

const nxc_expression_function nxc_number_functions[] = {
    {"min", 1, MANY, false, call_min, NULL},
    {"max", 1, MANY, false, call_max, NULL},
    {"floor", 1, 1, false, call_floor, NULL},
    {"ceil", 1, 1, false, call_ceil, NULL},
    {"round", 1, 1, false, call_round, NULL},
    {"int", 1, 1, true, call_int, NULL},
    {"float", 1, 1, true, call_float, NULL},
    {"sum", 1, MANY, false, call_sum, NULL},
    {"product", 1, MANY, false, call_product, NULL},
    {"abs", 1, 1, false, call_abs, NULL},
    {"log2", 1, 1, false, call_log2, NULL},
    {"gcd", 2, 2, false, call_gcd, NULL},
    {0},
};
