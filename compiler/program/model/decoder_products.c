/* SPDX-License-Identifier: Apache-2.0 */
/* Products by weights that tensor-parallel ranks divide, with their biases and adapters. */
#include "compiler/program/model/adapters.h"
#include "compiler/program/model/decoder.h"
#include "compiler/program/model/fp8_product.h"

nxc_id nxc_decoder_matrix_product(const nxc_decoder *d, nxc_part part, const char *name, nxc_id x,
                                  nxc_id weight, nxc_id bias) {
  nxc_fp8_product product;
  bool rounded = nxc_fp8_operands(d->graph, d->t, part, &x, &weight, &product);
  product.y = nxc_decoder_product(d, name, x, weight, bias);
  if (rounded) nxc_fp8_product_add(d->graph, &product);
  return product.y;
}

nxc_id nxc_decoder_column_weight(const nxc_decoder *d, nxc_id x, const nxc_columns *to) {
  const char *name = nxc_arena_printf(d->graph->arena, "%s_weight", to->name);
  return nxc_parameter_rows(d->graph, d->t, name, to->boxes, to->n_boxes,
                            nxc_shape_last(&d->graph->values[x].shape), to->atoms);
}

nxc_id nxc_decoder_column_bias(const nxc_decoder *d, const nxc_columns *to) {
  const char *name = nxc_arena_printf(d->graph->arena, "%s_bias", to->name);
  return nxc_parameter_bias(d->graph, d->t, name, to->boxes, to->n_boxes, to->atoms);
}

nxc_id nxc_decoder_columns(const nxc_decoder *d, nxc_id x, const nxc_columns *to, nxc_id weight,
                           nxc_id bias) {
  nxc_id y = nxc_decoder_matrix_product(d, to->boxes[0].part, to->name, x, weight, bias);
  return nxc_adapters_of_columns(d, x, y, to->boxes, to->n_boxes, to->atoms);
}

nxc_id nxc_decoder_column_product(const nxc_decoder *d, const char *name, nxc_id x, const nxc_box *boxes,
                                  uint32_t n_boxes, uint32_t atoms, bool with_bias) {
  const nxc_columns to = {name, boxes, n_boxes, atoms};
  nxc_id weight = nxc_parameter_read(d->graph, d->t, nxc_decoder_column_weight(d, x, &to));
  nxc_id bias = with_bias ? nxc_decoder_column_bias(d, &to) : 0;
  return nxc_decoder_columns(d, x, &to, weight, bias);
}

nxc_id nxc_decoder_row_product(const nxc_decoder *d, nxc_id x, const nxc_box *box, bool with_bias) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  nxc_id weight = nxc_parameter_columns(graph, t, "out_weight", box, t->model.hidden, d->tensor);
  weight = nxc_parameter_read(graph, t, weight);
  nxc_id bias = 0;
  if (with_bias) {
    const nxc_box whole = {box->part, t->model.hidden, nxc_rank_number_of(0)};
    bias = nxc_parameter_bias(graph, t, "out_bias", &whole, 1, 0);
  }
  bool summed = d->tensor != 0;
  nxc_id y = nxc_decoder_matrix_product(d, box->part, "out", x, weight, summed ? 0 : bias);
  y = nxc_decoder_leave_region(d, nxc_adapters_of_row(d, x, y, box), graph->types.activation);
  if (!summed || bias == 0) return y;
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_bias_add, .name = "biased", .in = {y, bias}});
}
