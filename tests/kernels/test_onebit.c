/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed reductions of 1-bit Adam against recorded trajectories (argv[1]: optimizers.json, by
 * tests/parity/record_optimizers.py). */
#include "tests/kernels/ref_run.h"

#include <jansson.h>
#include <math.h>

static json_t *recorded;

static double at(const json_t *list, size_t index) {
  return json_number_value(json_array_get(list, index));
}

/* An operator of 1-bit Adam on ref: its operands, and what it writes of them. */
typedef struct call {
  tensor *in[9], *out[3];
  uint32_t n_in, n_out;
} call;

static void run_call(nx_op op, const json_t *numbers, const call *of) {
  const nx_op_row *row = nx_op_find(op);
  record_operator record = {.op = op, .n_in = of->n_in, .n_out = of->n_out, .n_attrs = nx_op_n_attrs(row)};
  tensor *operands[NX_MAX_ARGS], results[3];
  test_layout plain = {0};
  test_bench bench;
  test_operation operation;
  uint64_t n_bytes = 0;
  for (uint32_t i = 0; i < record.n_attrs; i++) {
    double number = json_number_value(json_object_get(numbers, row->attrs[i].name));
    record.attrs[i] = row->attrs[i].type == NX_REAL ? real(number) : whole((int64_t)number);
  }
  for (uint32_t i = 0; i < of->n_in + of->n_out; i++) {
    operands[i] = i < of->n_in ? of->in[i] : of->out[i - of->n_in];
    n_bytes += operands[i]->n_bytes;
  }
  assert_true(bench_open(&bench, &nxk_ref, n_bytes));
  assert_int_equal(operation_bind(&operation, &bench, &record, operands, &plain), BIND_DONE);
  for (uint32_t i = 0; i < of->n_out; i++) results[i] = tensor_copy(of->out[i]);
  assert_true(operation_run(&operation, operands, results, &plain));
  for (uint32_t i = 0; i < of->n_out; i++) memcpy(of->out[i]->data, results[i].data, results[i].n_bytes);
  tensors_free(results, (int)of->n_out);
  bench_close(&bench);
}

enum { MOST_WORKERS = 4 };

/* Several workers in one process: what collectives move is copied. */
typedef struct crowd {
  const json_t *numbers;
  int64_t n, n_elements;
  tensor p, m, v, lr, decay, scale, step;
  tensor gradient[MOST_WORKERS], error[MOST_WORKERS], bits[MOST_WORKERS], size[MOST_WORKERS];
  tensor served[MOST_WORKERS], mean[MOST_WORKERS], mean_size[MOST_WORKERS]; /* of a server */
  tensor received, sizes, all_bits, all_sizes;
} crowd;

static tensor zeros(nx_dtype type, int64_t n) {
  tensor x = tensor_of(type, n, 0, 0, 0);
  memset(x.data, 0, x.n_bytes);
  return x;
}

static crowd new_crowd(const json_t *entry, const json_t *start) {
  int64_t n = json_integer_value(json_object_get(entry, "workers")),
          size = (int64_t)json_array_size(start);
  crowd c = {.numbers = json_object_get(entry, "numbers"), .n = n, .n_elements = size,
             .p = zeros(NX_f64, size), .m = zeros(NX_f64, size), .v = zeros(NX_f64, size),
             .lr = zeros(NX_f64, 1), .decay = zeros(NX_f64, 1), .scale = zeros(NX_f64, 1),
             .step = zeros(NX_i64, 1), .received = zeros(NX_u8, size / 8), .sizes = zeros(NX_f32, n),
             .all_bits = zeros(NX_u8, size / 8), .all_sizes = zeros(NX_f32, n)};
  for (int64_t i = 0; i < n; i++) {
    c.gradient[i] = zeros(NX_f64, size), c.error[i] = zeros(NX_f32, size);
    c.bits[i] = zeros(NX_u8, size / 8), c.size[i] = zeros(NX_f32, 1);
    c.served[i] = zeros(NX_f32, size / n);
    c.mean[i] = zeros(NX_u8, size / 8 / n), c.mean_size[i] = zeros(NX_f32, 1);
  }
  for (int64_t i = 0; i < size; i++) tensor_set(&c.p, i, at(start, (size_t)i));
  tensor_set(&c.decay, 0, json_number_value(json_object_get(entry, "decay")));
  return c;
}

static void free_crowd(crowd *c) {
  tensor *one[] = {&c->p, &c->m, &c->v, &c->lr, &c->decay, &c->scale, &c->step, &c->received, &c->sizes,
                   &c->all_bits, &c->all_sizes};
  tensor *each[] = {c->gradient, c->error, c->bits, c->size, c->served, c->mean, c->mean_size};
  for (size_t i = 0; i < sizeof one / sizeof *one; i++) tensors_free(one[i], 1);
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) tensors_free(each[i], (int)c->n);
}

