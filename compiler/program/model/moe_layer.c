/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/moe_layer.h"

#include "compiler/program/model/activation.h"
#include "compiler/program/model/adapters.h"
#include "compiler/program/model/fp8_product.h"
#include "compiler/program/model/moe_route.h"
#include "compiler/program/model/parameters.h"
#include "compiler/program/model/tensors.h"

#include <math.h>

typedef struct layer {
  nxc_graph *graph;
  const nxc_decoder *d;
  const nxc_training *t;
  const nxc_activation *activation;
  const nxc_mixture *m;
  bool first_biased, last_biased; /* which matrices of experts have biases */
  uint32_t expert, expert_tensor; /* axes */
  uint32_t gathered;              /* atoms over which tokens meet before they go to experts */
  int64_t n_ranks;                /* that experts are divided over */
  int64_t n_local;                /* experts of a rank */
} layer;

/* What goes to the experts. */
typedef struct routed {
  nxc_id tokens, experts, weights; /* of the gathered tokens */
} routed;

static uint32_t placed(const nxc_graph *graph, nxc_id value, uint8_t how) {
  return nxc_atoms_placed(&graph->values[value].shape.placement, how);
}

static nxc_id collective(nxc_graph *graph, nx_op op, const char *name, nxc_id x, int64_t axis,
                         uint32_t atoms) {
  if (atoms == 0) return x;
  bool summed = (placed(graph, x, NXC_PARTIAL) & ~atoms) == 0;
  return nxc_append(graph,
                    &(nxc_op_request){.op = op,
                                      .name = name,
                                      .in = {x},
                                      .attrs = {[NX_all_gather_axis] = nxc_integer(axis)},
                                      .dtype = op != NX_OP_all_gather && summed ? graph->types.activation : 0,
                                      .group_atoms = atoms});
}

/* Tokens of all these ranks: along the sequence, then sequence by sequence. */
static nxc_id gather(nxc_graph *graph, const char *name, nxc_id x, uint32_t atoms) {
  x = collective(graph, NX_OP_all_gather, name, x, 1, atoms & placed(graph, x, NXC_SPLIT + 1));
  return collective(graph, NX_OP_all_gather, name, x, 0, atoms & placed(graph, x, NXC_SPLIT));
}

/* The other way round: sums what is partial, and leaves each rank the tokens that it has of `like`. */
static nxc_id scatter(nxc_graph *graph, nxc_id y, nxc_id like) {
  uint32_t partial = placed(graph, y, NXC_PARTIAL);
  y = collective(graph, NX_OP_reduce_scatter, "sum", y, 0, partial & placed(graph, like, NXC_SPLIT));
  y = collective(graph, NX_OP_reduce_scatter, "sum", y, 1, partial & placed(graph, like, NXC_SPLIT + 1));
  return collective(graph, NX_OP_all_reduce, "sum", y, 0, placed(graph, y, NXC_PARTIAL));
}

/* ---- experts ---- */

/* Rows for one destination: what a balanced load needs, times the factor; never more than tokens or
 * capacities can fill. */
static int64_t buffer_rows(const layer *l, const nxc_shape *tokens) {
  const nxc_training *t = l->t;
  int64_t n_tokens = tokens->dims[0] * tokens->dims[1],
          each = l->m->top_k < l->n_local ? l->m->top_k : l->n_local;
  int64_t most = n_tokens * each, n_all = t->batch.micro * t->model.sequence;
  int64_t capacity = nxc_mixture_capacity(l->m, n_all),
          evaluated = t->evaluates ? nxc_mixture_evaluation_capacity(l->m, n_all) : 0;
  if (evaluated > capacity) capacity = evaluated;
  int64_t n_micro_batches = tokens->dims[0] / t->batch.micro;
  double balanced = (double)(n_tokens * l->m->top_k) / (double)l->n_ranks;
  double room = ceil(l->m->buffer_factor * balanced);
  if (capacity && capacity * l->n_local * n_micro_batches < most)
    most = capacity * l->n_local * n_micro_batches;
  if (capacity) return most;
  return room < (double)most ? (int64_t)room : most;
}

