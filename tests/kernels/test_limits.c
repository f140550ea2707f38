/* SPDX-License-Identifier: Apache-2.0 */
/* Every update rule with its numbers at their limits: what ref computes of the same numbers in double is what
 * the backend (argv[1]) computes in float, as far as that is a number there. */
#include "schema/optimizers.h"
#include "tests/kernels/ref_run.h"

#include <float.h>
#include <math.h>

enum { N = 16, BENCH_BYTES = 1 << 16 };

static const nxk_backend *tested;
static test_bench on_ref, on_tested;
static int n_wrong;

/* What is tried of a number; what its row in optimizers.def does not allow is passed over. */
static const double limits[] = {0, FLT_MIN, 1e-8, 0x1p-24, 1 - 0x1p-24, 1 - 0x1p-53, 1, 1e6};
enum { N_LIMITS = sizeof limits / sizeof *limits };

/* Steps: the first, and one of a long training. */
typedef struct moment {
  double step, lr, decay, scale;
} moment;
static const moment moments[] = {{0, 1e-3, 0.1, 1}, {999, 1e-3, 0.1, 1}, {0, 0, 1e6, 1},
                                 {0, 1e-3, 1e6, 1}, {999, 1e-3, 0, 0},   {999, 1e-3, 0, 1e-10}};
enum { N_MOMENTS = sizeof moments / sizeof *moments };

/* A number in the middle of what is allowed. */
static nxk_attr usual(const nx_attr_row *row) {
  if (row->type != NX_REAL) return whole(row->least > 4 ? row->least : row->least > 0 ? 4 : 0);
  if (row->highest <= 1) return real(row->lowest < 0 ? -0.8 : 0.9);
  return real(row->lowest >= 1               ? 1.2
              : strstr(row->name, "max")     ? 50
              : strstr(row->name, "epsilon") ? 1e-8
                                             : 0.5);
}

static bool may_be(const nx_optimizer_row *rule, const nx_attr_row *row, double value) {
  bool epsilon = strstr(row->name, "epsilon") != NULL, least = value == FLT_MIN;
  if (epsilon && value == 0) return false; /* 0 / 0, which no setting may be */
  bool centered = rule->op == NX_OP_rmsprop_centered || rule->op == NX_OP_rmsprop_centered_momentum;
  bool cancels = centered && strcmp(row->name, "momentum") != 0 && value < 0.5 && !epsilon; /* the divisor */
  return row->type == NX_REAL && value >= row->lowest && value <= row->highest && (epsilon || !least) &&
         !cancels;
}

static tensor filled(const nx_optimizer_row *rule, nx_dtype type, const double *values, size_t n,
                     double factor) {
  tensor x = rule->kind == NX_ELEMENT ? tensor_of(type, N, 0, 0, 0) : tensor_of(type, 4, N / 4, 0, 0);
  for (int64_t i = 0; i < N; i++) tensor_set(&x, i, factor * values[(size_t)i % n]);
  return x;
}

/* p, its states, and what an update reads. */
static uint32_t operands(const nx_optimizer_row *rule, nx_dtype type, const moment *at, tensor *args) {
  static const double p[] = {1, -1e-3, 0, 30, -2}, g[] = {0.1, 0, -3, 1e-12, 7, -1e-4, 1e4};
  static const double kept[] = {0.2, 0.01, 4, 1e-6, 0.5};
  uint32_t n = 1 + nx_optimizer_n_states(rule);
  args[0] = filled(rule, type, p, 5, 1);
  for (uint32_t i = 1; i < n; i++) args[i] = filled(rule, type, kept, 5, at->step == 0 ? 0 : 1);
  args[n + NX_UPDATE_GRADIENT] = filled(rule, type, g, 7, 1);
  const double numbers[] = {at->lr, at->decay, at->scale, at->step};
  for (uint32_t i = 0; i < 4; i++) {
    args[n + NX_UPDATE_LR + i] = tensor_of(i == 3 ? NX_i64 : NX_f64, 1, 0, 0, 0);
    tensor_set(&args[n + NX_UPDATE_LR + i], 0, numbers[i]);
  }
  return n + NX_UPDATE_END;
}

