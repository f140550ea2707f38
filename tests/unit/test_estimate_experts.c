/* SPDX-License-Identifier: Apache-2.0 */
/* What experts cost a step: what is exchanged, who waits, and what is multiplied. Each test changes one
 * thing. */
#include "compiler/estimate/memory.h"
#include "compiler/estimate/product.h"
#include "compiler/machine/names.h"
#include "compiler/program/forecast/cost.h"
#include "tests/unit/timed_case.h"

#include <math.h>

/* Rows go to experts beneath the work of another micro-batch, and take some of the device's units from it;
 * a single micro-batch has nothing to go beneath. */
static void test_experts(void **unused) {
  (void)unused;
  double open = spent("megatron", "h100", EXPERTS "batch.global=320", NXC_SPENT_EXPERT);
  double hidden = spent("megatron", "h100", EXPERTS "batch.global=320 moe.overlap=true", NXC_SPENT_EXPERT);
  double alone = 0.1, taken = 20.0 / 132; /* one of ten micro-batches; units of an H100 */
  assert_true(fabs(hidden / open - (alone + (1 - alone) * taken)) < 1e-6);
  open = spent("megatron", "h100", EXPERTS "batch.global=32", NXC_SPENT_EXPERT);
  hidden = spent("megatron", "h100", EXPERTS "batch.global=32 moe.overlap=true", NXC_SPENT_EXPERT);
  assert_true(open > 0 && fabs(hidden - open) < 1e-9);
}

/* Experts that are not forced to be balanced: the busiest rank sets the pace, and needs room for more than
 * its mean; a capacity is the most, and what corrects the choice balances all but the first steps. */
static void test_overload(void **unused) {
  (void)unused;
#define UNBALANCED EXPERTS "batch.global=320 moe.random_logits=false "
  timed balanced = time_of("megatron", "h100", EXPERTS "batch.global=320"),
        open = time_of("megatron", "h100", UNBALANCED),
        corrected =
            time_of("megatron", "h100", UNBALANCED "moe.router_correction=true moe.correction_rate=0.001"),
        dropping = time_of("megatron", "h100", UNBALANCED "moe.capacity_factor=1.05");
  const nxc_sizes *z = &open.e.sizes;
  double rows = balanced.e.sizes.expert_rows;
  assert_true(balanced.e.sizes.overload == 1 && rows == z->tokens * z->top_k);
  assert_true(fabs(z->overload - (1 + sqrt(7.0 / 8 / 178 * 2 * log(8)))) < 1e-9);
  assert_true(fabs(z->expert_rows / rows - (1 + sqrt(7.0 / 8 / 18 * 2 * log(8)))) < 1e-9);
  double sent = open.t.parts[NXC_SPENT_EXPERT] / balanced.t.parts[NXC_SPENT_EXPERT];
  assert_true(sent > 1.1 && sent < z->overload);
  assert_true(open.t.parts[NXC_SPENT_PRODUCTS] > 1.05 * balanced.t.parts[NXC_SPENT_PRODUCTS]);
  assert_true(corrected.t.step_s == balanced.t.step_s && corrected.e.sizes.expert_rows == z->expert_rows);
  assert_true(dropping.e.sizes.overload == 1.05 && fabs(dropping.e.sizes.expert_rows / rows - 1.05) < 1e-9);
  program_end(&balanced.e.c);
  program_end(&open.e.c);
  program_end(&corrected.e.c);
  program_end(&dropping.e.c);
}

/* A token goes once to each rank that has experts of it, where it may be sorted and padded as it comes; one
 * kernel for an expert's products leaves the activation and two of four casts out. */