/* Workers' gradients come to the mean `g`, as the recorder divides it; ranks have parts of a mean. */
static void share_gradient(crowd *c, const json_t *g) {
  for (int64_t w = 0; w < c->n; w++)
    for (int64_t i = 0; i < c->n_elements; i++) {
      double more = ((double)w - (double)(c->n - 1) / 2) / 4 * (i % 2 ? 1 : -1);
      tensor_set(&c->gradient[w], i, at(g, (size_t)i) * (1 + more) / (double)c->n);
    }
}

static void gather(tensor *to, const tensor *from, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    memcpy((char *)to->data + (uint64_t)i * from->n_bytes, from[i].data, from[i].n_bytes);
}

static void plain_step(crowd *c) {
  tensor sum = zeros(NX_f64, c->n_elements);
  for (int64_t w = 0; w < c->n; w++)
    for (int64_t i = 0; i < c->n_elements; i++)
      tensor_set(&sum, i, tensor_get(&sum, i) + tensor_get(&c->gradient[w], i));
  run_call(NX_OP_onebitadam, c->numbers,
           &(call){{&c->p, &c->m, &c->v, &sum, &c->lr, &c->decay, &c->scale, &c->step}, {&c->p, &c->m, &c->v},
                   8, 3});
  tensors_free(&sum, 1);
}

static void compressed_step(crowd *c) {
  json_t *numbers = json_deep_copy(c->numbers);
  json_object_set_new(numbers, "workers", json_integer(c->n));
  for (int64_t w = 0; w < c->n; w++)
    run_call(NX_OP_onebit_pack, numbers,
             &(call){{&c->m, &c->gradient[w], &c->error[w], &c->scale},
                     {&c->error[w], &c->bits[w], &c->size[w]},
                     4,
                     3});
  gather(&c->sizes, c->size, c->n);
  for (int64_t server = 0; server < c->n; server++) {
    uint64_t part = c->mean[server].n_bytes;
    for (int64_t w = 0; w < c->n; w++)
      memcpy((char *)c->received.data + (uint64_t)w * part,
             (char *)c->bits[w].data + (uint64_t)server * part, part);
    run_call(NX_OP_onebit_sum, numbers,
             &(call){{&c->received, &c->sizes, &c->served[server], &c->scale},
                     {&c->served[server], &c->mean[server], &c->mean_size[server]}, 4, 3});
  }
  gather(&c->all_bits, c->mean, c->n);
  gather(&c->all_sizes, c->mean_size, c->n);
  run_call(NX_OP_onebit_apply, numbers,
           &(call){{&c->p, &c->m, &c->v, &c->all_bits, &c->all_sizes, &c->lr, &c->decay, &c->scale, &c->step},
                   {&c->p, &c->m}, 9, 2});
  json_decref(numbers);
}

/* Sizes and errors are fp32, all else is as recorded. */
static void workers_share_their_signs(void **state) {
  (void)state;
  const json_t *wide = json_object_get(recorded, "wide"), *entry, *gradient;
  size_t index, step;
  json_array_foreach(json_object_get(wide, "cases"), index, entry) {
    const json_t *final = json_object_get(entry, "final"), *rates = json_object_get(entry, "rates");
    crowd c = new_crowd(entry, json_object_get(wide, "start"));
    size_t frozen = (size_t)json_integer_value(json_object_get(c.numbers, "freeze_step"));
    tensor_set(&c.scale, 0, 1);
    json_array_foreach(json_object_get(wide, "gradients"), step, gradient) {
      share_gradient(&c, gradient);
      tensor_set(&c.lr, 0, at(rates, step));
      tensor_set(&c.step, 0, (double)step);
      if (step + 1 < frozen) plain_step(&c);
      else compressed_step(&c);
    }
    assert_int_equal(step, 20);
    for (int64_t i = 0; i < c.n_elements; i++)
      if (!(fabs(tensor_get(&c.p, i) - at(final, (size_t)i)) <= 1e-6))
        fail_msg("%lld workers, element %lld: %.17g, recorded %.17g", (long long)c.n, (long long)i,
                 tensor_get(&c.p, i), at(final, (size_t)i));
    free_crowd(&c);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(workers_share_their_signs)};
  recorded = argc > 1 ? json_load_file(argv[1], 0, NULL) : NULL;
  if (recorded == NULL) {
    fprintf(stderr, "usage: test_onebit RECORDED.json\n");
    return 2;
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  json_decref(recorded);
  return failed;
}
