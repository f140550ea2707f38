/* SPDX-License-Identifier: Apache-2.0 */
/* The matrices of adapters. */
#include "compiler/program/model/parameters.h"

#include <math.h>

/* The pieces of a value from `first` on are of this side of an adapter, whose input has `n_in` features. */
static void adapt_pieces(nxc_graph *graph, const nxc_training *t, nxc_id value, size_t first,
                         nxc_adapter_side side, int64_t n_in) {
  graph->values[value].frozen = false;
  for (size_t i = first; i < graph->n_pieces; i++) {
    nxc_piece_node *piece = &graph->pieces[i];
    piece->adapter = side;
    piece->transposed = false;
    if (side == NXC_ADAPTER_A) {
      piece->logical_rows = t->lora.rank;
      piece->init = NX_INIT_UNIFORM; /* of variance 1 / (3 n), as Kaiming's with a = sqrt(5) */
      piece->init_std = 1 / sqrt(3 * (double)n_in);
    } else {
      piece->init = t->lora.b_init_std > 0 ? NX_INIT_NORMAL : NX_INIT_ZEROS;
      piece->init_std = t->lora.b_init_std;
    }
  }
}

static bool is_first_of_tensor(const nxc_training *t, const nxc_adapted *adapted, size_t index) {
  const nxc_tensor_row *const *tensors = t->model.family->tensors;
  for (size_t i = 0; i < index; i++)
    if (tensors[adapted->parts[i]] == tensors[adapted->parts[index]]) return false;
  return true;
}

nxc_id nxc_parameter_adapter_a(nxc_graph *graph, const nxc_training *t, const nxc_box *columns,
                               uint32_t atoms) {
  const nxc_adapted *adapted = t->lora.of[columns->part];
  const char *name = nxc_arena_printf(graph->arena, "%s_lora_a", nxc_part_name(adapted->parts[0]));
  nxc_shape shape = nxc_shape_of(graph->types.param, 2, (int64_t[]){t->lora.rank, columns->n_local});
  nxc_place_atoms(&shape.placement, atoms, NXC_SPLIT + 1);
  nxc_id value = nxc_parameter_find(graph, name);
  if (value) return value;
  value = nxc_parameter_new(graph, t, name, &shape);
  size_t first = graph->n_pieces;
  for (size_t i = 0; i < adapted->n_parts; i++) {
    if (!is_first_of_tensor(t, adapted, i)) continue;
    nxc_piece_node *piece = nxc_piece_new(graph, t, value, adapted->parts[i], false);
    piece->rows = t->lora.rank;
    piece->alias = i > 0;
    piece->columns = columns->n_local;
    piece->logical_columns = columns->n_local * nxc_mesh_size(&graph->mesh, atoms);
    piece->column_start = columns->start;
  }
  adapt_pieces(graph, t, value, first, NXC_ADAPTER_A, graph->pieces[first].logical_columns);
  return value;
}

nxc_id nxc_parameter_adapter_b(nxc_graph *graph, const nxc_training *t, const nxc_box *boxes,
                               uint32_t n_boxes, uint32_t atoms) {
  size_t first = graph->n_pieces;
  const char *name = nxc_arena_printf(graph->arena, "%s_lora_b", nxc_part_name(boxes[0].part));
  nxc_id value = nxc_parameter_rows(graph, t, name, boxes, n_boxes, t->lora.rank, atoms);
  adapt_pieces(graph, t, value, first, NXC_ADAPTER_B, t->lora.rank);
  return value;
}

static const char *adapter_name(const nxc_graph *graph, nxc_part part, nxc_adapter_side side) {
  return nxc_arena_printf(graph->arena, "%s_lora_%s", nxc_part_name(part), side == NXC_ADAPTER_A ? "a" : "b");
}

nxc_id nxc_parameter_expert_adapter(nxc_graph *graph, const nxc_training *t, const nxc_box *box,
                                    int64_t n_other, nxc_adapter_side side, nxc_expert_cut cut) {
  size_t first = graph->n_pieces;
  const char *name = adapter_name(graph, box->part, side);
  nxc_id value = nxc_parameter_experts(graph, t, name, box, 1, n_other, cut);
  adapt_pieces(graph, t, value, first, side, graph->pieces[first].logical_columns);
  return value;
}

nxc_id nxc_parameter_shared_adapter(nxc_graph *graph, const nxc_training *t, nxc_part part,
                                    nxc_adapter_side side) {
  int64_t hidden = t->model.hidden, rank = t->lora.rank;
  bool is_a = side == NXC_ADAPTER_A;
  const nxc_shape shape =
      nxc_shape_of(graph->types.param, 2, (int64_t[]){is_a ? rank : hidden, is_a ? hidden : rank});
  nxc_id value = nxc_parameter_new(graph, t, adapter_name(graph, part, side), &shape);
  nxc_piece_node *piece = nxc_piece_new(graph, t, value, part, false);
  piece->expert = NXC_ALL_EXPERTS;
  piece->rows = piece->logical_rows = shape.dims[0];
  piece->columns = piece->logical_columns = shape.dims[1];
  adapt_pieces(graph, t, value, graph->n_pieces - 1, side, shape.dims[1]);
  return value;
}
