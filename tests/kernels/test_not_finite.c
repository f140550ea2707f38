/* SPDX-License-Identifier: Apache-2.0 */
/* test_not_finite BACKEND: numbers that have run away are not hidden: what reads them is no number. */
#include "tests/kernels/ref_run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static const nxk_backend *backend;

static double first_output(nx_op op, uint32_t n_in, uint32_t n_out, tensor *args, const nxk_attr *attrs,
                           int out) {
  run_on(backend, op, n_in, n_out, args, attrs);
  double found = tensor_get(&args[n_in + (uint32_t)out], 0);
  tensors_free(args, (int)(n_in + n_out));
  return found;
}

/* Squares beyond fp32: 1 / infinity would be a norm of zeros. */
static void a_norm_of_what_overflows_is_no_number(void **state) {
  (void)state;
  for (int with_mean = 0; with_mean < 2; with_mean++) {
    tensor args[5] = {tensor_of(NX_f32, 1, 8, 0, 0), tensor_of(NX_f32, 8, 0, 0, 0),
                      tensor_of(NX_f32, 1, 8, 0, 0), tensor_of(NX_f32, 1, 0, 0, 0),
                      tensor_of(NX_f32, 1, 0, 0, 0)};
    for (int64_t i = 0; i < 8; i++) tensor_set(&args[0], i, i % 2 ? 1e25 : -1e25), tensor_set(&args[1], i, 1);
    nx_op op = with_mean ? NX_OP_layer_norm : NX_OP_rms_norm;
    assert_true(isnan(first_output(op, 2, with_mean ? 3 : 2, args, (nxk_attr[NX_MAX_ATTRS]){real(1e-5)}, 0)));
    if (!with_mean) free(args[4].data);
  }
}

static void a_loss_of_no_numbers_is_none(void **state) {
  (void)state;
  tensor args[4] = {tensor_of(NX_f32, 1, 4, 0, 0), tensor_of(NX_i32, 1, 0, 0, 0),
                    tensor_of(NX_f32, 1, 1, 3, 0)};
  for (int64_t i = 0; i < 4; i++) tensor_set(&args[0], i, NAN);
  tensor_set(&args[1], 0, 2);
  run_on(backend, NX_OP_ce_stats, 2, 1, args, (nxk_attr[NX_MAX_ATTRS]){whole(0), whole(4)});
  tensor loss[3] = {args[2], tensor_of(NX_f32, 1, 0, 0, 0), tensor_of(NX_f64, 1, 0, 0, 0)};
  tensors_free(args, 2);
  assert_true(isnan(first_output(NX_OP_ce_loss, 1, 2, loss, (nxk_attr[NX_MAX_ATTRS]){whole(0)}, 1)));
}

/* Even where a shard begins with more of them than are looked at together. */
static void logits_of_minus_infinity_weigh_nothing(void **state) {
  (void)state;
  enum { N = 1100 };
  tensor args[3] = {tensor_of(NX_f32, 1, N, 0, 0), tensor_of(NX_i32, 1, 0, 0, 0),
                    tensor_of(NX_f32, 1, 1, 3, 0)};
  for (int64_t i = 0; i < N; i++) tensor_set(&args[0], i, i < N - 2 ? -INFINITY : -500);
  tensor_set(&args[1], 0, N - 1);
  run_on(backend, NX_OP_ce_stats, 2, 1, args, (nxk_attr[NX_MAX_ATTRS]){whole(0), whole(N)});
  assert_true(tensor_get(&args[2], 0) == -500 && tensor_get(&args[2], 1) == 2);
  tensors_free(args, 3);
}

static double scale_of(double squares, double clip, bool goes_on) {
  tensor args[3] = {tensor_of(NX_f64, 1, 0, 0, 0), tensor_of(NX_f64, 1, 0, 0, 0),
                    tensor_of(NX_f64, 1, 0, 0, 0)};
  tensor_set(&args[0], 0, squares);
  ref_run(NX_OP_clip_scale, 1, 2, args, /* every backend takes it from ref */
          (nxk_attr[NX_MAX_ATTRS]){real(clip), whole(0), whole(goes_on)});
  double scale = tensor_get(&args[2], 0);
  tensors_free(args, 3);
  return scale;
}

static void a_scale_by_no_number_is_none(void **state) {
  (void)state;
  assert_true(isnan(scale_of((double)NAN, 1, false)));
  assert_true(isnan(scale_of((double)INFINITY, DBL_MAX, false)));
}

