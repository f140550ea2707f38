/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/passes.h"

typedef struct reductions {
  nxc_graph *graph;
  const nxc_training *t;
  size_t
      *complete; /* per range: behind which operator its gradients are complete, plus 1; 0: never written */
  nxc_id *under_way; /* per class: the range whose reduction was started, plus 1; 0: none */
  nxc_id *added;     /* per range: what the pass's reduction gives, where it is added to the passes before */
} reductions;

/* ---- the collectives ---- */

/* Of whole gradients to this rank's shard, or of all where nothing is divided. */
static void reduce(nxc_graph *graph, const nxc_range_node *range, nxc_id to, uint8_t when) {
  bool divided = range->shard_atoms != 0, summed_before = range->shared && !range->divided_gradients;
  bool kept = range->levels || (graph->votes && !range->divided_gradients);
  nxc_id summands = kept ? range->grad : range->handed;
  nxc_append(graph, &(nxc_op_request){.op = divided ? NX_OP_reduce_scatter : NX_OP_all_reduce,
                                      .in = {summed_before ? range->stage_sum : summands},
                                      .out = {to},
                                      .when = when,
                                      .group_atoms = divided ? range->shard_atoms : range->group_atoms});
}

/* Of shards, over the ranks that hold the same. */
static void reduce_copies(nxc_graph *graph, const nxc_range_node *range, uint8_t when) {
  if (range->grad_shard == 0 || range->summed == range->grad_shard) return;
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_reduce,
                                      .in = {range->grad_shard},
                                      .out = {range->summed},
                                      .when = when,
                                      .group_atoms = range->group_atoms & ~range->shard_atoms});
}

static void enter(nxc_graph *graph, const nxc_range_node *range) {
  graph->origin = range->name;
  graph->layer = range->unit >= 0 ? range->unit : -1;
}

/* Each stage has summed what its use of the parameters gave: whole, or, where passes reduce it, its shard. */
static void sum_stages(nxc_graph *graph, const nxc_range_node *range) {
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_reduce,
                                      .in = {range->grad},
                                      .out = {range->stage_sum},
                                      .when = NX_WHEN_FIRST,
                                      .group_atoms = nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE),
                                      .stages = range->shared});
}

static void copy(nxc_graph *graph, nxc_id from, nxc_id to, uint8_t when) {
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_cast, .in = {from}, .out = {to}, .when = when});
}

/* Both chunks are on one stage: the first leaves its gradient where the last finds it, and takes up the sum
 * when it updates. */
static void sum_chunks(nxc_graph *graph, const nxc_range_node *range) {
  const char *name = nxc_arena_printf(graph->arena, "%s.grad.chunks", range->name);
  nxc_id common = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &graph->values[range->grad].shape);
  graph->values[common].elsewhere = graph->is_last;
  if (!graph->is_last) {
    copy(graph, range->grad, common, NX_WHEN_FIRST);
    copy(graph, common, range->stage_sum, NX_WHEN_LAST);
    return;
  }
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_add,
                                      .in = {range->grad, common},
                                      .out = {range->stage_sum},
                                      .when = NX_WHEN_FIRST});
  copy(graph, range->stage_sum, common, NX_WHEN_FIRST);
}

void nxc_reduce_in_step(nxc_graph *graph, const nxc_training *t, const nxc_range_node *range) {
  if (range->frozen) return;
  enter(graph, range);
  bool in_chunks = range->shared && range->shared->in_chunks;
  uint8_t when = in_chunks && !graph->is_last ? NX_WHEN_LAST : NX_WHEN_FIRST;
  if (in_chunks) sum_chunks(graph, range);
  else if (range->shared) sum_stages(graph, range);
  if (range->group_atoms == 0 || (t->sharding.overlap_reduce && !range->shared)) return;
  if (nxc_is_compressed(range)) graph->steps = NXC_STEPS_PLAIN;
  if (!range->divided_gradients)
    reduce(graph, range, range->grad_shard ? range->grad_shard : range->summed, when);
  reduce_copies(graph, range, when);
  graph->steps = NXC_STEPS_ALL;
}

/* ---- behind the backward pass's operators ---- */

static nxc_id gradient_range(const nxc_graph *graph, nxc_id gradient) {
  for (size_t i = 0; i < graph->n_parameters; i++)
    if (graph->values[graph->parameters[i]].gradient == gradient)
      return graph->values[graph->parameters[i]].range;
  return NX_NONE;
}

