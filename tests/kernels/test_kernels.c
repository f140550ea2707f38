/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernels BACKEND RECORDS [--bench [PREFIX] | --only PREFIX | --each]: every record of operators.txt on
 * a backend; --each: those in which an operator stands first, in one type. */
#include "schema/optimizers.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/gradient.h"
#include "tests/kernels/random.h"
#include "tests/kernels/sum.h"
#include "tests/tap.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct test {
  const test_record *record;
  test_variant variant;
  test_bench reference, tested;
  const nxk_backend *backend;
  tensor values[RECORD_MAX_VALUES];  /* as computed by ref so far */
  tensor initial[RECORD_MAX_VALUES]; /* as drawn */
  uint32_t n_declined;
} test;

/* Rank `low` of a ring of `high` holds the `low`-th piece from the front of the sequence and the `low`-th
 * from its back. */
static double ring_place(const record_value *value, int64_t i) {
  int64_t n = value->dims[value->n_dims - 1], half = n / 2, rank = (int64_t)value->low, at = i % n;
  if (at < half) return (double)(rank * half + at);
  return (double)((2 * (int64_t)value->high - 1 - rank) * half + at - half);
}

static double draw(const record_value *value, random_state *random, int64_t i) {
  switch (value->fill) {
  case FILL_NORMAL: return value->low * random_normal(random);
  case FILL_UNIFORM: return value->low + (value->high - value->low) * random_uniform(random);
  case FILL_INT: return floor(value->low + (value->high - value->low) * random_uniform(random));
  case FILL_COUNT: return (double)(i % value->dims[value->n_dims - 1]);
  case FILL_VALUE: return value->low;
  case FILL_LIST: return value->listed[i];
  case FILL_PLACES: return ring_place(value, i);
  case FILL_STARTS: return floor(ring_place(value, i) / value->length) * value->length;
  case FILL_OUTPUT: return value->added_to ? random_normal(random) : NAN;
  }
  return 0;
}

static void values_draw(test *t) {
  for (uint32_t index = 0; index < t->record->n_values; index++) {
    const record_value *value = &t->record->values[index];
    random_state random = random_seed(value->name);
    t->values[index] = tensor_new(value, t->variant);
    bool number = t->values[index].dtype != NX_i32 && t->values[index].dtype != NX_i64;
    for (int64_t i = 0; i < t->values[index].n_elements; i++) {
      double drawn = draw(value, &random, i);
      tensor_set(&t->values[index], i, number || !isnan(drawn) ? drawn : -7777777);
    }
    t->initial[index] = tensor_copy(&t->values[index]);
  }
}

static void values_free(test *t) {
  for (uint32_t index = 0; index < t->record->n_values; index++) {
    free(t->values[index].data);
    free(t->initial[index].data);
  }
}

typedef struct test_outcome {
  bind_result bound;
  bool good; /* nothing but the outputs was written */
  tensor results[NX_MAX_ARGS];
  uint32_t n_results;
} test_outcome;

static test_outcome operator_outcome(test_bench *bench, const record_operator *op, tensor *const *args,
                                     const test_layout *layout) {
  test_outcome o = {.n_results = op->n_out};
  test_operation operation;
  o.bound = operation_bind(&operation, bench, op, args, layout);
  for (uint32_t out = 0; out < op->n_out; out++) o.results[out] = tensor_copy(args[op->n_in + out]);
  if (o.bound == BIND_DONE) o.good = operation_run(&operation, args, o.results, layout);
  return o;
}

static void outcome_free(test_outcome *o) {
  for (uint32_t out = 0; out < o->n_results; out++) free(o->results[out].data);
}

static bool outcomes_same(const test_outcome *a, const test_outcome *b, const char *what) {
  bool good = a->good && b->good;
  for (uint32_t out = 0; good && out < a->n_results; out++) {
    if (tensor_same_bits(&a->results[out], &b->results[out])) continue;
    fprintf(stderr, "# output %u has other bits %s\n", out, what);
    good = false;
  }
  return good;
}