static void test_joined(void **unused) {
  (void)unused;
#define JOINED EXPERTS "batch.global=320 precision.products=fp8 kernels.joined="
  double rows = spent("megatron", "h100", JOINED "[]", NXC_SPENT_EXPERT);
  double once = spent("megatron", "h100", JOINED "[copies]", NXC_SPENT_EXPERT);
  double places = 1 - pow(7.0 / 8, 8);            /* of eight ranks, with eight copies of a token */
  assert_true(fabs(once / rows - places) < 0.01); /* less what each exchange takes to begin */
  double copies = spent("megatron", "h100", JOINED "[copies]", NXC_SPENT_POINTWISE);
  timed sorted = time_of("megatron", "h100", JOINED "[copies,sorting]");
  const nxc_sizes z = sorted.e.sizes;
  double all_rows = z.tokens * z.top_k * z.layers * z.micro_batches;
  double row = 2 * 1.25 * 2.7 / 2.95e12 * all_rows;
  double sorting = sorted.t.parts[NXC_SPENT_POINTWISE];
  assert_true(fabs((copies - sorting) / (4 * row * z.hidden) - 1) < 1e-6);
  double experts = spent("megatron", "h100", JOINED "[copies,sorting,experts]", NXC_SPENT_POINTWISE);
  double filled = 1 + 8 * 7.5 / (z.tokens * z.top_k); /* of eight experts each to a multiple of 16 */
  double casts = 2.5 * 2 / 2.95e12 * all_rows * 3 * z.expert_ffn;
  assert_true(fabs((sorting - experts) / (filled * (3 * row * z.expert_ffn + casts)) - 1) < 1e-6);
  program_end(&sorted.e.c);
}

/* Ranks that divide an expert gather its rows, and sum what they make of them; beside experts that are whole
 * on a rank tensor-parallel ones exchange the attention's alone. */
static void test_divided_experts(void **unused) {
  (void)unused;
#define DIVIDED_EXPERTS                                                                                      \
  EXPERTS "batch.global=320 mesh.world=16 mesh.tensor=2 sequence_parallel=true kernels.joined=[] "
  double whole = spent("megatron", "h100", DIVIDED_EXPERTS, NXC_SPENT_EXPERT);
  timed divided = time_of("megatron", "h100", DIVIDED_EXPERTS "mesh.expert=4 mesh.expert_tensor=2");
  const nxc_sizes z = divided.e.sizes;
  double often = 4 * z.layers * z.micro_batches, rows = 2 * z.tokens * z.top_k * z.hidden;
  double gather = rows / 2 / 3.51e11 + 8.4e-6 + 3.4e-6, sent = rows / 2 * (7.0 / 8 - 3.0 / 4) / 3.51e11;
  double more = divided.t.parts[NXC_SPENT_EXPERT] - whole;
  assert_true(fabs(more / (often * (gather - sent)) - 1) < 1e-6);
  double tensor = divided.t.parts[NXC_SPENT_TENSOR];
  program_end(&divided.e.c);
  double shared = spent("megatron", "h100", DIVIDED_EXPERTS "moe.shared_ffn_hidden=64", NXC_SPENT_TENSOR);
  assert_true(tensor > 0 && fabs(shared / tensor - 2) < 0.05); /* beside what the output layer exchanges */
}

/* Experts with room for 1.25 of a balanced load multiply the empty rows too where shapes are fixed before the
 * launch; with room for half of it nobody multiplies the rest. */
static void test_capacity(void **unused) {
  (void)unused;
  double all = spent("megatron", "h100", EXPERTS, NXC_SPENT_PRODUCTS);
  double room = spent("megatron", "h100", EXPERTS "moe.capacity_factor=1.25", NXC_SPENT_PRODUCTS);
  double half = spent("megatron", "h100", EXPERTS "moe.capacity_factor=0.5", NXC_SPENT_PRODUCTS);
  assert_true(room == all && half < 0.8 * all);
  all = spent("nxdt", "trn1", EXPERTS, NXC_SPENT_PRODUCTS);
  room = spent("nxdt", "trn1", EXPERTS "moe.capacity_factor=1.25", NXC_SPENT_PRODUCTS);
  assert_true(room > 1.1 * all && room < 1.25 * all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_experts),         cmocka_unit_test(test_overload), cmocka_unit_test(test_joined),
      cmocka_unit_test(test_divided_experts), cmocka_unit_test(test_capacity),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
