/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules against recorded trajectories (argv[1]: optimizers.json, by
 * tests/parity/record_optimizers.py), and the cpu backend against ref. */
#include "tests/kernels/ref_run.h"
#include "schema/dynamic8.h"
#include "schema/optimizers.h"

#include <jansson.h>
#include <math.h>

static const char *second = "cpu"; /* the backend beside ref */
static json_t *recorded;

/* Rules of tensors work on matrices, all others on vectors of as many elements. */
static tensor array_of(const nx_optimizer_row *rule, nx_dtype type, int64_t rows, int64_t n) {
  return rule->kind == NX_ELEMENT ? tensor_of(type, n, 0, 0, 0) : tensor_of(type, rows, n / rows, 0, 0);
}

/* A rule on one backend, its operands in memory: p, states, gradient, lr, decay, scale, step, and the copy of
 * p. */
typedef struct trial {
  const nx_optimizer_row *rule;
  uint32_t n_kept; /* p and states */
  bool copies, declined;
  tensor values[16];
  test_bench bench;
  test_operation operation;
} trial;

static tensor state_of(const trial *t, const nx_state_row *state, nx_dtype type) {
  const tensor *p = &t->values[0];
  int64_t side = p->dims[state->shape == NX_COLUMNS];
  if (state->shape != NX_SAME) return tensor_of(type, 2 * side, side, 0, 0);
  return tensor_of(type, p->dims[0], p->dims[1], 0, 0);
}

static tensor *input(trial *t, uint32_t which) {
  return &t->values[t->n_kept + which];
}

static tensor *copy_of(trial *t) {
  return input(t, NX_UPDATE_END);
}

static bool open_trial(trial *t, const nxk_backend *backend, record_operator *op) {
  tensor *operands[NX_MAX_ARGS];
  test_layout plain = {0};
  uint64_t n_bytes = 0;
  uint32_t n = t->n_kept + NX_UPDATE_END;
  for (uint32_t i = 0; i <= n; i++) n_bytes += t->values[i].n_bytes;
  op->op = t->rule->op, op->n_in = n, op->n_out = t->n_kept + t->copies;
  for (uint32_t i = 0; i < n; i++) operands[i] = &t->values[i];
  for (uint32_t i = 0; i < t->n_kept; i++) operands[n + i] = &t->values[i];
  operands[n + t->n_kept] = copy_of(t);
  assert_true(bench_open(&t->bench, backend, n_bytes));
  return operation_bind(&t->operation, &t->bench, op, operands, &plain) == BIND_DONE;
}

static void run_trial(trial *t) {
  tensor *operands[NX_MAX_ARGS], results[NX_MAX_ARGS];
  test_layout plain = {0};
  uint32_t n = t->n_kept + NX_UPDATE_END, n_out = t->n_kept + t->copies;
  for (uint32_t i = 0; i < n; i++) operands[i] = &t->values[i];
  for (uint32_t i = 0; i < t->n_kept; i++) operands[n + i] = &t->values[i];
  operands[n + t->n_kept] = copy_of(t);
  for (uint32_t i = 0; i < n_out; i++) results[i] = tensor_copy(operands[n + i]);
  assert_true(operation_run(&t->operation, operands, results, &plain));
  for (uint32_t i = 0; i < n_out; i++) memcpy(operands[n + i]->data, results[i].data, results[i].n_bytes);
  tensors_free(results, (int)n_out);
}

static void close_trial(trial *t) {
  bench_close(&t->bench);
  tensors_free(t->values, (int)(t->n_kept + NX_UPDATE_END + 1));
}

static trial new_trial(const char *name, int64_t rows, int64_t n, nx_dtype p, nx_dtype state, nx_dtype g,
                       nx_dtype copy) {
  trial t = {.rule = nx_optimizer_find(name), .copies = copy != 0};
  if (t.rule == NULL) fail_msg("there is no rule %s", name);
  t.n_kept = 1 + nx_optimizer_n_states(t.rule);
  t.values[0] = array_of(t.rule, p, rows, n);
  for (uint32_t i = 1; i < t.n_kept; i++) t.values[i] = state_of(&t, &t.rule->states[i - 1], state);
  *input(&t, NX_UPDATE_GRADIENT) = array_of(t.rule, g, rows, n);
  for (uint32_t i = NX_UPDATE_LR; i <= NX_UPDATE_SCALE; i++) *input(&t, i) = tensor_of(NX_f64, 1, 0, 0, 0);
  *input(&t, NX_UPDATE_STEP) = tensor_of(NX_i64, 1, 0, 0, 0);
  *copy_of(&t) = array_of(t.rule, copy ? copy : NX_f32, rows, n);
  for (uint32_t i = 0; i < t.n_kept; i++) memset(t.values[i].data, 0, t.values[i].n_bytes);
  return t;
}

