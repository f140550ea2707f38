/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that keep factors of a matrix, from the first step on: on ref, and on a backend (argv[1]) beside it.
 */
#include "schema/optimizers.h"
#include "tests/kernels/ref_run.h"

#include <math.h>

static const nxk_backend *tested;
enum { P = 0, MOMENT1, MOMENT2, FACTOR, N_KEPT = 5, GRADIENT = N_KEPT, N_IN = N_KEPT + NX_UPDATE_END };

typedef struct form {
  int64_t rows, columns;
  double lr, decay, scale, size, epsilon; /* size: of gradients */
} form;

typedef struct trial {
  tensor values[N_IN + 1]; /* and the copy */
  test_bench bench;
  test_operation operation;
  bool declined;
} trial;

static double drawn(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(*seed >> 11) * 0x1p-53 - 0.5;
}

static void open_trial(trial *t, const nxk_backend *backend, const form *f, nx_dtype type, nx_dtype state,
                       int64_t kl) {
  *t = (trial){.declined = false};
  const int64_t side[2] = {f->rows, f->columns};
  for (int i = 0; i <= N_IN; i++) {
    if (i > GRADIENT && i < N_IN) t->values[i] = tensor_of(i == N_IN - 1 ? NX_i64 : NX_f64, 1, 0, 0, 0);
    else if (i == FACTOR || i == FACTOR + 1)
      t->values[i] =
          tensor_of(type == NX_f64 ? NX_f64 : NX_f32, 2 * side[i - FACTOR], side[i - FACTOR], 0, 0);
    else t->values[i] = tensor_of(i == MOMENT1 || i == MOMENT2 ? state : type, side[0], side[1], 0, 0);
    memset(t->values[i].data, 0, t->values[i].n_bytes);
  }
  uint64_t n_bytes = 0, seed = 5;
  for (int i = 0; i <= N_IN; i++) n_bytes += t->values[i].n_bytes;
  for (int64_t i = 0; i < f->rows * f->columns; i++) tensor_set(&t->values[P], i, drawn(&seed));
  tensor_set(&t->values[GRADIENT + NX_UPDATE_LR], 0, f->lr);
  tensor_set(&t->values[GRADIENT + NX_UPDATE_DECAY], 0, f->decay);
  tensor_set(&t->values[GRADIENT + NX_UPDATE_SCALE], 0, f->scale);
  record_operator op = {.op = NX_OP_soap, .n_in = N_IN, .n_out = N_KEPT + 1, .n_attrs = 8};
  for (int i = 0; i < 3; i++) op.attrs[i] = whole(i == 2 ? f->rows : 0);
  op.attrs[NX_soap_beta1] = real(0.9), op.attrs[NX_soap_beta2] = real(0.95);
  op.attrs[NX_soap_basis_epsilon] = real(f->epsilon), op.attrs[NX_soap_factor_beta] = real(0.9);
  op.attrs[NX_soap_kl_factors] = whole(kl);
  tensor *operands[NX_MAX_ARGS];
  test_layout plain = {0};
  for (int i = 0; i < N_IN; i++) operands[i] = &t->values[i];
  for (int i = 0; i <= N_KEPT; i++) operands[N_IN + i] = &t->values[i < N_KEPT ? i : N_IN];
  assert_true(bench_open(&t->bench, backend, n_bytes));
  t->declined = operation_bind(&t->operation, &t->bench, &op, operands, &plain) == BIND_DECLINED;
}

static void step(trial *t, int64_t count, double size) {
  tensor *operands[NX_MAX_ARGS], results[N_KEPT + 1];
  test_layout plain = {0};
  uint64_t seed = 77 + (uint64_t)count;
  for (int64_t i = 0; i < t->values[GRADIENT].n_elements; i++)
    tensor_set(&t->values[GRADIENT], i, size * drawn(&seed));
  tensor_set(&t->values[N_IN - 1], 0, (double)count);
  for (int i = 0; i < N_IN; i++) operands[i] = &t->values[i];
  for (int i = 0; i <= N_KEPT; i++) operands[N_IN + i] = &t->values[i < N_KEPT ? i : N_IN];
  for (int i = 0; i <= N_KEPT; i++) results[i] = tensor_copy(operands[N_IN + i]);
  assert_true(operation_run(&t->operation, operands, results, &plain));
  for (int i = 0; i <= N_KEPT; i++) memcpy(operands[N_IN + i]->data, results[i].data, results[i].n_bytes);
  tensors_free(results, N_KEPT + 1);
}

static void close_trial(trial *t) {
  bench_close(&t->bench);
  tensors_free(t->values, N_IN + 1);
}