static nxc_id exchange(const layer *l, const char *name, nxc_id x, int64_t split_axis, int64_t concat_axis) {
  if (l->m->gathers || l->expert == 0) return x;
  return nxc_append(l->graph,
                    &(nxc_op_request){.op = NX_OP_all_to_all,
                                      .name = name,
                                      .in = {x},
                                      .attrs = {[NX_all_to_all_split_axis] = nxc_integer(split_axis),
                                                [NX_all_to_all_concat_axis] = nxc_integer(concat_axis)},
                                      .group_atoms = l->expert});
}

static nxc_id grouped(const layer *l, const char *name, nxc_id x, nxc_id counts, nxc_id weight,
                      int64_t n_rows) {
  return nxc_append(
      l->graph,
      &(nxc_op_request){
          .op = NX_OP_grouped_matmul,
          .name = name,
          .in = {x, counts, weight},
          .attrs = {
              [NX_grouped_matmul_trans_b] = nxc_integer(1), [NX_grouped_matmul_rows] = nxc_integer(n_rows)}});
}

/* The same of the experts' own matrices, whose first part this is. */
static nxc_id grouped_matrix(const layer *l, nxc_part part, const char *name, nxc_id x, nxc_id counts,
                             nxc_id weight, int64_t n_rows) {
  nxc_fp8_product product;
  bool rounded = nxc_fp8_operands(l->graph, l->t, part, &x, &weight, &product);
  product.y = grouped(l, name, x, counts, weight, n_rows);
  if (rounded) nxc_fp8_product_add(l->graph, &product);
  return product.y;
}

/* ---- their adapters ---- */

typedef struct adapter {
  const layer *l;
  const nxc_box *box;
  nxc_id counts;
  int64_t n_rows;
} adapter;

/* x times the matrix that meets the features of the experts' own width, which are divided. */
static nxc_id meet_width(const adapter *a, nxc_adapter_side side, const char *name, nxc_id x) {
  nxc_expert_cut cut = side == NXC_ADAPTER_A ? NXC_CUT_COLUMNS : NXC_CUT_ROWS;
  nxc_id matrix =
      nxc_parameter_expert_adapter(a->l->graph, a->l->t, a->box, a->l->t->lora.rank, side, cut);
  return grouped(a->l, name, x, a->counts, matrix, a->n_rows);
}

/* And the one that meets hidden features: of each expert, or of all. Rows that are not counted are 0. */
static nxc_id meet_hidden(const adapter *a, nxc_adapter_side side, const char *name, nxc_id x) {
  const nxc_training *t = a->l->t;
  nxc_part part = a->box->part;
  if (t->lora.shared_by_experts) {
    nxc_id matrix = nxc_parameter_shared_adapter(a->l->graph, t, part, side);
    return nxc_append(a->l->graph, &(nxc_op_request){.op = NX_OP_matmul,
                                                     .name = name,
                                                     .in = {x, matrix},
                                                     .attrs = {[NX_matmul_trans_b] = nxc_integer(1)}});
  }
  bool reads = side == NXC_ADAPTER_A;
  int64_t rows = reads ? t->lora.rank : t->model.hidden, columns = reads ? t->model.hidden : t->lora.rank;
  const nxc_box whole = {part, rows, nxc_rank_number_of(0)};
  nxc_id matrix = nxc_parameter_expert_adapter(a->l->graph, t, &whole, columns, side, NXC_CUT_NOTHING);
  return grouped(a->l, name, x, a->counts, matrix, a->n_rows);
}