static record_operator numbers_of(const trial *t, const json_t *numbers) {
  const nx_op_row *row = nx_op_find(t->rule->op);
  record_operator op = {.n_attrs = nx_op_n_attrs(row)};
  for (uint32_t i = 0; i < op.n_attrs; i++) {
    const json_t *number = json_object_get(numbers, row->attrs[i].name);
    if (number == NULL) fail_msg("%s: %s is not recorded", t->rule->name, row->attrs[i].name);
    double value = json_number_value(number);
    op.attrs[i] = row->attrs[i].type == NX_REAL ? real(value) : whole((int64_t)value);
  }
  return op;
}

static bool is_of_tensors(const json_t *entry) {
  return nx_optimizer_find(json_string_value(json_object_get(entry, "rule")))->kind != NX_ELEMENT;
}

/* What such a rule keeps is no numbers of any size: test_factors.c tries it. */
static bool has_factors(const json_t *entry) {
  const nx_optimizer_row *rule = nx_optimizer_find(json_string_value(json_object_get(entry, "rule")));
  return nx_optimizer_n_same(rule) < nx_optimizer_n_states(rule);
}

static double at(const json_t *list, size_t index) {
  return json_number_value(json_array_get(list, index));
}

/* What a case has of its own, or what all have. */
static const json_t *of_case(const json_t *entry, const char *key) {
  const json_t *own = json_object_get(entry, key);
  return own ? own : json_object_get(recorded, key);
}

static void fill(tensor *to, const json_t *numbers) {
  assert_int_equal(json_array_size(numbers), to->n_elements);
  for (int64_t i = 0; i < to->n_elements; i++) tensor_set(to, i, at(numbers, (size_t)i));
}

/* Gradients are given twice as large, and scaled. A case may begin where some steps have been. */
static void check_case(const json_t *entry, const nxk_backend *backend, nx_dtype type, nx_dtype g,
                       double tolerance) {
  const json_t *start = of_case(entry, "start"), *gradients = of_case(entry, "gradients");
  const json_t *states = json_object_get(entry, "states");
  json_int_t before = json_integer_value(json_object_get(entry, "before"));
  const json_t *rates = json_object_get(entry, "rates"), *final = json_object_get(entry, "final");
  const char *name = json_string_value(json_object_get(entry, "rule"));
  int64_t n = (int64_t)json_array_size(start);
  trial t = new_trial(name, json_integer_value(of_case(entry, "rows")), n, type, type, g, 0);
  record_operator op = numbers_of(&t, json_object_get(entry, "numbers"));
  fill(&t.values[0], start);
  for (size_t i = 0; i < json_array_size(states); i++) fill(&t.values[1 + i], json_array_get(states, i));
  tensor_set(input(&t, NX_UPDATE_DECAY), 0, json_number_value(json_object_get(entry, "decay")));
  tensor_set(input(&t, NX_UPDATE_SCALE), 0, 0.5);
  if (!open_trial(&t, backend, &op)) { /* a backend may leave it to ref */
    assert_true(backend != &nxk_ref);
    close_trial(&t);
    return;
  }
  assert_true(json_array_size(rates) == 20 && json_array_size(gradients) == 20 && n >= 16);
  for (size_t step = 0; step < json_array_size(rates); step++) {
    const json_t *gradient = json_array_get(gradients, step);
    for (int64_t i = 0; i < n; i++) tensor_set(input(&t, NX_UPDATE_GRADIENT), i, 2 * at(gradient, (size_t)i));
    tensor_set(input(&t, NX_UPDATE_LR), 0, at(rates, step));
    tensor_set(input(&t, NX_UPDATE_STEP), 0, (double)before + (double)step);
    run_trial(&t);
  }
  for (int64_t i = 0; i < n; i++) {
    double found = tensor_get(&t.values[0], i), expected = at(final, (size_t)i);
    if (!(fabs(found - expected) <= tolerance))
      fail_msg("%s on %s, element %lld: %.17g, recorded %.17g", name, backend->name, (long long)i, found,
               expected);
  }
  close_trial(&t);
}

static void rules_follow_what_was_recorded(void **state) {
  (void)state;
  const json_t *cases = json_object_get(recorded, "cases"), *entry;
  const nxk_backend *cpu = nxk_backend_find(second);
  size_t index;
  json_array_foreach(cases, index, entry) {
    bool in_bf16 = strcmp(json_string_value(json_object_get(entry, "stored")), "bf16") == 0;
    if (in_bf16) {
      check_case(entry, &nxk_ref, NX_bf16, NX_f64, 0);
      continue;
    }
    check_case(entry, &nxk_ref, NX_f64, NX_f64, 1e-12);
    check_case(entry, &nxk_ref, NX_f32, NX_f32, 1e-6);
    if (cpu) check_case(entry, cpu, NX_f32, NX_f32, 1e-6);
  }
}

