/* SPDX-License-Identifier: Apache-2.0 */
/* What the records can not say: bf16, random numbers and their masks, workspace. */
#include "tests/kernels/ref_run.h"

#include "schema/bf16.h"
#include "schema/philox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void bf16_rounds(void **state) {
  (void)state;
  static const struct {
    uint32_t from;
    uint16_t to;
  } cases[] = {
      {0x3F800000, 0x3F80}, /* 1 */
      {0x3F808000, 0x3F80}, /* a tie goes to the even neighbour below */
      {0x3F818000, 0x3F82}, /* and above */
      {0x3F808001, 0x3F81}, {0x3F807FFF, 0x3F80}, {0xBF818000, 0xBF82},
      {0x7F7FFFFF, 0x7F80}, /* the largest float overflows */
      {0x7F7F7FFF, 0x7F7F}, {0x7F800000, 0x7F80}, {0xFF800000, 0xFF80},
      {0x7FC00000, 0x7FC0}, {0x7F800001, 0x7FC0}, {0xFFA00000, 0xFFE0}, /* NaNs stay, and become quiet */
      {0x007FFFFF, 0x0000}, {0x80000001, 0x8000},                       /* denormals are zeros */
      {0x00800000, 0x0080}, {0x80000000, 0x8000},
  };
  for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
    assert_int_equal(nx_bf16_from_bits(cases[index].from), cases[index].to);
    float value = float_of(cases[index].from);
    if (!isnan(value)) assert_int_equal(nx_bf16_from_float(value), cases[index].to);
  }
  assert_true(nx_bf16_to_float(0x3F80) == 1.0f);
  assert_true(nx_bf16_to_float(0xC040) == -3.0f);
  assert_true(nx_bf16_to_float(0x0001) == 0.0f);
  assert_true(signbit(nx_bf16_to_float(0x8001)));
  for (uint32_t half = 0; half < 65536; half++) {
    bool denormal = (half & 0x7F80) == 0, nan = (half & 0x7F80) == 0x7F80 && (half & 0x7F);
    uint16_t back = nx_bf16_from_float(nx_bf16_to_float((uint16_t)half));
    if (!nan) assert_int_equal(back, denormal ? half & 0x8000 : half);
  }
}

static void bf16_rounds_doubles_once(void **state) {
  (void)state;
  /* just above and below a tie, by less than a float can hold */
  assert_int_equal(nx_bf16_from_double(1.00390625 + 1e-12), 0x3F81);
  assert_int_equal(nx_bf16_from_double(1.00390625 - 1e-12), 0x3F80);
  assert_int_equal(nx_bf16_from_double(1.01171875 - 1e-12), 0x3F81);
  assert_int_equal(nx_bf16_from_double(1.01171875 + 1e-12), 0x3F82);
  assert_int_equal(nx_bf16_from_double(-1.01171875 + 1e-12), 0xBF81);
  assert_int_equal(nx_bf16_from_double(1.00390625), 0x3F80);
  assert_int_equal(nx_bf16_from_double(1e300), 0x7F80);
  assert_int_equal(nx_bf16_from_double(-INFINITY), 0xFF80);
  assert_int_equal(nx_bf16_from_double(1e-300), 0);
  assert_true(isnan(nx_bf16_to_float(nx_bf16_from_double(NAN))));
}

/* Known answers of Random123, kat_vectors: philox4x32 10. */
static void philox_known_answers(void **state) {
  (void)state;
  nx_philox zeros = nx_philox_draw(0, 0, 0, 0, 0, 0),
            ones = nx_philox_draw(UINT64_MAX, 0, ~0u, ~0u, ~0u, ~0u);
  nx_philox pi =
      nx_philox_draw(UINT64_C(0x299f31d0a4093822), 0, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344);
  assert_memory_equal(&zeros, ((uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}), sizeof zeros);
  assert_memory_equal(&ones, ((uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}), sizeof ones);
  assert_memory_equal(&pi, ((uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}), sizeof pi);
}

/* Dropout of ones: [1,S,F] of one sample. */
static tensor dropout_of_ones(double p, uint32_t tensor_id, int64_t sample, int64_t seq_start, int64_t first,
                              int64_t n_tokens, int64_t width) {
  tensor args[3] = {tensor_of(NX_f32, 1, n_tokens, width, 0), tensor_of(NX_i64, 1, 0, 0, 0),
                    tensor_of(NX_f32, 1, n_tokens, width, 0)};
  for (int64_t i = 0; i < args[0].n_elements; i++) tensor_set(&args[0], i, 1);
  tensor_set(&args[1], 0, (double)sample);
  ref_run(NX_OP_dropout, 2, 1, args,
          (nxk_attr[NX_MAX_ATTRS]){real(p), whole(tensor_id), whole(seq_start), whole(first)});
  tensors_free(args, 2);
  return args[2];
}