/* As Megatron's clip_grad_by_total_norm_fp32 has it, whose test for NaN is off. */
static void or_gradients_that_are_no_numbers_are_scaled(void **state) {
  (void)state;
  assert_true(scale_of((double)NAN, 1, true) == 1);
  assert_true(scale_of((double)INFINITY, 1, true) == 0);
  assert_true(scale_of((double)INFINITY, DBL_MAX, true) == 1);
  assert_true(scale_of(4, 1, true) == scale_of(4, 1, false));
}

enum { WIDTH = 32, TOKENS = 2 };

static void row_fill(tensor *x, int64_t row, double value) {
  for (int64_t i = 0; i < WIDTH; i++) tensor_set(x, row * WIDTH + i, value);
}

static const nxk_attr *plain_attention(void) {
  static nxk_attr attrs[NX_MAX_ATTRS];
  for (int i = 0; i < NX_MAX_ATTRS; i++) attrs[i] = whole(0);
  attrs[NX_attention_scale] = real(0.125);
  attrs[NX_attention_dropout] = attrs[NX_attention_soft_cap] = real(0);
  attrs[NX_attention_layer_number] = whole(1);
  return attrs;
}

/* q, k, v, samples, o, lse of two tokens of one head. */
static void attention_of(nx_dtype type, double first_query, double first_key, double second_query,
                         tensor *args) {
  for (int i = 0; i < 3; i++) args[i] = tensor_of(type, 1, 1, TOKENS, WIDTH);
  args[3] = tensor_of(NX_i64, 1, 0, 0, 0);
  args[4] = tensor_of(type, 1, TOKENS, WIDTH, 0), args[5] = tensor_of(NX_f32, 1, 1, TOKENS, 0);
  row_fill(&args[0], 0, first_query), row_fill(&args[0], 1, second_query);
  row_fill(&args[1], 0, first_key), row_fill(&args[1], 1, 0);
  row_fill(&args[2], 0, 3), row_fill(&args[2], 1, 5);
  tensor_set(&args[3], 0, 0);
  run_on(backend, NX_OP_attention, 4, 2, args, plain_attention());
}

/* A query that has no other score reads nothing. */
static void a_score_of_minus_infinity_weighs_nothing(void **state) {
  (void)state;
  for (int narrow = 0; narrow < 2; narrow++) {
    tensor args[6];
    attention_of(narrow ? NX_bf16 : NX_f32, 1, -INFINITY, 1, args);
    assert_true(tensor_get(&args[4], 0) == 0 && tensor_get(&args[5], 0) == -INFINITY);
    for (int64_t i = 0; i < WIDTH; i++) assert_true(tensor_get(&args[4], WIDTH + i) == 5);
    assert_true(tensor_get(&args[5], 1) == 0);
    tensors_free(args, 6);
  }
}

/* Finite numbers, of which a product stands below all of fp32. */
static void a_score_that_overflows_has_no_gradient(void **state) {
  (void)state;
  for (int narrow = 0; narrow < 2; narrow++) {
    tensor args[6], grads[10];
    nx_dtype type = narrow ? NX_bf16 : NX_f32;
    attention_of(type, 0, -1e30, 1e30, args);
    for (int64_t i = 0; i < WIDTH; i++) assert_true(tensor_get(&args[4], WIDTH + i) == 5);
    grads[0] = tensor_of(type, 1, TOKENS, WIDTH, 0);
    row_fill(&grads[0], 0, 1), row_fill(&grads[0], 1, 1);
    const int inputs[] = {0, 1, 2, 4, 5, 3};
    for (int i = 0; i < 6; i++) grads[1 + i] = args[inputs[i]];
    for (int i = 7; i < 10; i++) grads[i] = tensor_of(type, 1, 1, TOKENS, WIDTH);
    run_on(backend, NX_OP_attention_grad, 7, 3, grads, plain_attention());
    for (int64_t i = 0; i < TOKENS * WIDTH; i++) {
      assert_true(tensor_get(&grads[7], i) == 0 && tensor_get(&grads[8], i) == 0);
      assert_true(tensor_get(&grads[9], i) == 1);
    }
    tensors_free(grads, 10);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_norm_of_what_overflows_is_no_number),
      cmocka_unit_test(a_loss_of_no_numbers_is_none),
      cmocka_unit_test(logits_of_minus_infinity_weigh_nothing),
      cmocka_unit_test(a_scale_by_no_number_is_none),
      cmocka_unit_test(or_gradients_that_are_no_numbers_are_scaled),
      cmocka_unit_test(a_score_of_minus_infinity_weighs_nothing),
      cmocka_unit_test(a_score_that_overflows_has_no_gradient),
  };
  backend = nxk_backend_find(argc > 1 ? argv[1] : "ref");
  return backend == NULL || cmocka_run_group_tests(tests, NULL, NULL);
}
