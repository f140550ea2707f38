/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/graph/rules.h"

static const nxc_rule *const rules[NX_OP_END] = {
#define OP(number, name, class, signature, meaning) [number] = &nxc_rule_##name,
#include "schema/ops.def"
};

const nxc_rule *nxc_rule_of(nx_op op) {
  return rules[op];
}

uint64_t nxc_bytes_moved(const nxc_graph *graph, const nxc_operator_node *op) {
  const nxc_rule *rule = nxc_rule_of(op->op);
  if (rule->bytes != NULL) return rule->bytes(graph, op);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
    bytes += nxc_shape_bytes(&graph->values[op->args[i]].shape);
  return bytes;
}

uint64_t nxc_flops(const nxc_graph *graph, const nxc_operator_node *op) {
  const nxc_rule *rule = nxc_rule_of(op->op);
  return rule->flops == NULL ? 0 : rule->flops(graph, op);
}