static void find_complete(reductions *r, const nxc_program_list *list) {
  const nxc_graph *graph = r->graph;
  for (size_t i = 0; i < list->n; i++) {
    const nxc_operator_node *op = &graph->operators[list->operators[i]];
    for (uint32_t out = 0; out < op->n_out; out++) {
      nxc_id value = op->args[op->n_in + out];
      if (graph->values[value].role != NXC_ROLE_GRADIENT) continue;
      nxc_id range = gradient_range(graph, value);
      if (range != NX_NONE) r->complete[range] = i + 1;
    }
  }
}

/* Nothing writes what lies between parameters and behind them, but it is reduced and its squares are
 * summed. */
static void clear_gap(nxc_graph *graph, const nxc_range_node *range, uint64_t from, uint64_t to) {
  if (from >= to) return;
  nxc_shape shape = graph->values[range->pass_grad].shape;
  shape.dims[0] = (int64_t)(to - from);
  const char *name = nxc_arena_printf(graph->arena, "%s.grad.padding", range->name);
  nxc_id gap = nxc_view_new(graph, name, range->pass_grad, from * nx_dtype_bits(shape.dtype) / 8, &shape);
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_fill, .out = {gap}, .attrs = {nxc_real(0)}});
}

/* Parameters of a range may stand in another order than they were declared in. */
static uint64_t next_start(const nxc_graph *graph, nxc_id range, uint64_t after) {
  uint64_t next = graph->ranges[range].n_elements;
  for (size_t i = 0; i < graph->n_parameters; i++) {
    const nxc_value_node *parameter = &graph->values[graph->parameters[i]];
    if (parameter->range == range && parameter->range_start >= after && parameter->range_start < next)
      next = parameter->range_start;
  }
  return next;
}

static void clear_gaps(nxc_graph *graph, nxc_id range) {
  const nxc_range_node of = graph->ranges[range];
  for (size_t i = 0; i < graph->n_parameters; i++) {
    const nxc_value_node parameter = graph->values[graph->parameters[i]];
    if (parameter.range != range) continue;
    uint64_t end = parameter.range_start + (uint64_t)nxc_shape_elements(&parameter.shape);
    clear_gap(graph, &of, end, next_start(graph, range, end));
  }
}

static void start_divided(reductions *r, nxc_id index) {
  nxc_graph *graph = r->graph;
  const nxc_range_node range = graph->ranges[index];
  if (graph->n_micro_batches == 1) {
    reduce(graph, &range, range.grad, NX_WHEN_ALWAYS);
    return;
  }
  const nxc_shape shape = graph->values[range.grad].shape;
  const char *name = nxc_arena_printf(graph->arena, "%s.grad.pass", range.name);
  r->added[index] = nxc_value_new(graph, name, NXC_ROLE_ACTIVATION, &shape);
  reduce(graph, &range, range.grad, NX_WHEN_FIRST);
  reduce(graph, &range, r->added[index], NX_WHEN_MIDDLE | NX_WHEN_LAST);
}

static void start(reductions *r, nxc_id index) {
  nxc_graph *graph = r->graph;
  const nxc_range_node *range = &graph->ranges[index];
  if (range->divided_gradients)
    start_divided(r, index);
  else
    reduce(graph, range, range->grad_shard ? range->grad_shard : range->summed, NX_WHEN_LAST);
  r->under_way[range->class] = index + 1;
}

static void finish_divided(reductions *r, nxc_id index) {
  nxc_graph *graph = r->graph;
  const nxc_range_node *range = &graph->ranges[index];
  bool once = graph->n_micro_batches == 1;
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_wait, .in = {range->grad},
                                      .when = once ? NX_WHEN_ALWAYS : NX_WHEN_FIRST});
  if (once) return;
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_add,
                                      .in = {range->grad, r->added[index]},
                                      .out = {range->grad},
                                      .when = NX_WHEN_MIDDLE | NX_WHEN_LAST});
}

