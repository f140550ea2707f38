/* SPDX-License-Identifier: Apache-2.0 */
/* A plan whose hashes are right and whose operators are not what their rows in ops.def allow is refused:
 * every attribute outside its bounds, a constant where one number must stand, relations to shapes, bytes that
 * are shared.
 *
 *     test_plan_operators PLAN...      each attribute of each operator of the plans is tried */
#include "tests/plan_edit.h"

#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLANS = 8 };

static struct {
  uint8_t *bytes;
  uint64_t n_bytes;
} plans[MOST_PLANS];
static int n_plans;

/* Why the plan is refused; NULL: it is not. */
static const char *refused(int plan) {
  static nx_fault fault;
  nx_plan checked;
  plan_seal(plans[plan].bytes);
  return nx_plan_check(plans[plan].bytes, plans[plan].n_bytes, &checked, &fault) ? NULL : fault.text;
}

static void expect_refused(int plan, const nx_op_row *row, const nx_attr_row *attr, const char *what) {
  const char *why = refused(plan);
  if (why == NULL) fail_msg("%s of %s: %s was accepted", attr->name, row->name, what);
  if (strstr(why, row->name) == NULL) fail_msg("%s of %s: %s: %s", attr->name, row->name, what, why);
}

static int64_t greatest_of(const nx_attr_row *attr) {
  int64_t n = 0;
  for (const char *at = attr->values; at && *at; at++) n += *at == ' ';
  return attr->values ? n : attr->greatest;
}

static void try_integer(int plan, const nx_op_row *row, const nx_attr_row *attr, nx_attribute *at) {
  const int64_t numbers[] = {attr->least - 1, greatest_of(attr) + 1, INT64_MIN, INT64_MAX, INT64_C(1) << 62};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    *at = (nx_attribute){.kind = NX_ATTRIBUTE_INT, .integer = numbers[i]};
    expect_refused(plan, row, attr, "a number outside its bounds");
  }
  *at = (nx_attribute){.kind = NX_ATTRIBUTE_REAL, .real = 1};
  expect_refused(plan, row, attr, "a real number");
  if (attr->may_vary) return;
  *at = (nx_attribute){.kind = NX_ATTRIBUTE_CONSTANT, .constant = 0};
  expect_refused(plan, row, attr, "a constant");
}

static void try_real(int plan, const nx_op_row *row, const nx_attr_row *attr, nx_attribute *at) {
  const double numbers[] = {(double)NAN, (double)INFINITY, -(double)INFINITY,
                            nextafter(attr->lowest, -INFINITY), nextafter(attr->highest, INFINITY)};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    *at = (nx_attribute){.kind = NX_ATTRIBUTE_REAL, .real = numbers[i]};
    expect_refused(plan, row, attr, "a number outside its bounds");
  }
}

/* One operator of each kind is enough. */
static void test_attributes_outside_their_bounds_are_refused(void **state) {
  (void)state;
  bool seen[NX_OP_END] = {0};
  uint32_t n_seen = 0;
  for (int plan = 0; plan < n_plans; plan++) {
    assert_null(refused(plan));
    const nx_operator *op;
    for (uint32_t i = 0; (op = plan_record(plans[plan].bytes, NX_SECTION_OPERATORS, i)) != NULL; i++) {
      const nx_op_row *row = nx_op_find(op->op);
      if (seen[op->op]) continue;
      seen[op->op] = true, n_seen++;
      for (uint32_t a = 0; a < op->n_attrs; a++) {
        nx_attribute *at = plan_attribute(plans[plan].bytes, op, a), kept = *at;
        (row->attrs[a].type == NX_INT ? try_integer : try_real)(plan, row, &row->attrs[a], at);
        *at = kept;
      }
    }
  }
  assert_true(n_seen > 30);
}

/* ---- relations to shapes ---- */

typedef struct relation_case {
  nx_op op;
  uint32_t attribute;
  int64_t number; /* within the bounds of the attribute */
} relation_case;