static void dropout_keeps_its_share(void **state) {
  (void)state;
  static const double probabilities[] = {0.1, 0.5, 0.9};
  for (int index = 0; index < 3; index++) {
    double p = probabilities[index], n_kept = 0, n_both = 0;
    tensor y = dropout_of_ones(p, 5, 77, 0, 0, 400, 250), other = dropout_of_ones(p, 6, 77, 0, 0, 400, 250);
    for (int64_t i = 0; i < y.n_elements; i++) {
      double value = tensor_get(&y, i);
      assert_true(value == 0 || value == (float)(1 / (1 - p)));
      n_kept += value != 0;
      n_both += value != 0 && tensor_get(&other, i) != 0;
    }
    double n = (double)y.n_elements, keep = 1 - p;
    assert_true(fabs(n_kept - n * keep) < 5 * sqrt(n * p * keep));
    /* masks of different tensors are independent */
    assert_true(fabs(n_both - n * keep * keep) < 5 * sqrt(n * keep * keep * (1 - keep * keep)));
    free(y.data);
    free(other.data);
  }
}

static void dropout_does_not_depend_on_the_mesh(void **state) {
  (void)state;
  enum { TOKENS = 9, WIDTH = 30 };
  int64_t sample = INT64_C(1) << 33;
  tensor all = dropout_of_ones(0.4, 9, sample, 0, 0, TOKENS, WIDTH),
         low = dropout_of_ones(0.4, 9, 0, 0, 0, TOKENS, WIDTH);
  tensor part = dropout_of_ones(0.4, 9, sample, 4, 13, 3, 11);
  for (int64_t token = 0; token < 3; token++)
    for (int64_t i = 0; i < 11; i++)
      assert_true(tensor_get(&part, token * 11 + i) == tensor_get(&all, (4 + token) * WIDTH + 13 + i));
  assert_memory_not_equal(all.data, low.data, all.n_bytes); /* all 64 bits of a sample number count */
  free(all.data);
  free(low.data);
  free(part.data);
}

/* Attention of `heads` heads from `first` of four, one sequence of 13, d 4; head h and key j are sines and
 * cosines of where they stand. */
static tensor attention_of(int64_t first, int64_t heads, double dropout) {
  enum { S = 13, D = 4 };
  tensor args[6] = {tensor_of(NX_f64, 1, heads, S, D),     tensor_of(NX_f64, 1, heads, S, D),
                    tensor_of(NX_f64, 1, heads, S, D),     tensor_of(NX_i64, 1, 0, 0, 0),
                    tensor_of(NX_f64, 1, S, heads * D, 0), tensor_of(NX_f64, 1, heads, S, 0)};
  for (int64_t i = 0; i < args[0].n_elements; i++) {
    double where = (double)(i + first * S * D);
    tensor_set(&args[0], i, sin(where));
    tensor_set(&args[1], i, cos(3 * where));
    tensor_set(&args[2], i, 1 + sin(7 * where));
  }
  tensor_set(&args[3], 0, 1234);
  ref_run(NX_OP_attention, 4, 2, args,
          (nxk_attr[NX_MAX_ATTRS]){real(0.5), whole(3), real(dropout), whole(8), whole(first)});
  tensors_free(args, 4);
  free(args[5].data);
  return args[4];
}

static void attention_dropout_does_not_depend_on_the_mesh(void **state) {
  (void)state;
  tensor all = attention_of(0, 4, 0.3), part = attention_of(2, 2, 0.3), kept = attention_of(0, 4, 0);
  bool differs = false;
  for (int64_t token = 0; token < 13; token++)
    for (int64_t i = 0; i < 8; i++) {
      assert_true(tensor_get(&part, token * 8 + i) == tensor_get(&all, token * 16 + 8 + i));
      differs = differs || fabs(tensor_get(&all, token * 16 + i) - tensor_get(&kept, token * 16 + i)) > 0.1;
    }
  assert_true(differs);
  free(all.data);
  free(part.data);
  free(kept.data);
}