static void finish(reductions *r, uint32_t class) {
  nxc_graph *graph = r->graph;
  if (r->under_way[class] == 0) return;
  nxc_id index = r->under_way[class] - 1;
  enter(graph, &graph->ranges[index]);
  if (graph->ranges[index].divided_gradients) finish_divided(r, index);
  if (r->t->sharding.overlap_reduce && !graph->ranges[index].shared)
    reduce_copies(graph, &graph->ranges[index], NX_WHEN_LAST);
  r->under_way[class] = 0;
}

/* A data-parallel rank has a vote in each pass, by the sign of what the others of its parts sum to. */
static void vote(nxc_graph *graph, nxc_range_node *range) {
  const nxc_shape shape = graph->values[range->pass_grad].shape;
  uint32_t data = range->group_atoms & nxc_axis(&graph->mesh, NXC_AXIS_DATA),
           others = range->group_atoms & ~data;
  uint32_t n =
      graph->n_micro_batches * nxc_mesh_size(&graph->mesh, data) * nxc_mesh_size(&graph->mesh, others);
  const nxc_op_request whole = {.op = NX_OP_all_reduce,
                                .name = "grad.of_vote",
                                .in = {range->pass_grad},
                                .dtype = shape.dtype,
                                .group_atoms = others};
  nxc_id x = others ? nxc_append(graph, &whole) : range->pass_grad;
  range->handed = nxc_value_new(graph, nxc_arena_printf(graph->arena, "%s.votes", range->name),
                                NXC_ROLE_ACTIVATION, &shape);
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_vote,
                                      .in = {x},
                                      .out = {range->handed},
                                      .attrs = {[NX_vote_share] = nxc_real(1.0 / n)}});
}

/* The votes of the passes, or whatever they hand over, where no collective adds them up. */
static void keep(nxc_graph *graph, const nxc_range_node *range) {
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_fill,
                                      .out = {range->grad},
                                      .attrs = {nxc_real(0)},
                                      .when = graph->n_micro_batches > 1 ? NX_WHEN_FIRST : NX_WHEN_ALWAYS});
  nxc_append(graph, &(nxc_op_request){
                        .op = NX_OP_add, .in = {range->grad, range->handed}, .out = {range->grad}});
}

static bool has_votes(const nxc_graph *graph, const nxc_range_node *range) {
  return graph->votes &&
         graph->tables->parameter_groups[range->parameter_group].update.rule->op == NX_OP_distsignsgd;
}

/* A range's reduction goes on until the next range of its class is complete. */
static void reach(reductions *r, nxc_id index) {
  const nxc_range_node *range = &r->graph->ranges[index];
  enter(r->graph, range);
  if (range->divided_gradients || range->levels || r->graph->votes) clear_gaps(r->graph, index);
  if (has_votes(r->graph, range)) vote(r->graph, &r->graph->ranges[index]);
  if (r->graph->votes && !range->levels && !range->divided_gradients) keep(r->graph, range);
  if (range->levels) nxc_pairs_add(r->graph, index);
  if (range->group_atoms == 0 || (!range->divided_gradients && !r->t->sharding.overlap_reduce)) return;
  if (range->shared && !range->divided_gradients) return; /* the stages sum it first, in the step */
  uint32_t class = range->class;
  finish(r, class);
  start(r, index);
  if (!r->t->sharding.overlap_reduce) finish(r, class);
}

void nxc_reductions_build(nxc_graph *graph, const nxc_training *t) {
  const nxc_program_list list = graph->programs[NXC_BACKWARD];
  reductions r = {.graph = graph, .t = t};
  if (!graph->divides_gradients && !graph->in_pairs && !graph->votes && !t->sharding.overlap_reduce) return;
  r.complete = nxc_arena_array(graph->arena, graph->n_ranges, sizeof *r.complete);
  r.under_way = nxc_arena_array(graph->arena, graph->n_ranges, sizeof *r.under_way);
  r.added = nxc_arena_array(graph->arena, graph->n_ranges, sizeof *r.added);
  find_complete(&r, &list);
  graph->program = NXC_BACKWARD;
  graph->programs[NXC_BACKWARD] = (nxc_program_list){0};
  for (size_t i = 0; i < list.n; i++) {
    nxc_program_push(graph, &graph->programs[NXC_BACKWARD], list.operators[i]);
    for (nxc_id range = 0; range < graph->n_ranges; range++)
      if (r.complete[range] == i + 1) reach(&r, range);
  }
  for (uint32_t class = 0; class < graph->n_ranges; class++) finish(&r, class);
}