/* y, with what the experts' adapters beside a box make of x. */
static nxc_id adapt(const layer *l, const nxc_box *box, nxc_id x, nxc_id counts, nxc_id y, int64_t first,
                    int64_t n_rows) {
  if (l->t->lora.of[box->part] == NULL) return y;
  const adapter a = {l, box, counts, n_rows};
  const char *name = nxc_part_name(box->part), *low_name = nxc_arena_printf(l->graph->arena, "%s_low", name),
             *high_name = nxc_arena_printf(l->graph->arena, "%s_high", name);
  bool down = box->part == NXC_PART_EXPERT_DOWN;
  nxc_id low =
      down ? meet_width(&a, NXC_ADAPTER_A, low_name, x) : meet_hidden(&a, NXC_ADAPTER_A, low_name, x);
  nxc_id high =
      down ? meet_hidden(&a, NXC_ADAPTER_B, high_name, low) : meet_width(&a, NXC_ADAPTER_B, high_name, low);
  return nxc_adapter_append(l->graph, l->t, name, y, high, first);
}

/* y with each expert's bias; of sums that expert-tensor ranks make together each adds its share. */
static nxc_id biased(const layer *l, const char *name, nxc_id y, nxc_id counts, const nxc_box *boxes,
                     uint32_t n_boxes) {
  nxc_graph *graph = l->graph;
  bool summed = (placed(graph, y, NXC_PARTIAL) & l->expert_tensor) != 0;
  const char *parameter = nxc_arena_printf(graph->arena, "%s_bias", name);
  nxc_id bias = nxc_parameter_expert_bias(graph, l->t, parameter, boxes, n_boxes, !summed);
  double share = summed ? 1.0 / (double)nxc_mesh_size(&graph->mesh, l->expert_tensor) : 1;
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_grouped_bias,
                                             .name = nxc_arena_printf(graph->arena, "%s_biased", name),
                                             .in = {y, counts, bias},
                                             .attrs = {[NX_grouped_bias_share] = nxc_real(share)}});
}

/* Each expert is a feed-forward network of the model's kind. */
static nxc_id experts(const layer *l, nxc_id x, nxc_id counts, int64_t n_rows) {
  nxc_graph *graph = l->graph;
  const nxc_training *t = l->t;
  int64_t width = l->m->hidden / nxc_mesh_size(&graph->mesh, l->expert_tensor);
  nxc_rank_number start = nxc_rank_number_of(0);
  nxc_rank_number_stride(&start, l->expert_tensor, width);
  const nxc_box boxes[2] = {{NXC_PART_EXPERT_GATE, width, start}, {NXC_PART_EXPERT_UP, width, start}};
  const nxc_box down = {NXC_PART_EXPERT_DOWN, width, start};
  const nxc_box all = {NXC_PART_EXPERT_DOWN, t->model.hidden, nxc_rank_number_of(0)};
  bool gated = l->activation->gated, in_turn = gated && nxc_tensor_takes_turns(t, NXC_PART_EXPERT_GATE);
  nxc_box both = {NXC_PART_EXPERT_GATE, 2 * width, nxc_rank_number_of(0)};
  nxc_rank_number_stride(&both.start, l->expert_tensor, 2 * width);
  const nxc_box *first_box = in_turn ? &both : gated ? boxes : boxes + 1;
  uint32_t n_boxes = gated && !in_turn ? 2 : 1;
  nxc_id weight = nxc_parameter_experts(graph, t, "expert_up_weight", first_box, n_boxes, t->model.hidden,
                                        NXC_CUT_ROWS);
  nxc_id up = grouped_matrix(l, first_box->part, "expert_up", x, counts, nxc_parameter_read(graph, t, weight),
                             n_rows);
  for (int64_t i = gated ? 0 : 1, first = 0; i < 2; i++, first += width)
    up = adapt(l, &boxes[i], x, counts, up, first, n_rows);
  if (l->first_biased) up = biased(l, "expert_up", up, counts, first_box, n_boxes);
  nxc_id y = nxc_activation_append(graph, l->activation, in_turn, "expert_activation", up);
  weight = nxc_parameter_experts(graph, t, "expert_down_weight", &down, 1, t->model.hidden, NXC_CUT_COLUMNS);
  weight = nxc_parameter_read(graph, t, weight);
  y = adapt(l, &down, y, counts, grouped_matrix(l, down.part, "expert_down", y, counts, weight, n_rows), 0,
            n_rows);
  return l->last_biased ? biased(l, "expert_down", y, counts, &all, 1) : y;
}

