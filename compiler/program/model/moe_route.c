/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/moe_route.h"

#include "compiler/program/model/parameters.h"

static const nxc_mixture *mixture_of(const nxc_decoder *d) {
  return d->layer->ffn.mixture;
}

/* The logits of a micro-batch's sequences, whose parts lie on context-parallel ranks, and the parts' parts on
 * tensor-parallel ones; and where those of this rank begin. */
static nxc_id all_logits(const nxc_decoder *d, nxc_id logits, nxc_rank_number *start) {
  nxc_graph *graph = d->graph;
  const nxc_axis_id axes[] = {NXC_AXIS_TENSOR, NXC_AXIS_CONTEXT};
  *start = nxc_rank_number_of(0);
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
    uint32_t atoms = nxc_axis(&graph->mesh, axes[i]) &
                     nxc_atoms_placed(&graph->values[logits].shape.placement, NXC_SPLIT + 1);
    nxc_rank_number_stride(start, atoms, graph->values[logits].shape.dims[1]);
    const nxc_op_request whole = {.op = NX_OP_all_gather,
                                  .name = "all_logits",
                                  .in = {logits},
                                  .attrs = {[NX_all_gather_axis] = nxc_integer(1)},
                                  .group_atoms = atoms};
    if (atoms != 0) logits = nxc_append(graph, &whole);
  }
  return logits;
}

/* The load-balancing loss, in the unit of the cross-entropy's sum over tokens: of a layer (or sequence of it)
 * coefficient x E x sum of probability x share of the load; of the model, as Hugging Face has it, both are
 * means over the tokens of all layers, and shares are those of a token, k times as much. Counts of tokens
 * that are given are made shares by it. */
static double aux_factor(const nxc_decoder *d, double aux, int64_t n_tokens) {
  const nxc_mixture *m = mixture_of(d);
  double factor = aux * (double)m->n_experts, n_layers = (double)nxc_model_mixtures(&d->t->model);
  bool of_model = m->aux_scope == NXC_AUX_OF_MODEL;
  if (of_model) factor *= (double)m->top_k / n_layers;
  if (m->aux_over != NXC_AUX_OVER_MICRO_BATCH) return factor;
  return factor / ((double)(n_tokens * m->top_k) * (of_model ? n_layers : 1));
}

/* What the passes of the step have counted so far on this rank. */
static nxc_id tally(nxc_graph *graph, nxc_id counts) {
  const nxc_shape *of = &graph->values[counts].shape;
  nxc_shape shape = nxc_shape_of(NX_f32, 1, (int64_t[]){of->dims[1]});
  nxc_place_atoms(&shape.placement, nxc_atoms_placed(&of->placement, NXC_SPLIT), NXC_PARTIAL);
  nxc_id sum = nxc_value_new(graph, "router.counts_of_step", NXC_ROLE_GRADIENT, &shape);
  nxc_clear_first(graph, sum);
  return sum;
}

/* Experts' shares of the load of more than a micro-batch, whose counts these are. They are kept whatever is
 * computed again. */
static nxc_id shares(nxc_graph *graph, bool of_step, nxc_id counts) {
  int32_t within = graph->layer;
  graph->layer = -1;
  nxc_op_request sum = {.op = NX_OP_bias_grad, .name = "load", .in = {counts}, .dtype = NX_f32};
  if (of_step) {
    sum.out[0] = tally(graph, counts);
    sum.attrs[NX_bias_grad_accumulate] = nxc_integer(1);
  }
  nxc_id load = nxc_append(graph, &sum);
  uint32_t partial = nxc_atoms_placed(&graph->values[load].shape.placement, NXC_PARTIAL);
  const nxc_op_request whole = {
      .op = NX_OP_all_reduce, .name = "whole_load", .in = {load}, .dtype = NX_f32, .group_atoms = partial};
  if (partial) load = nxc_append(graph, &whole);
  load = nxc_append(graph, &(nxc_op_request){.op = NX_OP_moe_share, .name = "load_shares", .in = {load}});
  graph->layer = within;
  return load;
}

/* The load of several losses together, in the unit of the first one's: each sequence's counts, or those of
 * the micro-batch, and beside them those of all its sequences, and the step's shares. */
static nxc_id several(const nxc_decoder *d, nxc_id counts) {
  nxc_graph *graph = d->graph;
  const nxc_mixture *m = mixture_of(d);
  bool by_sequence = m->aux_sequence > 0;
  double first = by_sequence ? m->aux_sequence : m->aux,
         n_tokens = (double)d->t->model.sequence * (by_sequence ? 1 : (double)d->t->batch.micro);
  double together = by_sequence ? m->aux / (first * (double)d->t->batch.micro) : 0;
  nxc_id of_step = m->aux_step > 0 ? shares(graph, true, counts) : 0;
  int32_t within = graph->layer;
  graph->layer = -1;
  const nxc_op_request request = {
      .op = NX_OP_moe_load,
      .name = "load_of_losses",
      .in = {counts, of_step},
      .attrs = {[NX_moe_load_together] = nxc_real(together),
                [NX_moe_load_further] = nxc_real(m->aux_step / first * n_tokens * (double)m->top_k)}};
  nxc_id load = nxc_append(graph, &request);
  graph->layer = within;
  return load;
}

