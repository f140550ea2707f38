/* SPDX-License-Identifier: Apache-2.0 */
/* What products in fp8 and fp4 cost a step. Each test changes one thing. */
#include "compiler/estimate/memory.h"
#include "compiler/estimate/product.h"
#include "compiler/machine/names.h"
#include "compiler/program/forecast/cost.h"
#include "tests/unit/timed_case.h"

#include <math.h>

/* A product in fp8 takes more than half of one in bf16: casts come to it, and short sums fill no pipeline. */
static void test_fp8(void **unused) {
  (void)unused;
  timed wide = time_of("megatron", "h100", MODEL "mesh.world=1"),
        narrow = time_of("megatron", "h100", MODEL "mesh.world=1 precision.products=fp8");
  double casts = narrow.t.parts[NXC_SPENT_POINTWISE] - wide.t.parts[NXC_SPENT_POINTWISE];
  /* inputs of four products and gradients of their results, 2.5 elements of 2 bytes moved for each */
  double elements = 24.0 * 64 * 2048 * ((3 * 2048 + 8192) + (3 + 1 + 4 + 1) * 2048);
  assert_true(fabs(casts - elements * 5 / 2.95e12) < 1e-3 * casts);
  const nxc_device *device = nxc_machine_read(wide.e.c.arena, "h100", wide.e.c.sink)->device;
  nxc_product is_short = {2048, 2048, 512, 1, 2, false}, is_long = {2048, 2048, 65536, 1, 2, false};
  double short_s = nxc_product_s(device, &is_short), long_s = nxc_product_s(device, &is_long);
  is_short.fp8 = is_long.fp8 = true;
  assert_true(nxc_product_s(device, &is_short) > 0.6 * short_s);
  assert_true(nxc_product_s(device, &is_long) < 0.51 * long_s);
  program_end(&wide.e.c);
  program_end(&narrow.e.c);
}

/* Gradients of weights that are no products in fp8 take as long as in bf16, and what is cast has one layout.
 */
static void test_fp8_backward(void **unused) {
  (void)unused;
#define NARROW MODEL "mesh.world=1 precision.products=fp8 precision.fp8_backward="
  timed wide = time_of("megatron", "h100", MODEL "mesh.world=1"),
        all = time_of("megatron", "h100", NARROW "all"),
        inputs = time_of("megatron", "h100", NARROW "inputs"),
        none = time_of("megatron", "h100", NARROW "none");
  const double *of_wide = wide.t.parts, *of_all = all.t.parts, *of_inputs = inputs.t.parts,
               *of_none = none.t.parts;
  double gained = of_wide[NXC_SPENT_PRODUCTS] - of_all[NXC_SPENT_PRODUCTS];
  assert_true(of_inputs[NXC_SPENT_PRODUCTS] > of_all[NXC_SPENT_PRODUCTS] + 0.25 * gained);
  assert_true(of_none[NXC_SPENT_PRODUCTS] > of_inputs[NXC_SPENT_PRODUCTS] + 0.25 * gained);
  assert_true(of_none[NXC_SPENT_PRODUCTS] < of_wide[NXC_SPENT_PRODUCTS] - 0.25 * gained);
  double casts = of_all[NXC_SPENT_POINTWISE] - of_wide[NXC_SPENT_POINTWISE];
  assert_true(fabs(of_inputs[NXC_SPENT_POINTWISE] - of_wide[NXC_SPENT_POINTWISE] - 0.8 * casts) <
              1e-6 * casts);
  assert_true(of_none[NXC_SPENT_POINTWISE] < of_inputs[NXC_SPENT_POINTWISE]);
  program_end(&wide.e.c);
  program_end(&all.e.c);
  program_end(&inputs.e.c);
  program_end(&none.e.c);
}

/* Scales of rows and columns take two more reads, slower products, and none that gathers as it goes; other
 * scales do not. */
static void test_fp8_rows(void **unused) {
  (void)unused;
#define FP8                                                                                                  \
  MODEL "mesh.world=8 mesh.tensor=8 sequence_parallel=true tensor.overlap=true precision.products=fp8 "
  timed one = time_of("xorl", "h100", FP8 "precision.fp8_recipe=tensorwise"),
        rows = time_of("xorl", "h100", FP8 "precision.fp8_recipe=rowwise"),
        delayed = time_of("xorl", "h100", FP8 "precision.fp8_recipe=delayed");
  assert_true(rows.t.parts[NXC_SPENT_POINTWISE] > 1.05 * one.t.parts[NXC_SPENT_POINTWISE]);
  assert_true(rows.t.parts[NXC_SPENT_PRODUCTS] > 1.1 * one.t.parts[NXC_SPENT_PRODUCTS]);
  assert_true(rows.t.parts[NXC_SPENT_TENSOR] > 2 * one.t.parts[NXC_SPENT_TENSOR]);
  assert_true(delayed.t.step_s == one.t.step_s);
  program_end(&one.e.c);
  program_end(&rows.e.c);
  program_end(&delayed.e.c);
}

/* Where a device has fp4 its products go faster than in fp8; where it has none, as fast. */
static void test_fp4(void **unused) {
  (void)unused;
#define IN(type) MODEL "mesh.world=1 precision.products=" #type
  double wide = spent("nx", "gb200", IN(fp8), NXC_SPENT_PRODUCTS);
  double narrow = spent("nx", "gb200", IN(fp4), NXC_SPENT_PRODUCTS);
  assert_true(narrow < 0.95 * wide && narrow > 0.5 * wide);
  wide = spent("nx", "h100", IN(fp8), NXC_SPENT_PRODUCTS);
  assert_true(spent("nx", "h100", IN(fp4), NXC_SPENT_PRODUCTS) == wide);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fp8),
      cmocka_unit_test(test_fp8_backward),
      cmocka_unit_test(test_fp8_rows),
      cmocka_unit_test(test_fp4),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
