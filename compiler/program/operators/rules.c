/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/graph/rules.h"

#include <string.h>

static const nxc_rule *const rules[NX_OP_END] = {
#define OP(number, name, class, signature, meaning) [number] = &nxc_rule_##name,
#include "schema/ops.def"
};

const nxc_rule *nxc_rule_of(nx_op op) {
  return rules[op];
}

nxc_shape nxc_shape_with_last(const nxc_shape *like, int64_t last) {
  nxc_shape shape = *like;
  shape.dims[shape.n_dims - 1] = last;
  return shape;
}

nxc_shape nxc_shape_without_last(const nxc_shape *like, nx_dtype dtype) {
  nxc_shape shape = *like;
  shape.dtype = dtype;
  shape.dims[--shape.n_dims] = 1;
  if (shape.n_dims == 0) shape.n_dims = 1;
  return shape;
}

const char *nxc_same(const nxc_shape *a, const nxc_shape *b) {
  if (a->n_dims != b->n_dims || memcmp(a->dims, b->dims, sizeof a->dims) != 0) return "shapes differ";
  return nxc_placement_equal(&a->placement, &b->placement) ? NULL : "placements differ";
}

const char *nxc_whole(const nxc_shape *shape) {
  return nxc_atoms_placed(&shape->placement, NXC_PARTIAL) ? "a partial sum is read where the whole is needed"
                                                          : NULL;
}

nxc_placement nxc_placement_of_row_sum(const nxc_shape *x) {
  nxc_placement placement = x->placement;
  uint8_t last = (uint8_t)(NXC_SPLIT + x->n_dims - 1);
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    if (placement.at[atom] < NXC_SPLIT) continue;
    placement.at[atom] = placement.at[atom] == last ? NXC_SPLIT : NXC_PARTIAL;
  }
  return placement;
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
