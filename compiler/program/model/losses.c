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
  nxc_op_request request = {.op = NX_OP_ce_loss,
                            .in = {stats, weights},
                            .out = {0, sum},
                            .attrs = {[NX_ce_loss_z] = nxc_real(d->t->objective.z)}};
  sum_up(d->graph, &request, NX_ce_loss_accumulate, 0);
  return sum;
}

/* What is summed over the tokens of each sequence, of all ranks that hold some. */
static nxc_id completed(nxc_graph *graph, const char *name, nxc_id part, nxc_id into) {
  uint32_t context = nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT);
  nxc_op_request whole = {
      .op = NX_OP_all_reduce, .name = name, .in = {part}, .out = {into}, .group_atoms = context};
  return nxc_append(graph, &whole);
}

/* Sums and counts of the weights of each sequence, by an operator that gives both, as outputs from `first`
 * on. */
static void sequences(const nxc_decoder *d, nxc_op_request *request, uint32_t first, nxc_id *counts) {
  nxc_graph *graph = d->graph;
  bool divided = nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT) != 0;
  graph->sequence_sums = counted(graph, "sequence_sums", d->t->batch.micro);
  request->name = "sequences";
  if (!divided) request->out[first] = graph->sequence_sums;
  nxc_append(graph, request);
  const nxc_operator_node made = graph->operators[graph->n_operators - 1];
  *counts = made.args[made.n_in + first + 1];
  if (!divided) return;
  completed(graph, NULL, made.args[made.n_in + first], graph->sequence_sums);
  *counts = completed(graph, "all_counts", *counts, 0);
}

static nxc_id compare(const nxc_decoder *d, nxc_id counts) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  const nxc_objective *o = &t->objective;
  nxc_id sum = counted(graph, "loss", 1);
  graph->metrics = counted(graph, "metrics", NX_N_ANSWER_METRICS);
  nxc_op_request request = {
      .op = NX_OP_preference,
      .name = "preference",
      .in = {graph->sequence_sums, counts, graph->reference, graph->rewards},
      .out = {sum, 0, graph->metrics},
      .attrs = {[NX_preference_objective] = nxc_integer(o->kind - NX_OBJECTIVE_DPO),
                [NX_preference_beta] = nxc_real(o->beta),
                [NX_preference_smoothing] = nxc_real(o->smoothing),
                [NX_preference_scale] = nxc_real((double)o->row->rows * (double)t->model.sequence),
                [NX_preference_desirable] = nxc_real(o->desirable),
                [NX_preference_undesirable] = nxc_real(o->undesirable),
                [NX_preference_penalty] = nxc_real(o->penalty)}};
  sum_up(graph, &request, NX_preference_accumulate, 1);
  return sum;
}

/* The loss is counted in tokens, of which a sample has those of its whole sequences: so a step's is the mean
 * over its samples. */
nxc_id nxc_answer_loss(const nxc_decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  nxc_id counts, stats = token_statistics(d, x, graph->labels);
  nxc_op_request request = {.op = NX_OP_sequence_loss, .in = {stats, graph->weights}};
  sequences(d, &request, 1, &counts);
  return compare(d, counts);
}

nxc_id nxc_value_loss(const nxc_decoder *d, nxc_id values) {
  nxc_id counts;
  nxc_op_request request = {.op = NX_OP_sequence_value, .in = {values, d->graph->weights}};
  sequences(d, &request, 0, &counts);
  return compare(d, counts);
}