/* The output where the input is, if the row allows it and both have the same type. */
static bool aliased_same(test_bench *bench, const record_operator *op, tensor *const *args,
                         const test_outcome *first, uint32_t out, uint32_t in) {
  nx_signature signature = nx_op_signature(nx_op_find(op->op));
  const nx_operand_row *row = nx_signature_output(&signature, out);
  const tensor *x = args[in], *y = args[op->n_in + out];
  if (!(row->shares & 1u << in) || row->in_place || x->dtype != y->dtype || x->n_bytes != y->n_bytes)
    return true;
  test_outcome aliased = operator_outcome(bench, op, args, &(test_layout){false, out, in, true});
  bool good = outcomes_same(first, &aliased, "when it lies where an input does");
  outcome_free(&aliased);
  return good;
}

static bool again_and_aliased(test_bench *bench, const record_operator *op, tensor *const *args,
                              const test_outcome *first) {
  test_outcome again = operator_outcome(bench, op, args, &(test_layout){.moved = true});
  bool good = outcomes_same(first, &again, "on the second run, elsewhere in memory");
  outcome_free(&again);
  for (uint32_t out = 0; out < op->n_out; out++)
    for (uint32_t in = 0; in < op->n_in; in++) good = aliased_same(bench, op, args, first, out, in) && good;
  return good;
}

/* A dropped element is an exact zero on every backend. */
static bool masks_same(const tensor *x, const tensor *reference) {
  for (int64_t i = 0; i < x->n_elements; i++)
    if ((tensor_get(x, i) == 0) != (tensor_get(reference, i) == 0)) return false;
  return true;
}

static bool outcome_compare(const test *t, const record_operator *op, const test_outcome *tested,
                            const test_outcome *reference) {
  bool good = true;
  for (uint32_t out = 0; out < op->n_out; out++) {
    const tensor *x = &tested->results[out], *r = &reference->results[out];
    difference d = tensor_difference(x, r);
    record_bound bound = compare_bound(t->record, x->dtype);
    if (op->op == NX_OP_dropout && !masks_same(x, r)) d.comparable = false;
    if (d.comparable && d.norm <= bound.norm && d.max <= bound.max) continue;
    fprintf(stderr, "# %s, output %u: norm %.3g (bound %.3g), max %.3g (bound %.3g)%s\n",
            nx_op_find(op->op)->name, out, d.norm, bound.norm, d.max, bound.max,
            d.comparable ? "" : ", or NaN, infinite, another mask");
    good = false;
  }
  return good;
}

/* ref alone must fill its outputs, too. */
static bool outcome_filled(const record_operator *op, const test_outcome *o) {
  for (uint32_t out = 0; out < op->n_out; out++)
    for (int64_t i = 0; i < o->results[out].n_elements; i++) {
      double value = tensor_get(&o->results[out], i);
      if (!isnan(value) && value != -7777777) continue;
      fprintf(stderr, "# %s: output %u, element %lld was not written\n", nx_op_find(op->op)->name, out,
              (long long)i);
      return false;
    }
  return true;
}

/* Against numbers that stand in the record. They are rounded once, so half a unit in the last place is
 * allowed. */
static bool outcome_expected(const test *t, const record_operator *op, const test_outcome *o) {
  bool good = true;
  for (uint32_t out = 0; out < op->n_out; out++) {
    const record_value *value = &t->record->values[op->args[op->n_in + out]];
    if (value->n_expected == 0) continue;
    tensor expected = {NX_f64, 1, {value->n_expected, 1, 1, 1}, value->n_expected, 0, NULL};
    expected.data = (void *)(uintptr_t)value->expected;
    difference d = tensor_difference(&o->results[out], &expected);
    record_bound bound = compare_bound(t->record, o->results[out].dtype);
    if (t->variant == VARIANT_F64) bound = (record_bound){1e-12, 1e-12};
    if (o->results[out].dtype == NX_bf16) bound.norm = fmax(bound.norm, 0x1p-8);
    if (o->results[out].dtype == NX_f16) bound.norm = fmax(bound.norm, 0x1p-11);
    if (d.comparable && d.norm <= bound.norm && d.max <= bound.max) continue;
    fprintf(stderr,
            "# %s, output %s is not what the record expects: norm %.3g, max %.3g; first element %.9g\n",
            nx_op_find(op->op)->name, value->name, d.norm, d.max, tensor_get(&o->results[out], 0));
    good = false;
  }
  return good;
}