/* Adds to the counts of all layers; they are kept whatever is computed again. */
static void count_for_model(nxc_graph *graph, nxc_id counts) {
  int32_t within = graph->layer;
  graph->layer = -1;
  if (graph->mixture_counts)
    counts = nxc_append(
        graph,
        &(nxc_op_request){.op = NX_OP_add, .name = "counts_so_far", .in = {graph->mixture_counts, counts}});
  graph->mixture_counts = counts;
  graph->layer = within;
}

/* Whose load the layer's loss has, where it is not that of its own micro-batch alone. */
static void note_load(const nxc_decoder *d, nxc_id counts) {
  nxc_graph *graph = d->graph;
  const nxc_mixture *m = mixture_of(d);
  if (m->aux_scope == NXC_AUX_OF_MODEL) {
    count_for_model(graph, counts);
    return;
  }
  bool is_several = m->aux_sequence > 0 || m->aux_step > 0;
  if (!is_several && (m->aux == 0 || m->aux_over == NXC_AUX_OVER_MICRO_BATCH)) return;
  if (graph->mixture_loads == NULL)
    graph->mixture_loads = nxc_arena_array(graph->arena, 2 * NXC_MOST_LAYERS, sizeof(nxc_id));
  graph->mixture_loads[graph->layer] =
      is_several ? several(d, counts) : shares(graph, m->aux_over == NXC_AUX_OVER_STEP, counts);
}

const nxc_shape *nxc_moe_port_counts(nxc_graph *graph, const nxc_training *t) {
  const nxc_mixture *m = t->model.mixture;
  if (m == NULL || m->aux == 0 || m->aux_scope != NXC_AUX_OF_MODEL || t->layout.n_chunks == 1) return NULL;
  nxc_shape *counts = nxc_arena_alloc(graph->arena, sizeof *counts);
  *counts = nxc_shape_of(NX_f32, 2, (int64_t[]){1, m->n_experts});
  nxc_place_atoms(&counts->placement, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_SPLIT);
  return counts;
}

void nxc_moe_load_of_model(nxc_graph *graph, const nxc_training *t) {
  const nxc_mixture *m = t->model.mixture;
  if (graph->mixture_counts && m->aux > 0 && m->aux_over != NXC_AUX_OVER_MICRO_BATCH)
    graph->mixture_counts = shares(graph, m->aux_over == NXC_AUX_OVER_STEP, graph->mixture_counts);
}

/* The losses of the layer are logged with those of all layers, and by themselves. */
static void log_losses(nxc_graph *graph, nxc_id losses) {
  if (graph->router_losses)
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_add_up, .in = {losses}, .out = {graph->router_losses}});
  if (graph->router_layers == 0) return;
  nxc_shape shape = graph->values[graph->router_layers].shape;
  const nxc_rank_number start =
      nxc_rank_number_layer(graph, 0, 2 * (int64_t)sizeof(double), graph->layer);
  shape.dims[0] = 2;
  const char *name = nxc_arena_printf(graph->arena, "router_layers.%d", (int)graph->layer);
  nxc_id own = nxc_view_new(graph, name, graph->router_layers, 0, &shape);
  graph->values[own].shift = nxc_constant(graph, &start);
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_add_up, .in = {losses}, .out = {own}});
}

/* The corrections of a layer that follow quantiles: memory, for which the passes of a step note sums. */
static nxc_id quantiles(const nxc_decoder *d, nxc_id all) {
  nxc_graph *graph = d->graph;
  const int64_t n_experts = mixture_of(d)->n_experts;
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){n_experts + 1});
  uint32_t divided = nxc_atoms_placed(&graph->values[all].shape.placement, NXC_SPLIT);
  nxc_place_atoms(&shape.placement, divided, NXC_PARTIAL);
  const nxc_quantiles new = {
      .correction = nxc_parameter_memory(graph, d->t, "quantiles", NXC_PART_ROUTER, n_experts),
      .sums = nxc_value_new(graph, nxc_arena_printf(graph->arena, "%s.quantile_sums", graph->origin),
                            NXC_ROLE_GRADIENT, &shape)};
  nxc_clear_first(graph, new.sums);
  graph->quantiles =
      nxc_arena_grow(graph->arena, graph->quantiles, graph->n_quantiles, sizeof *graph->quantiles);
  graph->quantiles[graph->n_quantiles++] = new;
  return new.correction;
}