/* Of blocks of 256, and what is behind them. */
static void eight_bits_are_those_of_bitsandbytes(void **state) {
  (void)state;
  const json_t *entry;
  size_t index;
  json_array_foreach(json_object_get(recorded, "dynamic8"), index, entry) {
    const json_t *numbers = json_object_get(entry, "numbers"), *stored = json_object_get(entry, "stored");
    size_t n = json_array_size(numbers);
    assert_int_equal(n, 600);
    for (size_t i = 0; i < n; i++) {
      float most = 0;
      for (size_t k = i - i % 256; k < n && k < i - i % 256 + 256; k++)
        most = fmaxf(most, fabsf((float)at(numbers, k)));
      float found = nx_dynamic8_stored(json_is_true(json_object_get(entry, "signed")),
                                       (float)at(numbers, i), most);
      if (found != (float)at(stored, i))
        fail_msg("%zu, number %zu: %.9g, recorded %.9g", index, i, (double)found, at(stored, i));
    }
  }
  assert_int_equal(index, 2);
}

static void each_rule_is_recorded(void **state) {
  (void)state;
  static const char *const names[] = {
#define OPTIMIZER(number, name, kind, n_states, meaning) #name,
#include "schema/optimizers.def"
  };
  const json_t *cases = json_object_get(recorded, "cases"), *entry;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    bool found = false;
    size_t index;
    json_array_foreach(cases, index, entry)
      found = found || strcmp(json_string_value(json_object_get(entry, "rule")), names[i]) == 0;
    if (!found) fail_msg("%s has no recorded trajectory", names[i]);
  }
}

/* Numbers of the sizes that training has, of elements from `first` on; states are positive, as squares
 * are. */
static double drawn(uint64_t *seed, double size) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return size * ((double)(*seed >> 11) * 0x1p-53 - 0.5);
}

static const double random_lr = 3e-3;

static trial random_trial(const json_t *entry, const nxk_backend *backend, const nx_dtype types[4],
                          int64_t count, int64_t first, int64_t n) {
  trial t = new_trial(json_string_value(json_object_get(entry, "rule")), n % 4 == 0 ? 4 : 1, n, types[0],
                      types[1], types[2], types[3]);
  record_operator op = numbers_of(&t, json_object_get(entry, "numbers"));
  for (int64_t i = 0; i < n; i++) {
    uint64_t seed = 3 + (uint64_t)(first + i);
    (void)drawn(&seed, 1);
    tensor_set(&t.values[0], i, drawn(&seed, 2));
    for (uint32_t k = 1; k < t.n_kept; k++) tensor_set(&t.values[k], i, count ? fabs(drawn(&seed, 0.1)) : 0);
    tensor_set(input(&t, NX_UPDATE_GRADIENT), i, drawn(&seed, 0.3));
  }
  tensor_set(input(&t, NX_UPDATE_LR), 0, random_lr);
  /* powers of two, so that what fp32 loses where both parts of an L2 gradient cancel is no more than ref
 * does */
  tensor_set(input(&t, NX_UPDATE_DECAY), 0, 0.0625);
  tensor_set(input(&t, NX_UPDATE_SCALE), 0, 0.5);
  tensor_set(input(&t, NX_UPDATE_STEP), 0, (double)count);
  t.declined = !open_trial(&t, backend, &op);
  if (!t.declined) run_trial(&t);
  return t;
}

static double ulp_of(nx_dtype type, double size) {
  return fabs(size) * (type == NX_bf16 ? 0x1p-7 : 0x1p-19) + 1e-7;
}