/* An operator that adds must give what it held plus what it gives when it overwrites. Asked of ref in f64. */
static bool outcome_adds(test *t, const record_operator *op, tensor *const *args, const test_outcome *added) {
  record_operator plain = *op;
  const nx_op_row *row = nx_op_find(op->op);
  uint32_t index = nx_op_accumulate(row);
  if (t->variant != VARIANT_F64 || index == NX_MAX_ATTRS || op->attrs[index].integer == 0) return true;
  plain.attrs[index].integer = 0;
  test_outcome overwritten = operator_outcome(&t->reference, &plain, args, &(test_layout){0});
  bool good = overwritten.bound == BIND_DONE;
  for (uint32_t out = 0; good && out < op->n_out; out++) {
    bool adds = t->record->values[op->args[op->n_in + out]].added_to;
    for (int64_t i = 0; good && i < overwritten.results[out].n_elements; i++) {
      double held = adds ? tensor_get(args[op->n_in + out], i) : 0, sum = tensor_get(&added->results[out], i);
      good = fabs(held + tensor_get(&overwritten.results[out], i) - sum) <= 1e-12 * (1 + fabs(sum));
    }
  }
  if (!good) fprintf(stderr, "# %s: accumulate does not add\n", row->name);
  outcome_free(&overwritten);
  return good;
}

static bool operator_test(test *t, const record_operator *op) {
  tensor *args[NX_MAX_ARGS];
  for (uint32_t index = 0; index < op->n_in + op->n_out; index++) args[index] = &t->values[op->args[index]];
  test_outcome reference = operator_outcome(&t->reference, op, args, &(test_layout){0});
  bool good = reference.bound == BIND_DONE && reference.good && outcome_filled(op, &reference) &&
              outcome_expected(t, op, &reference) && outcome_adds(t, op, args, &reference);
  if (t->backend == &nxk_ref) {
    good = good && again_and_aliased(&t->reference, op, args, &reference);
  } else if (good) {
    test_outcome tested = operator_outcome(&t->tested, op, args, &(test_layout){0});
    if (tested.bound == BIND_DECLINED)
      t->n_declined++;
    else
      good = tested.bound == BIND_DONE && tested.good && outcome_compare(t, op, &tested, &reference) &&
             outcome_expected(t, op, &tested) && again_and_aliased(&t->tested, op, args, &tested);
    outcome_free(&tested);
  }
  for (uint32_t out = 0; out < op->n_out; out++)
    memcpy(args[op->n_in + out]->data, reference.results[out].data, reference.results[out].n_bytes);
  outcome_free(&reference);
  return good;
}

static uint64_t values_bytes(const test *t) {
  uint64_t n_bytes = 0;
  for (uint32_t index = 0; index < t->record->n_values; index++) n_bytes += t->values[index].n_bytes;
  return n_bytes;
}

static bool record_test(test *t) {
  values_draw(t);
  bool good = bench_open(&t->reference, &nxk_ref, values_bytes(t));
  if (t->backend != &nxk_ref) good = bench_open(&t->tested, t->backend, values_bytes(t)) && good;
  for (uint32_t index = 0; good && index < t->record->n_operators; index++)
    good = operator_test(t, &t->record->operators[index]);
  if (good && t->variant == VARIANT_F64 && t->record->n_outputs > 0)
    good = gradient_check(t->record, &t->reference, t->values, t->initial);
  if (t->reference.device) bench_close(&t->reference);
  if (t->tested.device) bench_close(&t->tested);
  values_free(t);
  return good;
}

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int time_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median seconds of one run, over about a third of a second. */
static double operator_time(test_operation *operation) {
  enum { MAX_RUNS = 400 };
  double times[MAX_RUNS], start = now_s();
  int n_runs = 0;
  while (n_runs < MAX_RUNS && (n_runs < 3 || now_s() - start < 0.35)) {
    double before = now_s();
    operation_repeat(operation);
    times[n_runs++] = now_s() - before;
  }
  qsort(times, (size_t)n_runs, sizeof *times, time_order);
  return times[n_runs / 2];
}