/* The gathered tokens through their experts: a sum over the gathered ranks, still to be made. */
static nxc_id dispatch(const layer *l, const routed *r) {
  nxc_graph *graph = l->graph;
  const nxc_shape tokens = graph->values[r->tokens].shape;
  int64_t n_rows = buffer_rows(l, &tokens), n_destinations = l->m->gathers ? 1 : l->n_ranks;
  int64_t balanced = tokens.dims[0] * tokens.dims[1] * l->m->top_k / (l->m->gathers ? l->n_ranks : 1);
  nxc_rank_number first = nxc_rank_number_of(0);
  if (l->m->gathers) nxc_rank_number_stride(&first, l->expert, l->n_local);
  nxc_id rows = nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_moe_index,
                               .in = {r->experts},
                               .attrs = {[NX_moe_index_expert_start] = nxc_attribute(graph, &first),
                                         [NX_moe_index_destinations] = nxc_integer(n_destinations),
                                         [NX_moe_index_experts] = nxc_integer(l->n_local),
                                         [NX_moe_index_rows] = nxc_integer(n_rows)}});
  nxc_id counts = exchange(l, "received_counts", nxc_last_output(graph, 1), 0, 1);
  nxc_id x = nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_moe_permute,
                               .name = "rows",
                               .in = {r->tokens, rows},
                               .attrs = {[NX_moe_permute_destinations] = nxc_integer(n_destinations),
                                         [NX_moe_permute_rows] = nxc_integer(n_rows)}});
  nxc_id y = experts(l, exchange(l, "received", x, 0, 1), counts, balanced);
  y = exchange(l, "returned", y, 1, 0);
  return nxc_append(graph,
                    &(nxc_op_request){.op = NX_OP_moe_combine, .name = "mixed", .in = {y, rows, r->weights}});
}

/* One for what all experts make of a token. */
static nxc_id with_layer_bias(const nxc_decoder *d, nxc_id y) {
  const nxc_box box = {NXC_PART_DOWN, d->t->model.hidden, nxc_rank_number_of(0)};
  nxc_id bias = nxc_parameter_bias(d->graph, d->t, "mixture_bias", &box, 1, 0);
  return nxc_append(d->graph,
                    &(nxc_op_request){.op = NX_OP_bias_add, .name = "mixture_biased", .in = {y, bias}});
}

nxc_id nxc_moe_layer(const nxc_decoder *d, nxc_id x, nxc_id routed_by) {
  nxc_graph *graph = d->graph;
  const nxc_feed_forward_spec *spec = &d->layer->ffn;
  layer l = {.graph = graph,
             .d = d,
             .t = d->t,
             .activation = spec->activation,
             .m = spec->mixture,
             .first_biased = spec->bias && spec->mixture->biases <= NXC_BIASES_OF_FIRST,
             .last_biased = spec->bias && spec->mixture->biases == NXC_BIASES_OF_EXPERTS,
             .expert = nxc_axis(&graph->mesh, NXC_AXIS_EXPERT),
             .expert_tensor = nxc_axis(&graph->mesh, NXC_AXIS_EXPERT_TENSOR)};
  l.n_ranks = nxc_mesh_size(&graph->mesh, l.expert);
  l.n_local = l.m->n_experts / l.n_ranks;
  l.gathered = l.expert_tensor | (l.m->gathers ? l.expert : 0);
  routed r;
  nxc_moe_route(d, routed_by, &r.experts, &r.weights);
  r.tokens = gather(graph, "tokens", x, l.gathered);
  r.experts = gather(graph, "all_experts", r.experts, l.gathered);
  r.weights = gather(graph, "all_weights", r.weights, l.gathered);
  nxc_id y = scatter(graph, dispatch(&l, &r), x);
  return spec->bias && l.m->biases == NXC_BIASES_OF_LAYER ? with_layer_bias(d, y) : y;
}
