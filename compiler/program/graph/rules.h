/* SPDX-License-Identifier: Apache-2.0 */
/* What the compiler knows about each operator: one rule per row of ops.def, in the op_*.c files.
 *
 * `infer` tells shape and placement of the outputs from inputs and attributes (outputs that were given may be
 * looked at). `grad` appends ordinary operators that give the gradients of the inputs. Costs are of one
 * execution on one rank. An operator of ops.def without a rule does not link. */
#ifndef NXC_RULES_H
#define NXC_RULES_H

#include "compiler/program/graph/graph.h"

typedef struct nxc_grad nxc_grad;

typedef struct nxc_rule {
  /* NULL: consistent; else what is wrong, in a few words. */
  const char *(*infer)(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out);
  void (*grad)(nxc_grad *grad, const nxc_operator_node *op);              /* NULL: no gradient passes */
  uint64_t (*flops)(const nxc_graph *graph, const nxc_operator_node *op); /* NULL: not counted */
  uint64_t (*bytes)(const nxc_graph *graph, const nxc_operator_node *op); /* NULL: all operands once */
  const char *suffixes[4]; /* of output names, where there are several */
  bool linear;             /* takes a partial gradient of its output as well as a whole one */
  bool linear_of_heads;    /* the same, of heads [B,n,S,d]: copies of key heads have summands */
  uint32_t n_products;     /* class attention: of a query head with its keys */
} nxc_rule;

#define OP(number, name, class, signature, meaning) extern const nxc_rule nxc_rule_##name;
#include "schema/ops.def"

const nxc_rule *nxc_rule_of(nx_op op);

/* Operands as the rules read them. */
static inline const nxc_shape *nxc_in(const nxc_graph *graph, const nxc_operator_node *op, uint32_t index) {
  return &graph->values[op->args[index]].shape;
}

static inline const nxc_shape *nxc_out(const nxc_graph *graph, const nxc_operator_node *op, uint32_t index) {
  return &graph->values[op->args[op->n_in + index]].shape;
}

uint64_t nxc_bytes_moved(const nxc_graph *graph, const nxc_operator_node *op);
uint64_t nxc_flops(const nxc_graph *graph, const nxc_operator_node *op);

#endif