static bool record_bench(test *t) {
  values_draw(t);
  bool good = bench_open(&t->tested, t->backend, values_bytes(t));
  for (uint32_t index = 0; good && index < t->record->n_operators; index++) {
    const record_operator *op = &t->record->operators[index];
    tensor *args[NX_MAX_ARGS], results[NX_MAX_ARGS];
    uint64_t n_bytes = 0;
    for (uint32_t arg = 0; arg < op->n_in + op->n_out; arg++) {
      args[arg] = &t->values[op->args[arg]];
      n_bytes += args[arg]->n_bytes;
    }
    for (uint32_t out = 0; out < op->n_out; out++) results[out] = *args[op->n_in + out];
    test_operation operation;
    test_layout plain = {0};
    bind_result bound = operation_bind(&operation, &t->tested, op, args, &plain);
    good = bound == BIND_DECLINED || (bound == BIND_DONE && operation_run(&operation, args, results, &plain));
    if (bound != BIND_DONE) continue;
    double time_s = operator_time(&operation);
    printf("%-24s %-16s %-5s %9.3f ms %7.1f GB/s\n", t->record->name, nx_op_find(op->op)->name,
           variant_name(t->variant), 1e3 * time_s, 1e-9 * (double)n_bytes / time_s);
  }
  if (t->tested.device) bench_close(&t->tested);
  values_free(t);
  return good;
}

typedef struct test_options {
  const nxk_backend *backend;
  const char *prefix;
  bool bench, each;
} test_options;

static bool record_wanted(const test_options *options, const test_record *record, test_variant variant) {
  if (record->bench != options->bench || !record->variants[variant]) return false;
  if (variant == VARIANT_F64 && (options->bench || options->backend != &nxk_ref)) return false;
  return strncmp(record->name, options->prefix, strlen(options->prefix)) == 0;
}

/* Whether an operator of the record stands in none before it; then all of it have been seen. */
static bool has_new_operator(const test_record *record, bool seen[NX_OP_END]) {
  bool is_new = false;
  for (uint32_t i = 0; i < record->n_operators; i++) {
    is_new = is_new || !seen[record->operators[i].op];
    seen[record->operators[i].op] = true;
  }
  return is_new;
}

/* Every operator has a record, but for collectives and the rules of optimizers (test_optimizers.c). */
static bool all_seen(const bool seen[NX_OP_END]) {
  bool good = true;
  for (uint32_t op = 0; op < NX_OP_END; op++) {
    const nx_op_row *row = nx_op_find((nx_op)op);
    if (!row || seen[op] || nx_op_is_collective(row) || nx_optimizer_of(op)) continue;
    fprintf(stderr, "# %s has no record\n", row->name);
    good = false;
  }
  return good;
}

static int records_run(const test_options *options, const record_list *list) {
  bool seen[NX_OP_END] = {false};
  int n_run = 0, n_failed = 0;
  for (uint32_t index = 0; index < list->n_records; index++)
    for (test_variant variant = 0; variant < N_VARIANTS; variant++) {
      if (!record_wanted(options, &list->records[index], variant)) continue;
      if (options->each && !has_new_operator(&list->records[index], seen)) continue;
      test t = {.record = &list->records[index], .variant = variant, .backend = options->backend};
      bool good = options->bench ? record_bench(&t) : record_test(&t);
      n_failed += !good;
      n_run++;
      const char *more = t.n_declined ? " # some operators declined" : "";
      if (!options->bench) tap_report(good, "%s %s%s", t.record->name, variant_name(variant), more);
    }
  if (options->bench) return n_failed || !n_run ? 1 : 0;
  if (options->each) tap_report(all_seen(seen), "every operator has a record");
  if (options->backend->sum && strncmp("sum", options->prefix, strlen(options->prefix)) == 0)
    tap_report(sum_test(options->backend), "sum");
  return tap_end();
}

int main(int argc, char **argv) {
  record_list list = {0};
  test_options options = {.prefix = argc > 4 ? argv[4] : ""};
  options.bench = argc > 3 && strcmp(argv[3], "--bench") == 0;
  options.each = argc == 4 && strcmp(argv[3], "--each") == 0;
  bool usage = argc < 3 || argc > 5 ||
               (argc > 3 && !options.bench && !options.each && strcmp(argv[3], "--only") != 0);
  options.backend = usage ? NULL : nxk_backend_find(argv[1]);
  if (!options.backend) {
    fprintf(stderr, "usage: test_kernels BACKEND RECORDS [--bench [PREFIX] | --only PREFIX | --each]\n");
    return 2;
  }
  if (options.backend->devices && options.backend->devices(NULL, 0) == 0) {
    printf("1..0 # SKIP %s has no device here\n", options.backend->name);
    return 0;
  }
  int status = records_read(argv[2], &list) ? records_run(&options, &list) : 2;
  free(list.records);
  return status;
}