/* What becomes of p. A backend may leave a rule to ref. */
static tensor update(const nxk_backend *backend, nx_dtype type, const nx_optimizer_row *rule,
                     const moment *at, const nxk_attr *numbers) {
  tensor args[NX_MAX_ARGS], results[1 + NX_MAX_STATES], *places[NX_MAX_ARGS];
  uint32_t n_kept = 1 + nx_optimizer_n_states(rule), n_in = operands(rule, type, at, args);
  record_operator op = {rule->op, n_in, n_kept, nx_op_n_attrs(nx_op_find(rule->op)), {0}, {{0}}};
  test_bench *bench = backend == tested ? &on_tested : &on_ref;
  test_operation operation;
  test_layout plain = {0};
  memcpy(op.attrs, numbers, sizeof op.attrs);
  for (uint32_t i = 0; i < n_in + n_kept; i++) places[i] = &args[i < n_in ? i : i - n_in];
  for (uint32_t i = 0; i < n_kept; i++) results[i] = tensor_copy(&args[i]);
  bind_result bound = operation_bind(&operation, bench, &op, places, &plain);
  if (bound == BIND_DECLINED) bound = operation_bind(&operation, &on_ref, &op, places, &plain);
  assert_int_equal(bound, BIND_DONE);
  assert_true(operation_run(&operation, places, results, &plain));
  tensors_free(args, (int)n_in);
  tensors_free(results + 1, (int)n_kept - 1);
  return results[0];
}

static void compare(const nx_optimizer_row *rule, const moment *at, const nxk_attr *numbers,
                    const char *which) {
  tensor exact = update(&nxk_ref, NX_f64, rule, at, numbers),
         found = update(tested, NX_f32, rule, at, numbers);
  for (int64_t i = 0; i < N; i++) {
    double x = tensor_get(&exact, i), y = tensor_get(&found, i);
    if (!isfinite(x) || fabs(x) > FLT_MAX / 2 || fabs(x - y) <= 2e-5 * fabs(x) + 1e-6) continue;
    n_wrong++;
    print_message("# %s, %s, step %g lr %g decay %g scale %g, element %lld: %.9g, and %.9g in double\n",
                  rule->name, which, at->step, at->lr, at->decay, at->scale, (long long)i, y, x);
  }
  tensors_free(&exact, 1);
  tensors_free(&found, 1);
}

static void try_rule(const nx_optimizer_row *rule, const moment *at) {
  const nx_op_row *row = nx_op_find(rule->op);
  nxk_attr numbers[NX_MAX_ATTRS] = {0};
  uint32_t n = nx_op_n_attrs(row);
  for (uint32_t i = 0; i < n; i++) numbers[i] = usual(&row->attrs[i]);
  compare(rule, at, numbers, "as usual");
  for (uint32_t i = 0; i < n; i++)
    for (int l = 0; l < N_LIMITS; l++) {
      char which[64];
      if (!may_be(rule, &row->attrs[i], limits[l])) continue;
      nxk_attr before = numbers[i];
      numbers[i] = real(limits[l]);
      snprintf(which, sizeof which, "%s %.17g", row->attrs[i].name, limits[l]);
      compare(rule, at, numbers, which);
      numbers[i] = before;
    }
}

/* What rules with factors keep is no numbers of any size: test_factors.c tries them. */
static bool is_tried(const nx_optimizer_row *rule) {
  return rule != NULL && nx_optimizer_n_same(rule) == nx_optimizer_n_states(rule);
}

static void rules_hold_at_their_limits(void **state) {
  (void)state;
  assert_true(bench_open(&on_ref, &nxk_ref, BENCH_BYTES) && bench_open(&on_tested, tested, BENCH_BYTES));
  for (uint32_t op = 0; op < NX_OP_END; op++)
    for (int m = 0; m < N_MOMENTS; m++)
      if (is_tried(nx_optimizer_of(op))) try_rule(nx_optimizer_of(op), &moments[m]);
  bench_close(&on_tested);
  bench_close(&on_ref);
  assert_int_equal(n_wrong, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rules_hold_at_their_limits)};
  tested = nxk_backend_find(argc > 1 ? argv[1] : "ref");
  return tested == NULL || cmocka_run_group_tests(tests, NULL, NULL);
}