/* A range that is cut, as ZeRO does, is updated to the same bits. */
static void rules_do_not_see_cuts(void **state) {
  (void)state;
  const nxk_backend *cpu = nxk_backend_find(second);
  const nx_dtype types[4] = {NX_f32, NX_f32, NX_f32, NX_bf16};
  const json_t *entry;
  size_t index;
  if (cpu == NULL) skip();
  json_array_foreach(json_object_get(recorded, "cases"), index, entry) {
    if (is_of_tensors(entry)) continue;
    trial whole = random_trial(entry, cpu, types, 6, 0, 3001), parts[2] = {
      random_trial(entry, cpu, types, 6, 0, 1376), random_trial(entry, cpu, types, 6, 1376, 3001 - 1376)};
    for (uint32_t k = 0; k <= whole.n_kept; k++) {
      const tensor *all = k < whole.n_kept ? &whole.values[k] : copy_of(&whole);
      for (int part = 0; part < 2; part++) {
        const tensor *one = k < whole.n_kept ? &parts[part].values[k] : copy_of(&parts[part]);
        const char *from = (const char *)all->data + (part ? 1376 * (all->n_bytes / 3001) : 0);
        if (memcmp(from, one->data, one->n_bytes) != 0)
          fail_msg("%s, array %u, part %d", whole.rule->name, k, part);
      }
    }
    close_trial(&whole);
    for (int part = 0; part < 2; part++) close_trial(&parts[part]);
  }
}

static double number_in(const json_t *entry, const char *name) {
  return json_number_value(json_object_get(json_object_get(entry, "numbers"), name));
}

/* What Kahan's sum keeps is the rounding of p, which may go either way; and so may those of a mean, and of an
 * update, whose elements are at most 1. */
static double bound_of(const trial *t, const json_t *entry, uint32_t array, double size) {
  bool lost = t->rule->op == NX_OP_kahan_adamw && array == 3, is_p = array == 0 || array >= t->n_kept;
  bool mean = number_in(entry, "rounded_momentum") == 2,
       update = mean || number_in(entry, "rounded_update") != 0;
  return ulp_of(t->values[array < t->n_kept ? array : 0].dtype, size) +
         (lost ? ulp_of(t->values[0].dtype, 1) : 0) + (is_p && update ? random_lr * 0x1p-8 : 0) +
         (array == 1 && mean ? ulp_of(NX_bf16, size) : 0);
}

/* Every array, in every combination of types, at the first step and later. */
static void cpu_agrees_with_ref(void **state) {
  (void)state;
  static const nx_dtype types[][4] = {
      {NX_f32, NX_f32, NX_f32, 0}, {NX_f32, NX_f32, NX_bf16, NX_bf16}, {NX_f32, NX_bf16, NX_f32, NX_bf16},
      {NX_bf16, NX_bf16, NX_bf16, 0}, {NX_bf16, NX_f32, NX_f32, 0}};
  const nxk_backend *cpu = nxk_backend_find(second);
  const json_t *entry;
  size_t index;
  if (cpu == NULL) skip();
  json_array_foreach(json_object_get(recorded, "cases"), index, entry)
    for (size_t c = 0; !has_factors(entry) && c < 2 * sizeof types / sizeof *types; c++) {
      trial ours = random_trial(entry, cpu, types[c / 2], c % 2 ? 6 : 0, 0, 3000);
      trial theirs = random_trial(entry, &nxk_ref, types[c / 2], c % 2 ? 6 : 0, 0, 3000);
      for (uint32_t k = 0; !ours.declined && k < ours.n_kept + (ours.copies ? 1u : 0u); k++) {
        const tensor *x = k < ours.n_kept ? &ours.values[k] : copy_of(&ours);
        const tensor *y = k < ours.n_kept ? &theirs.values[k] : copy_of(&theirs);
        for (int64_t i = 0; i < x->n_elements; i++)
          if (!(fabs(tensor_get(x, i) - tensor_get(y, i)) <=
                bound_of(&ours, entry, k, tensor_get(y, i)) +
                    (k == ours.n_kept ? ulp_of(x->dtype, tensor_get(y, i)) : 0)))
            fail_msg("%s, types %zu, array %u, element %lld: %g, ref has %g", ours.rule->name, c, k,
                     (long long)i, tensor_get(x, i), tensor_get(y, i));
      }
      close_trial(&ours);
      close_trial(&theirs);
    }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rules_follow_what_was_recorded),
      cmocka_unit_test(eight_bits_are_those_of_bitsandbytes),
      cmocka_unit_test(each_rule_is_recorded),
      cmocka_unit_test(rules_do_not_see_cuts),
      cmocka_unit_test(cpu_agrees_with_ref),
  };
  if (argc > 2) second = argv[2];
  const nxk_backend *backend = nxk_backend_find(second);
  if (backend && backend->devices && backend->devices(NULL, 0) == 0) {
    printf("1..0 # SKIP %s has no device here\n", second);
    return 0;
  }
  recorded = argc > 1 ? json_load_file(argv[1], 0, NULL) : NULL;
  if (recorded == NULL) {
    fprintf(stderr, "usage: test_optimizers RECORDED.json [BACKEND [TEST]]\n");
    return 2;
  }
  if (argc > 3) cmocka_set_test_filter(argv[3]);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  json_decref(recorded);
  return failed;
}
