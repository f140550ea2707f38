/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/passes.h"

static bool is_kept(const nxc_graph *graph, nxc_id value) {
  if (graph->values[value].role != NXC_ROLE_ACTIVATION) return true;
  for (nx_port port = 0; port < NX_N_PORTS; port++)
    if (graph->ports[port] && graph->ports[port] == nxc_value_root(graph, value)) return true;
  return false;
}

void nxc_dead_code(nxc_graph *graph) {
  nxc_program_list *list = &graph->programs[NXC_BACKWARD];
  bool *read = nxc_arena_array(graph->arena, graph->n_values, sizeof *read);
  bool *live = nxc_arena_array(graph->arena, list->n + 1, sizeof *live);
  for (size_t i = list->n; i-- > 0;) {
    const nxc_operator_node *op = &graph->operators[list->operators[i]];
    for (uint32_t out = 0; out < op->n_out; out++) {
      nxc_id value = op->args[op->n_in + out];
      live[i] = live[i] || read[nxc_value_root(graph, value)] || is_kept(graph, value);
    }
    for (uint32_t in = 0; live[i] && in < op->n_in; in++) read[nxc_value_root(graph, op->args[in])] = true;
  }
  size_t n = 0;
  for (size_t i = 0; i < list->n; i++)
    if (live[i]) list->operators[n++] = list->operators[i];
  list->n = n;
}
