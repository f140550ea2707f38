/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules are generators of one list of items per stage. With one stage every micro-batch goes forward and
 * back before the next one begins, so that one slot is enough, and then comes the step. Backward takes
 * micro-batches in ascending order, as in every schedule. */
#include "compiler/program/passes.h"

static void push(nxc_graph *graph, nx_item_kind kind, uint32_t micro_batch) {
  graph->items = nxc_arena_grow(graph->arena, graph->items, graph->n_items, sizeof *graph->items);
  graph->items[graph->n_items++] = (nx_item){.kind = (uint16_t)kind, .micro_batch = micro_batch};
}

void nxc_schedule(nxc_graph *graph) {
  graph->n_slots = 1;
  for (uint32_t i = 0; i < graph->n_micro_batches; i++) {
    push(graph, NX_ITEM_FORWARD, i);
    push(graph, NX_ITEM_BACKWARD, i);
  }
  push(graph, NX_ITEM_STEP, 0);
}