/* The lower square of a factor is an orthonormal basis, and the upper one is symmetric. */
static void check_basis(const tensor *factor, double tolerance) {
  const int64_t n = factor->dims[1];
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) {
      double product = 0, one = tensor_get(factor, i * n + j), other = tensor_get(factor, j * n + i);
      for (int64_t k = 0; k < n; k++)
        product += tensor_get(factor, (n + k) * n + i) * tensor_get(factor, (n + k) * n + j);
      if (!(fabs(product - (i == j)) <= tolerance))
        fail_msg("columns %lld and %lld of %lld: %g", (long long)i, (long long)j, (long long)n, product);
      if (!(fabs(one - other) <= 1e-5 * (fabs(one) + fabs(tensor_get(factor, 0)))))
        fail_msg("elements %lld, %lld: %g and %g", (long long)i, (long long)j, one, other);
    }
}

/* In its own bases the first gradient is diagonal: what is beside that is roundings, which only an epsilon
 * above them leaves what they are. */
static const form forms[] = {
    {1, 1, 1e-2, 0.1, 0.5, 0.3, 1e-8}, {1, 7, 1e-2, 0.1, 0.5, 0.3, 1e-8}, {7, 1, 1e-2, 0.1, 0.5, 0.3, 1e-8},
    {28, 28, 1e-2, 0.1, 1, 0.3, 1e-2}, {33, 20, 1e-2, 0.1, 1, 0.3, 1e-8}, {48, 65, 1e-2, 0.1, 1, 1e-4, 1e-8},
    {5, 5, 0, 1e6, 1, 1, 1e-2},        {6, 9, 1e-3, 0, 0, 1, 1e-8},       {6, 9, 1e-3, 0, 1e-10, 1, 1e-8},
    {9, 6, 1e-3, 1, 1, 0, 1e-8},       {40, 40, 1e-2, 0, 1, 1e-6, 1e-8},  {2, 3, 1e-3, 0, 1, 1e4, 1e-8},
};
enum { N_FORMS = sizeof forms / sizeof *forms, N_STEPS = 4 };

static void try_form(const nxk_backend *backend, const form *f, nx_dtype type, nx_dtype state, int64_t kl) {
  trial exact, t;
  open_trial(&exact, &nxk_ref, f, NX_f64, NX_f64, kl);
  open_trial(&t, backend, f, type, state, kl);
  for (int64_t count = 0; count < N_STEPS && !t.declined; count++) {
    step(&exact, count, f->size);
    step(&t, count, f->size);
    for (int side = 0; side < 2; side++) check_basis(&t.values[FACTOR + side], 2e-5);
    for (int64_t i = 0; i < f->rows * f->columns; i++) {
      double x = tensor_get(&exact.values[P], i), y = tensor_get(&t.values[P], i);
      /* of a matrix that is no square the first gradient says nothing of some directions */
      bool same = f->rows == f->columns && f->epsilon >= 1e-2 && state == NX_f32;
      if (!isfinite(y) || (same && !(fabs(x - y) <= 1e-3 * f->lr + 1e-6 * fabs(x))))
        fail_msg("%s, %lld by %lld, step %lld, element %lld: %.9g, in double %.9g", backend->name,
                 (long long)f->rows, (long long)f->columns, (long long)count, (long long)i, y, x);
    }
  }
  close_trial(&exact);
  close_trial(&t);
}

static void bases_stay_orthonormal(void **state) {
  (void)state;
  for (int i = 0; i < N_FORMS; i++)
    for (int64_t kl = 0; kl < 2; kl++) {
      try_form(tested, &forms[i], NX_f32, NX_f32, kl);
      try_form(tested, &forms[i], NX_f32, NX_bf16, kl);
    }
}

/* What is no step changes nothing, as where a loss scale was too large. */
static void no_number_is_no_step(void **state) {
  (void)state;
  form f = {6, 9, 1e-2, 0.1, 1, 0.3};
  trial t;
  open_trial(&t, tested, &f, NX_f32, NX_f32, 1);
  if (t.declined) skip();
  step(&t, 0, 0.3);
  tensor before[N_KEPT];
  for (int i = 0; i < N_KEPT; i++) before[i] = tensor_copy(&t.values[i]);
  tensor_set(&t.values[GRADIENT + NX_UPDATE_SCALE], 0, NAN);
  step(&t, 1, 0.3);
  for (int i = 0; i < N_KEPT; i++) assert_memory_equal(before[i].data, t.values[i].data, before[i].n_bytes);
  tensors_free(before, N_KEPT);
  close_trial(&t);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bases_stay_orthonormal),
                                     cmocka_unit_test(no_number_is_no_step)};
  tested = nxk_backend_find(argc > 1 ? argv[1] : "ref");
  if (tested && tested->devices && tested->devices(NULL, 0) == 0) tested = NULL;
  if (tested == NULL) {
    printf("1..0 # SKIP %s is not here\n", argc > 1 ? argv[1] : "ref");
    return 0;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