/* Values of one, keys of zero: o is the share of kept keys, divided by 1 - p. */
static void attention_dropout_keeps_its_share(void **state) {
  (void)state;
  enum { S = 300 };
  double p = 0.2, sum = 0, n = 0;
  tensor args[6] = {tensor_of(NX_f64, 1, 2, S, 1), tensor_of(NX_f64, 1, 2, S, 1),
                    tensor_of(NX_f64, 1, 2, S, 1), tensor_of(NX_i64, 1, 0, 0, 0),
                    tensor_of(NX_f64, 1, S, 2, 0), tensor_of(NX_f64, 1, 2, S, 0)};
  for (int64_t i = 0; i < 2 * S; i++) tensor_set(&args[2], i, 1);
  ref_run(NX_OP_attention, 4, 2, args,
          (nxk_attr[NX_MAX_ATTRS]){real(1), whole(1), real(p), whole(8), whole(0)});
  for (int64_t token = 0; token < S; token++)
    for (int64_t head = 0; head < 2; head++) {
      double n_keys = (double)(token + 1);
      sum += tensor_get(&args[4], token * 2 + head) * n_keys * (1 - p);
      n += n_keys;
    }
  assert_true(fabs(sum - n * (1 - p)) < 5 * sqrt(n * p * (1 - p)));
  tensors_free(args, 6);
}

static void workspace_has_a_ceiling(void **state) {
  (void)state;
  nxk_device_options options = {.n_threads = 1, .workspace_bytes = 64};
  nxk_fault fault = {{0}};
  nxk_device *device;
  nxk_kernel *kernel;
  nxk_operator operator = {.op = NX_OP_bias_grad, .n_in = 1, .n_out = 1, .n_attrs = 1};
  operator.args[0] = (nxk_tensor){NX_f32, 2, {3, 4, 1, 1}, NX_ARENA_scratch, 0, UINT32_MAX};
  operator.args[1] = (nxk_tensor){NX_f32, 1, {4, 1, 1, 1}, NX_ARENA_scratch, 64, UINT32_MAX};
  operator.attrs[0] = whole(0);
  assert_true(nxk_ref.open(&options, &device, &fault));
  assert_true(nxk_ref.bind(device, &operator, &kernel, &fault));
  assert_int_equal(nxk_ref.workspace_bytes(device), 64);
  operator.args[0].dims[1] = operator.args[1].dims[0] = 5;
  assert_false(nxk_ref.bind(device, &operator, &kernel, &fault));
  assert_non_null(strstr(fault.text, "bias_grad"));
  operator.args[0].dtype = NX_f8e4m3;
  fault.text[0] = '\0';
  assert_false(nxk_ref.bind(device, &operator, &kernel, &fault));
  assert_non_null(strstr(fault.text, "f8e4m3"));
  nxk_ref.close(device);
}

static void arenas_are_zeroed(void **state) {
  (void)state;
  nxk_device_options options = {.n_threads = 1};
  nxk_fault fault = {{0}};
  nxk_device *device;
  void *own, *lent;
  char window[100];
  memset(window, 1, sizeof window);
  assert_true(nxk_ref.open(&options, &device, &fault));
  assert_true(nxk_ref.arena_open(device, NX_ARENA_grad, 5000, NULL, &own, &fault));
  assert_true(nxk_ref.arena_open(device, NX_ARENA_comm, 99, window, &lent, &fault));
  assert_ptr_equal(lent, window);
  for (int i = 0; i < 5000; i++) assert_int_equal(((char *)own)[i], 0);
  for (int i = 0; i < 99; i++) assert_int_equal(window[i], 0);
  assert_int_equal(window[99], 1);
  nxk_ref.close(device);
}

static void denormals_are_zeros(void **state) {
  (void)state;
  tensor args[2] = {tensor_of(NX_f32, 2, 0, 0, 0), tensor_of(NX_f64, 2, 0, 0, 0)};
  memcpy(args[0].data, ((uint32_t[]){0x007FFFFF, 0x00800000}), 8);
  ref_run(NX_OP_cast, 1, 1, args, NULL);
  assert_true(tensor_get(&args[1], 0) == 0);
  assert_true(tensor_get(&args[1], 1) == 0x1p-126);
  tensors_free(args, 2);
}

static void backends_have_names(void **state) {
  (void)state;
  assert_ptr_equal(nxk_backend_find("ref"), &nxk_ref);
  assert_null(nxk_backend_find("reference"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bf16_rounds),
      cmocka_unit_test(bf16_rounds_doubles_once),
      cmocka_unit_test(philox_known_answers),
      cmocka_unit_test(dropout_keeps_its_share),
      cmocka_unit_test(dropout_does_not_depend_on_the_mesh),
      cmocka_unit_test(attention_dropout_keeps_its_share),
      cmocka_unit_test(attention_dropout_does_not_depend_on_the_mesh),
      cmocka_unit_test(workspace_has_a_ceiling),
      cmocka_unit_test(arenas_are_zeroed),
      cmocka_unit_test(denormals_are_zeros),
      cmocka_unit_test(backends_have_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