static void test_attributes_that_do_not_fit_the_shapes_are_refused(void **state) {
  (void)state;
  static const relation_case cases[] = {
      {NX_OP_matmul, NX_matmul_trans_a, 1},         {NX_OP_ce_stats, NX_ce_stats_n_valid, 1 << 20},
      {NX_OP_ce_grad, NX_ce_grad_n_valid, 1 << 20}, {NX_OP_position_add, NX_position_add_seq_start, 1 << 20},
      {NX_OP_position_grad, NX_position_grad_seq_start, 1},
      {NX_OP_split_qkv, NX_split_qkv_rotary_dims, 1 << 20}, {NX_OP_split_qkv, NX_split_qkv_rotary_dims, 3},
      {NX_OP_merge_qkv, NX_merge_qkv_rotary_dims, 1 << 20}, {NX_OP_split_qkv, NX_split_qkv_heads, 1 << 20},
      {NX_OP_moe_index, NX_moe_index_rows, INT32_MAX},
      {NX_OP_moe_index, NX_moe_index_destinations, 1 << 20},
      {NX_OP_moe_permute, NX_moe_permute_rows, 1 << 20},    {NX_OP_moe_route, NX_moe_route_top_k, 3},
      {NX_OP_moe_route, NX_moe_route_seq_start, 1 << 20},   {NX_OP_moe_route, NX_moe_route_zigzag, 7},
      {NX_OP_moe_route, NX_moe_route_capacity, 1 << 20},
      {NX_OP_all_gather, NX_all_gather_axis, 3},            {NX_OP_reduce_scatter, NX_reduce_scatter_axis, 3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    nx_operator *op = NULL;
    int plan = -1;
    while (op == NULL && ++plan < n_plans) op = plan_operator(plans[plan].bytes, cases[i].op);
    const nx_op_row *row = nx_op_find(cases[i].op);
    if (op == NULL) fail_msg("no plan has %s", row->name);
    nx_attribute *at = plan_attribute(plans[plan].bytes, op, cases[i].attribute), kept = *at;
    *at = (nx_attribute){.kind = NX_ATTRIBUTE_INT, .integer = cases[i].number};
    expect_refused(plan, row, &row->attrs[cases[i].attribute], "a number that does not fit");
    *at = kept;
  }
}

/* On some rank the constant is too large, on the others it is right. */
static void test_a_constant_that_is_wrong_on_one_rank_is_refused(void **state) {
  (void)state;
  int plan = -1;
  nx_operator *op = NULL;
  nx_attribute *at = NULL;
  while (++plan < n_plans) {
    op = plan_operator(plans[plan].bytes, NX_OP_embedding);
    at = plan_attribute(plans[plan].bytes, op, NX_embedding_row_start);
    if (at->kind == NX_ATTRIBUTE_CONSTANT) break;
  }
  assert_true(plan < n_plans);
  const nx_constant *constant = plan_record(plans[plan].bytes, NX_SECTION_CONSTANTS, at->constant);
  nx_term *term = plan_record(plans[plan].bytes, NX_SECTION_TERMS, constant->first_term), kept = *term;
  term->stride = INT64_C(1) << 40;
  expect_refused(plan, nx_op_find(op->op), &nx_op_find(op->op)->attrs[NX_embedding_row_start], "a far row");
  *term = kept;
}

/* ---- bytes ---- */

static void test_operands_that_share_bytes_are_refused(void **state) {
  (void)state;
  uint8_t *bytes = plans[0].bytes;
  nx_operator *op = plan_operator(bytes, NX_OP_rms_norm);
  if (op == NULL) op = plan_operator(bytes, NX_OP_layer_norm);
  nx_value *x = plan_record(bytes, NX_SECTION_VALUES, *plan_argument(bytes, op, 0));
  nx_value *y = plan_record(bytes, NX_SECTION_VALUES, *plan_argument(bytes, op, op->n_in)), kept = *y;
  y->arena = x->arena, y->offset = x->offset;
  const char *why = refused(0);
  assert_non_null(why);
  assert_non_null(strstr(why, "share bytes"));
  *y = kept;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_attributes_outside_their_bounds_are_refused),
      cmocka_unit_test(test_attributes_that_do_not_fit_the_shapes_are_refused),
      cmocka_unit_test(test_a_constant_that_is_wrong_on_one_rank_is_refused),
      cmocka_unit_test(test_operands_that_share_bytes_are_refused),
  };
  for (; n_plans + 1 < argc && n_plans < MOST_PLANS; n_plans++) {
    plans[n_plans].bytes = plan_read(argv[n_plans + 1], &plans[n_plans].n_bytes);
    if (plans[n_plans].bytes == NULL) return 2;
  }
  int status = cmocka_run_group_tests(tests, NULL, NULL);
  while (n_plans > 0) free(plans[--n_plans].bytes);
  return status;
}
