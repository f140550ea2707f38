/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of products in fp8. */
#include "compiler/program/graph/rules.h"

/* Each rank's own, wherever it goes. */
static const char *infer_fp8_amax(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_out(graph, op, 0);
  return nxc_whole(nxc_in(graph, op, 0));
}

static const char *infer_fp8_round(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return nxc_whole(&out[0]);
}

static const char *infer_fp8_history(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return NULL;
}

const nxc_rule nxc_rule_fp8_amax = {.infer = infer_fp8_amax};
const nxc_rule nxc_rule_fp8_round = {.infer = infer_fp8_round};
const nxc_rule nxc_rule_fp8_history = {.infer = infer_fp8_history};
