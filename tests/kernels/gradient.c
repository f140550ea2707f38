/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/gradient.h"

#include "tests/kernels/random.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double STEP = 1e-5, BOUND = 2e-7;
enum { MAX_ELEMENTS = 40 };

typedef struct test_function {
  const test_record *record;
  tensor *values;
  test_operation operations[RECORD_MAX_OPERATORS];
  uint32_t n_operations; /* those that the outputs need */
} test_function;

static void operands_of(const record_operator *op, tensor *values, tensor **args) {
  for (uint32_t index = 0; index < op->n_in + op->n_out; index++) args[index] = &values[op->args[index]];
}

static bool function_open(test_function *f, const test_record *record, test_bench *bench, tensor *values) {
  *f = (test_function){.record = record, .values = values};
  for (uint32_t index = 0; index < record->n_operators; index++)
    for (uint32_t output = 0; output < record->n_outputs; output++)
      for (uint32_t out = 0; out < record->operators[index].n_out; out++)
        if (record->operators[index].args[record->operators[index].n_in + out] ==
            record->outputs[output].value)
          f->n_operations = index + 1;
  for (uint32_t index = 0; index < f->n_operations; index++) {
    tensor *args[NX_MAX_ARGS];
    operands_of(&record->operators[index], values, args);
    test_layout plain = {0};
    if (operation_bind(&f->operations[index], bench, &record->operators[index], args, &plain) != BIND_DONE)
      return false;
  }
  return f->n_operations > 0;
}

static double function_value(test_function *f) {
  for (uint32_t index = 0; index < f->n_operations; index++) {
    const record_operator *op = &f->record->operators[index];
    tensor *args[NX_MAX_ARGS], results[NX_MAX_ARGS];
    operands_of(op, f->values, args);
    for (uint32_t out = 0; out < op->n_out; out++) results[out] = *args[op->n_in + out];
    test_layout plain = {0};
    bool good = operation_run(&f->operations[index], args, results, &plain);
    assert(good);
  }
  double sum = 0;
  for (uint32_t output = 0; output < f->record->n_outputs; output++) {
    const tensor *y = &f->values[f->record->outputs[output].value];
    const tensor *cotangent = &f->values[f->record->outputs[output].gradient];
    for (int64_t i = 0; i < y->n_elements; i++) sum += tensor_get(y, i) * tensor_get(cotangent, i);
  }
  return sum;
}

/* The slope of L when x moves along `direction`, or in element `only` alone. */
static double function_slope(test_function *f, tensor *x, const double *direction, int64_t only) {
  tensor before = tensor_copy(x);
  double values[2];
  for (int side = 0; side < 2; side++) {
    for (int64_t i = 0; i < x->n_elements; i++) {
      double move = direction ? direction[i] : (i == only ? 1 : 0);
      tensor_set(x, i, tensor_get(&before, i) + (side ? STEP : -STEP) * move);
    }
    values[side] = function_value(f);
  }
  memcpy(x->data, before.data, x->n_bytes);
  free(before.data);
  return (values[1] - values[0]) / (2 * STEP);
}

static bool slope_agrees(const test_function *f, uint32_t value, const char *where, double slope,
                         double gradient, double scale) {
  if (fabs(slope - gradient) <= BOUND * (scale + 1)) return true;
  fprintf(stderr, "# gradient of %s, %s: %.12g, by finite differences %.12g\n", f->record->values[value].name,
          where, gradient, slope);
  return false;
}

/* Each element is the same code: NX_TEST_SHARE=N tries one of N of them. */
static int64_t most_elements(void) {
  const char *share = getenv("NX_TEST_SHARE");
  const int64_t n = share ? strtol(share, NULL, 10) : 1;
  return n > 1 ? (MAX_ELEMENTS + n - 1) / n : MAX_ELEMENTS;
}

static bool input_check(test_function *f, const record_pair *pair, const tensor *held, random_state *random) {
  tensor *x = &f->values[pair->value], *dx = &f->values[pair->gradient];
  double *direction = calloc((size_t)x->n_elements, sizeof *direction), along = 0, size = 0;
  assert(direction);
  bool good = x->n_elements == dx->n_elements, added = f->record->values[pair->gradient].added_to;
  for (int64_t i = 0; good && i < x->n_elements; i++) {
    double gradient = tensor_get(dx, i) - (added ? tensor_get(held, i) : 0);
    direction[i] = random_normal(random);
    along += gradient * direction[i];
    size += gradient * gradient;
  }
  good = good && size > 0; /* a gradient of zeros would agree with an operator that ignores its input */
  if (!good) fprintf(stderr, "# gradient of %s: no gradient\n", f->record->values[pair->value].name);
  if (good)
    good = slope_agrees(f, pair->value, "random direction", function_slope(f, x, direction, -1), along,
                        sqrt(size));
  const int64_t most = most_elements(), n_checked = x->n_elements < most ? x->n_elements : most;
  for (int64_t check = 0; good && check < n_checked; check++) {
    int64_t i = n_checked < most ? check : (int64_t)(random_uniform(random) * (double)x->n_elements);
    double gradient = tensor_get(dx, i) - (added ? tensor_get(held, i) : 0);
    char where[32];
    snprintf(where, sizeof where, "element %lld", (long long)i);
    good = slope_agrees(f, pair->value, where, function_slope(f, x, NULL, i), gradient, sqrt(size));
  }
  free(direction);
  return good;
}

bool gradient_check(const test_record *record, test_bench *bench, tensor *values, const tensor *initial) {
  test_function f;
  random_state random = random_seed("gradient");
  bool good = function_open(&f, record, bench, values);
  for (uint32_t input = 0; good && input < record->n_inputs; input++)
    good = input_check(&f, &record->inputs[input], &initial[record->inputs[input].gradient], &random);
  return good;
}
