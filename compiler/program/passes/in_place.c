/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/passes.h"

/* Last reader of each value, as a position in the passes taken as one list; the values that an
 * operator may not write over are those of other roles, and those that share their bytes with others. */
typedef struct readers {
  const nxc_graph *graph;
  uint64_t *last;
} readers;

static uint64_t position(const nxc_graph *graph, nxc_program_index program, size_t index) {
  while (program-- > NXC_FORWARD) index += graph->programs[program].n;
  return index;
}

static void find_readers(readers *r) {
  for (nxc_program_index program = NXC_FORWARD; program <= NXC_WEIGHTS; program++) {
    const nxc_program_list *list = &r->graph->programs[program];
    for (size_t i = 0; i < list->n; i++) {
      const nxc_operator_node *op = &r->graph->operators[list->operators[i]];
      for (uint32_t in = 0; in < op->n_in; in++) r->last[op->args[in]] = position(r->graph, program, i);
    }
  }
}

static bool may_overwrite(const readers *r, const nxc_operator_node *op, uint32_t in, uint64_t at) {
  const nxc_value_node *x = &r->graph->values[op->args[in]], *y = &r->graph->values[op->args[op->n_in]];
  nx_signature signature = nx_op_signature(nx_op_find(op->op));
  if (!(nx_signature_output(&signature, 0)->shares & 1u << in) || r->last[op->args[in]] != at) return false;
  for (uint32_t other = 0; other < op->n_in; other++)
    if (other != in && op->args[other] == op->args[in]) return false;
  return x->role == NXC_ROLE_ACTIVATION && y->role == NXC_ROLE_ACTIVATION && y->view_of == 0 &&
         nxc_shape_bytes(&x->shape) == nxc_shape_bytes(&y->shape) && x->shape.dtype == y->shape.dtype &&
         op->when == NX_WHEN_ALWAYS;
}

/* A chain of operators in place is a chain of views of the first value; each link's last reader is the next
 * link, so the bytes are never needed twice. */
void nxc_in_place(nxc_graph *graph) {
  readers r = {graph, nxc_arena_array(graph->arena, graph->n_values, sizeof *r.last)};
  find_readers(&r);
  for (nxc_program_index program = NXC_FORWARD; program <= NXC_WEIGHTS; program++) {
    const nxc_program_list *list = &graph->programs[program];
    for (size_t i = 0; i < list->n; i++) {
      const nxc_operator_node *op = &graph->operators[list->operators[i]];
      for (uint32_t in = 0; in < op->n_in; in++) {
        if (op->n_out != 1 || !may_overwrite(&r, op, in, position(graph, program, i))) continue;
        nxc_value_node *y = &graph->values[op->args[op->n_in]];
        y->view_of = nxc_value_root(graph, op->args[in]);
        y->view_offset = graph->values[op->args[in]].view_offset;
        break;
      }
    }
  }
}
