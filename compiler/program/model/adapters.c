/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/adapters.h"

nxc_id nxc_adapter_append(nxc_graph *graph, const nxc_training *t, const char *name, nxc_id y, nxc_id z,
                          int64_t first) {
  return nxc_append(
      graph,
      &(nxc_op_request){
          .op = NX_OP_columns_add,
          .name = nxc_arena_printf(graph->arena, "%s_adapted", name),
          .in = {y, z},
          .attrs =
              {[NX_columns_add_first] = nxc_integer(first), [NX_columns_add_scale] = nxc_real(t->lora.scale)},
          .dtype = graph->values[y].shape.dtype});
}

/* The product with this first matrix that the module has already: of parts with products of their own, and
 * one adapter. So there is one gradient of it, in which summands and sums over ranks meet. 0: none. */
static nxc_id find_low(const nxc_graph *graph, nxc_id a) {
  const nxc_program_list *program = &graph->programs[graph->program];
  for (size_t i = program->n; i-- > 0;) {
    const nxc_operator_node *op = &graph->operators[program->operators[i]];
    if (op->layer != graph->layer) return 0;
    if (op->n_in > 1 && op->args[1] == a) return op->args[op->n_in];
  }
  return 0;
}

/* What the adapter of these boxes adds. The first feature of x on this rank, where they are divided. */
static nxc_id adapted(const nxc_decoder *d, nxc_id x, const nxc_box *boxes, nxc_id a, nxc_id b,
                      const nxc_rank_number *first_feature) {
  nxc_graph *graph = d->graph;
  nxc_part part = d->t->lora.of[boxes[0].part]->parts[0]; /* one mask for all that has one first matrix */
  const char *name = nxc_part_name(boxes[0].part);
  nxc_id low = find_low(graph, a);
  if (low == 0) {
    x = nxc_decoder_dropout(d, x, d->t->lora.dropout, NXC_KEY_ADAPTERS + (int)part, nxc_rank_number_of(0),
                            first_feature);
    low = nxc_decoder_product(d, nxc_arena_printf(graph->arena, "%s_low", name), x, a, 0);
  }
  return nxc_decoder_product(d, nxc_arena_printf(graph->arena, "%s_high", name), low, b, 0);
}

/* Boxes from `at` on that have one adapter. */
static uint32_t run_of(const nxc_training *t, const nxc_box *boxes, uint32_t n_boxes, uint32_t at) {
  uint32_t n = 1;
  while (at + n < n_boxes && t->lora.of[boxes[at + n].part] == t->lora.of[boxes[at].part]) n++;
  return n;
}

nxc_id nxc_adapters_of_columns(const nxc_decoder *d, nxc_id x, nxc_id y, const nxc_box *boxes,
                               uint32_t n_boxes, uint32_t atoms) {
  const nxc_rank_number none = nxc_rank_number_of(0);
  int64_t first = 0;
  for (uint32_t at = 0, n; at < n_boxes; at += n) {
    n = run_of(d->t, boxes, n_boxes, at);
    if (d->t->lora.of[boxes[at].part] != NULL) {
      const nxc_box features = {boxes[at].part, nxc_shape_last(&d->graph->values[x].shape), none};
      nxc_id a = nxc_parameter_adapter_a(d->graph, d->t, &features, 0);
      nxc_id b = nxc_parameter_adapter_b(d->graph, d->t, boxes + at, n, atoms);
      nxc_id z = adapted(d, x, boxes + at, a, b, &none);
      y = nxc_adapter_append(d->graph, d->t, nxc_part_name(boxes[at].part), y, z, first);
    }
    for (uint32_t i = at; i < at + n; i++) first += boxes[i].n_local;
  }
  return y;
}

nxc_id nxc_adapters_of_row(const nxc_decoder *d, nxc_id x, nxc_id y, const nxc_box *box) {
  if (d->t->lora.of[box->part] == NULL) return y;
  const nxc_box whole = {box->part, d->t->model.hidden, nxc_rank_number_of(0)};
  nxc_id a = nxc_parameter_adapter_a(d->graph, d->t, box, d->tensor);
  nxc_id b = nxc_parameter_adapter_b(d->graph, d->t, &whole, 1, 0);
  return nxc_adapter_append(d->graph, d->t, nxc_part_name(box->part), y,
                            adapted(d, x, box, a, b, &box->start), 0);
}