void nxc_moe_settle(nxc_graph *graph, const nxc_training *t) {
  for (size_t i = 0; i < graph->n_quantiles; i++) {
    nxc_id correction = graph->quantiles[i].correction, sums = graph->quantiles[i].sums;
    uint32_t partial = nxc_atoms_placed(&graph->values[sums].shape.placement, NXC_PARTIAL);
    graph->origin = graph->values[correction].name;
    const nxc_op_request whole = {.op = NX_OP_all_reduce,
                                  .name = "all_sums",
                                  .in = {sums},
                                  .when = NX_WHEN_LAST,
                                  .dtype = NX_f64,
                                  .group_atoms = partial};
    if (partial) sums = nxc_append(graph, &whole);
    nxc_append(
        graph,
        &(nxc_op_request){.op = NX_OP_moe_settle,
                          .in = {correction, sums},
                          .out = {correction},
                          .when = NX_WHEN_LAST,
                          .attrs = {[NX_moe_settle_memory] = nxc_real(t->model.mixture->quantile_memory)}});
  }
}

void nxc_moe_route(const nxc_decoder *d, nxc_id x, nxc_id *experts, nxc_id *weights) {
  nxc_graph *graph = d->graph;
  const nxc_mixture *m = mixture_of(d);
  const nxc_box box = {NXC_PART_ROUTER, m->n_experts, nxc_rank_number_of(0)};
  nxc_id weight = nxc_parameter_rows(graph, d->t, "router_weight", &box, 1, d->t->model.hidden, 0);
  nxc_id bias = m->biased ? nxc_parameter_bias(graph, d->t, "router_bias", &box, 1, 0) : 0;
  nxc_id logits = nxc_append(graph, &(nxc_op_request){.op = NX_OP_matmul,
                                                      .name = "router",
                                                      .in = {x, weight, bias},
                                                      .attrs = {[NX_matmul_trans_b] = nxc_integer(1)},
                                                      .dtype = NX_f32});
  if (m->random) logits = nxc_decoder_random_logits(d, logits);
  nxc_id correction = m->corrected ? nxc_parameter_correction(graph, d->t, m->n_experts) : 0;
  nxc_rank_number start;
  nxc_id all = all_logits(d, logits, &start);
  if (m->by_quantiles) correction = quantiles(d, all);
  if (m->drop == NXC_DROP_LEAST) correction = all_logits(d, nxc_decoder_priorities(d, logits), &start);
  int64_t ring = d->t->layout.context / d->t->layout.ulysses;
  int64_t n_tokens = d->t->batch.micro * d->t->model.sequence;
  bool by_sequence = m->aux_scope == NXC_AUX_OF_SEQUENCE || m->aux_sequence > 0;
  double aux = aux_factor(d, m->aux_sequence > 0 ? m->aux_sequence : m->aux,
                          by_sequence ? d->t->model.sequence : n_tokens);
  *experts = nxc_append(
      graph,
      &(nxc_op_request){.op = NX_OP_moe_route,
                        .in = {logits, all, correction},
                        .attrs = {[NX_moe_route_top_k] = nxc_integer(m->top_k),
                                  [NX_moe_route_score] = nxc_integer(m->score),
                                  [NX_moe_route_normalize] = nxc_integer(m->normalize),
                                  [NX_moe_route_scale] = nxc_real(m->scale),
                                  [NX_moe_route_sinkhorn] = nxc_integer(m->sinkhorn),
                                  [NX_moe_route_tolerance] = nxc_real(m->tolerance),
                                  [NX_moe_route_capacity] = nxc_integer(nxc_mixture_capacity(m, n_tokens)),
                                  [NX_moe_route_drop] = nxc_integer(m->drop),
                                  [NX_moe_route_seq_start] = nxc_attribute(graph, &start),
                                  [NX_moe_route_zigzag] = nxc_integer(ring > 1 ? ring : 0),
                                  [NX_moe_route_per_sequence] = nxc_integer(by_sequence),
                                  [NX_moe_route_aux] = nxc_real(aux),
                                  [NX_moe_route_z] = nxc_real(m->z),
                                  [NX_moe_route_groups] = nxc_integer(m->groups),
                                  [NX_moe_route_top_groups] = nxc_integer(m->top_groups),
                                  [NX_moe_route_group_best] = nxc_integer(m->group_best),
                                  [NX_moe_route_by_logits] = nxc_integer(m->by_quantiles)}});
  *weights = nxc_last_output(graph, 1);
  nxc_id counts = nxc_last_output(graph, 2), losses = nxc_last_output(graph, 3);
  log_losses(graph, losses);
  note_load(d, counts);
}
