/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/losses.h"

/* How many of a rank's columns are words: all, none, or some on one rank. */
static nxc_rank_number valid_columns(const nxc_decoder *d) {
  if (d->t->model.vocab == d->t->model.vocab_padded) return nxc_rank_number_of(d->vocab);
  int64_t *words = nxc_arena_array(d->graph->arena, d->t->layout.tensor, sizeof *words);
  for (uint32_t rank = 0; rank < d->t->layout.tensor; rank++) {
    int64_t rest = d->t->model.vocab - rank * d->vocab;
    words[rank] = rest < 0 ? 0 : rest > d->vocab ? d->vocab : rest;
  }
  nxc_rank_number number = nxc_rank_number_of(0);
  nxc_rank_number_table(d->graph, &number, d->tensor, words, false);
  return number;
}

/* A value that the host reads, or the step sums up. */
static nxc_id counted(nxc_graph *graph, const char *name, int64_t n) {
  const nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){n});
  nxc_id value = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &shape);
  graph->values[value].unplaced = true;
  return value;
}

/* max, sum of exponentials and the label's logit of each token, of all parts of the vocabulary. */
static nxc_id token_statistics(const nxc_decoder *d, nxc_id x, nxc_id labels) {
  nxc_graph *graph = d->graph;
  nxc_rank_number row_start = nxc_decoder_divided(d, d->vocab), n_valid = valid_columns(d);
  nxc_id stats = nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_ce_stats,
                               .name = "stats",
                               .in = {x, labels},
                               .attrs = {[NX_ce_stats_row_start] = nxc_attribute(graph, &row_start),
                                         [NX_ce_stats_n_valid] = nxc_attribute(graph, &n_valid),
                                         [NX_ce_stats_soft_cap] = nxc_real(d->t->model.output_soft_cap)}});
  if (d->tensor == 0) return stats;
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                             .name = "all_stats",
                                             .in = {stats},
                                             .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                             .group_atoms = d->tensor});
}

/* What is a sum over the micro-batches of a step: the first writes it, the others add, where it is not summed
 * in pairs. The first output is one of each. */
static void sum_up(nxc_graph *graph, nxc_op_request *request, uint32_t accumulate, uint32_t own) {
  bool several = graph->n_micro_batches > 1 && !graph->in_pairs;
  request->attrs[accumulate] = nxc_integer(0);
  request->when = several ? NX_WHEN_FIRST : NX_WHEN_ALWAYS;
  nxc_append(graph, request);
  const nxc_operator_node *made = &graph->operators[graph->n_operators - 1];
  request->out[own] = made->args[made->n_in + own];
  request->attrs[accumulate] = nxc_integer(1);
  request->when = NX_WHEN_MIDDLE | NX_WHEN_LAST;
  if (several) nxc_append(graph, request);
}

nxc_id nxc_token_loss(const nxc_decoder *d, const char *name, nxc_id x, nxc_id labels, nxc_id weights) {
  nxc_id stats = token_statistics(d, x, labels), sum = counted(d->graph, name, 1);
  nxc_op_request request = {.op = NX_OP_ce_loss, .in = {stats, weights}, .out = {0, sum}};
  sum_up(d->graph, &request, NX_ce_loss_accumulate, 0);
  return sum;
}

/* Sums and counts of the weights of each sequence, whatever ranks hold its tokens. */
static void sequences(const nxc_decoder *d, nxc_id stats, nxc_id *sums, nxc_id *counts) {
  nxc_graph *graph = d->graph;
  uint32_t context = nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT);
  *sums = counted(graph, "sequence_sums", d->t->batch.micro);
  nxc_op_request request = {.op = NX_OP_sequence_loss, .name = "sequences", .in = {stats, graph->weights}};
  if (!context) request.out[1] = *sums;
  nxc_append(graph, &request);
  const nxc_operator_node made = graph->operators[graph->n_operators - 1];
  *counts = made.args[made.n_in + 2];
  if (!context) return;
  nxc_op_request whole = {
      .op = NX_OP_all_reduce, .in = {made.args[made.n_in + 1]}, .out = {*sums}, .group_atoms = context};
  nxc_append(graph, &whole);
  whole = (nxc_op_request){
      .op = NX_OP_all_reduce, .name = "all_counts", .in = {*counts}, .group_atoms = context};
  *counts = nxc_append(graph, &whole);
}

/* The loss is counted in tokens, of which a pair has those of two whole sequences: so a step's is the mean
 * over its pairs. */
nxc_id nxc_pair_loss(const nxc_decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  nxc_id stats = token_statistics(d, x, graph->labels), sum = counted(graph, "loss", 1);
  const nxc_training *t = d->t;
  nxc_id counts;
  sequences(d, stats, &graph->sequence_sums, &counts);
  graph->metrics = counted(graph, "metrics", NX_N_PAIR_METRICS);
  nxc_op_request request = {
      .op = NX_OP_preference,
      .name = "preference",
      .in = {graph->sequence_sums, counts, graph->reference},
      .out = {sum, 0, graph->metrics},
      .attrs = {[NX_preference_objective] = nxc_integer(t->objective.kind == NX_OBJECTIVE_ORPO),
                [NX_preference_beta] = nxc_real(t->objective.beta),
                [NX_preference_smoothing] = nxc_real(t->objective.smoothing),
                [NX_preference_scale] = nxc_real(2 * (double)t->model.sequence)}};
  sum_up(graph, &request, NX_preference_accumulate, 1);
  return sum;
}
