/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products and biases. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/fp8.h"
#include "compiler/program/graph/grad.h"

/* Which role of the product a placement splits: the rows of c, its columns, or what is summed over. */
typedef enum part { PART_NONE, PART_SUM, PART_ROWS, PART_COLUMNS, PART_INNER } part;

static part part_of(uint8_t how, const nxc_shape *shape, bool last_is_inner, bool left) {
  if (how == NXC_REPLICATED) return PART_NONE;
  if (how == NXC_PARTIAL) return PART_SUM;
  bool last = how == NXC_SPLIT + shape->n_dims - 1;
  if (last == last_is_inner) return PART_INNER;
  return left ? PART_ROWS : PART_COLUMNS;
}

static uint8_t product_place(part a, part b, uint8_t place_a, uint8_t last, const char **fault) {
  if (a == PART_INNER && b == PART_INNER) return NXC_PARTIAL;
  if ((a == PART_SUM && b == PART_NONE) || (a == PART_NONE && b == PART_SUM)) return NXC_PARTIAL;
  if (a == PART_ROWS && b == PART_NONE) return place_a;
  if (a == PART_NONE && b == PART_COLUMNS) return last;
  if (a != PART_NONE || b != PART_NONE)
    *fault = "the factors are divided over the ranks in ways that do not fit";
  return NXC_REPLICATED;
}

/* To fp8, in a type that is wider than that of activations. */
static bool is_rounded(const nxc_graph *graph, nxc_id value) {
  const nxc_operator_node *op = nxc_producer(graph, value);
  return op != NULL && op->op == NX_OP_fp8_round;
}

static const char *infer_matmul(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *a = nxc_in(graph, op, 0), *b = nxc_in(graph, op, 1);
  bool trans_a = op->attrs[NX_matmul_trans_a].integer, trans_b = op->attrs[NX_matmul_trans_b].integer;
  int64_t inner_a = trans_a ? nxc_shape_rows(a) : nxc_shape_last(a);
  int64_t inner_b = trans_b ? nxc_shape_last(b) : nxc_shape_rows(b);
  int64_t columns = trans_b ? nxc_shape_rows(b) : nxc_shape_last(b);
  if (inner_a != inner_b) return "the inner sizes differ";
  out[0] = trans_a ? nxc_shape_of(a->dtype, 2, (int64_t[]){nxc_shape_last(a), columns})
                   : nxc_shape_with_last(a, columns);
  if (is_rounded(graph, op->args[0])) out[0].dtype = graph->types.activation;
  uint8_t last = (uint8_t)(NXC_SPLIT + out[0].n_dims - 1);
  const char *fault = NULL;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    part part_a = part_of(a->placement.at[atom], a, !trans_a, true),
         part_b = part_of(b->placement.at[atom], b, trans_b, false);
    uint8_t rows = trans_a ? NXC_SPLIT : a->placement.at[atom];
    out[0].placement.at[atom] = product_place(part_a, part_b, rows, last, &fault);
    if (part_a == PART_INNER && part_b == PART_INNER && trans_a && !trans_b &&
        a->placement.at[atom] != b->placement.at[atom])
      fault = "the inner dimensions are divided differently";
  }
  if (fault == NULL && op->n_in == 3) {
    const nxc_shape *bias = nxc_in(graph, op, 2);
    for (int atom = 0; atom < NXC_N_ATOMS; atom++)
      if ((out[0].placement.at[atom] == last) != (bias->placement.at[atom] == NXC_SPLIT) ||
          bias->placement.at[atom] > NXC_SPLIT)
        return "the bias is divided differently from the product";
    fault = nxc_whole(&out[0]);
  }
  if (fault == NULL && nxc_atoms_placed(&out[0].placement, NXC_PARTIAL)) out[0].dtype = graph->types.partial;
  return fault;
}

/* y = a W^T (+ bias), the form in which a model is built. */
static void grad_matmul(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id y = op->args[op->n_in], dy = nxc_grad_of(grad, y);
  if (dy == 0) return;
  if (op->n_in == 3)
    nxc_grad_accumulate(
        grad,
        &(nxc_op_request){.op = NX_OP_bias_grad, .in = {dy}, .out = {nxc_grad_parameter(grad, op->args[2])}});
  const nxc_fp8_factors f = nxc_fp8_factors_of(graph, y, op->args[0], op->args[1], dy);
  nxc_grad_accumulate(grad,
                      &(nxc_op_request){.op = NX_OP_matmul,
                                        .in = {f.dy_of_weight, f.x_of_weight},
                                        .out = {nxc_grad_parameter(grad, f.weight)},
                                        .attrs = {[NX_matmul_trans_a] = nxc_integer(1)}});
  nxc_grad_give(grad, f.x,
                nxc_append(graph, &(nxc_op_request){
                                      .op = NX_OP_matmul, .of = {f.x}, .in = {f.dy_of_x, f.weight_of_x}}));
}

static uint64_t flops_matmul(const nxc_graph *graph, const nxc_operator_node *op) {
  bool trans_a = op->attrs[NX_matmul_trans_a].integer;
  const nxc_shape *a = nxc_in(graph, op, 0), *c = nxc_out(graph, op, 0);
  return 2 * (uint64_t)nxc_shape_elements(c) * (uint64_t)(trans_a ? nxc_shape_rows(a) : nxc_shape_last(a));
}

const nxc_rule nxc_rule_matmul = {
    .infer = infer_matmul, .grad = grad_matmul, .flops = flops_matmul, .linear = true};

static const char *infer_bias_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *dy = nxc_in(graph, op, 0);
  out[0] = nxc_shape_of(graph->types.grad, 1, (int64_t[]){nxc_shape_last(dy)});
  out[0].placement = nxc_placement_of_row_sum(dy);
  return NULL;
}

const nxc_rule nxc_rule_bias_grad = {.infer = infer_bias_grad};

static const char *infer_bias_add(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0), *bias = nxc_in(graph, op, 1);
  out[0] = *x;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if ((x->placement.at[atom] == NXC_SPLIT + x->n_dims - 1) != (bias->placement.at[atom] == NXC_SPLIT))
      return "the bias is divided differently from what it is added to";
  return nxc_whole(x);
}

static void grad_bias_add(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[2]);
  if (dy == 0) return;
  nxc_grad_accumulate(
      grad,
      &(nxc_op_request){.op = NX_OP_bias_grad, .in = {dy}, .out = {nxc_grad_parameter(grad, op->args[1])}});
  nxc_grad_give(grad, op->args[0], dy);
}

const nxc_rule nxc_rule_bias_add = {.infer = infer_bias_add, .grad = grad_bias_add};
