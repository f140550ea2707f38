/* SPDX-License-Identifier: Apache-2.0 */
/* The one record of the run. */
#include "compiler/program/emit/emit.h"


#include <stdlib.h>

/* A rank's number on an axis, as a constant. */
static nxc_id axis_rank(nxc_graph *graph, nxc_axis_id axis) {
  nxc_rank_number number = nxc_rank_number_of(0);
  nxc_rank_number_stride(&number, nxc_axis(&graph->mesh, axis), 1);
  return nxc_constant(graph, &number);
}

static nx_target target_of(const nxc_settings *s) {
  return nx_target_find_name(nxc_text(s, NX_SETTING_RUN_TARGET))->target;
}

static int by_name(const void *left, const void *right) {
  const nx_piece *a = left, *b = right;
  return a->name < b->name ? -1 : a->name > b->name;
}

/* Elements of the adapters' tensors, each name once. */
static uint64_t count_adapters(nxc_emitter *e) {
  uint32_t n_pieces = e->sections[NX_SECTION_PIECES].n_records, n = 0;
  const nx_piece *all = (const void *)e->sections[NX_SECTION_PIECES].bytes;
  nx_piece *pieces = nxc_arena_array(e->arena, n_pieces + 1, sizeof *pieces);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n_pieces; i++)
    if (all[i].flags & NX_PIECE_ADAPTER) pieces[n++] = all[i];
  qsort(pieces, n, sizeof *pieces, by_name);
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || pieces[i].name != pieces[i - 1].name)
      sum += (uint64_t)(pieces[i].logical_rows * pieces[i].logical_columns);
  return sum;
}

static const char *adapter_from(const nxc_settings *s, const nxc_training *t) {
  bool given = t->lora.rank > 0 && nxc_has(s, NX_SETTING_LORA_INIT_FROM);
  return given ? nxc_text(s, NX_SETTING_LORA_INIT_FROM) : "";
}

/* Of the last chunk, whose graph may not be the one that says the rest. */
static uint32_t sequence_sums(const nxc_emitter *e) {
  uint32_t last = e->pipeline->chunks[e->pipeline->n_chunks - 1].graph;
  nxc_id sums = e->pipeline->graphs[last]->sequence_sums;
  return sums ? e->value_indices[last][sums] : NX_NONE;
}

/* "" where the weights are drawn. */
static const char *init_from(const nxc_settings *s) {
  return nxc_has(s, NX_SETTING_RUN_INIT_FROM) ? nxc_text(s, NX_SETTING_RUN_INIT_FROM) : "";
}

/* Which tensors a checkpoint of weights has, where one is read. */
static const char *tensor_parts(const nxc_emitter *e) {
  bool reads = *init_from(e->settings) != '\0' || nxc_has(e->settings, NX_SETTING_CHECKPOINT_LOAD);
  return reads ? nxc_tensor_parts_text(e->arena, e->training) : "";
}

static nx_run run_of(nxc_emitter *e) {
  const nxc_training *t = e->training;
  const nxc_settings *s = e->settings;
  uint32_t n_threads = (uint32_t)nxc_int(s, NX_SETTING_RUN_THREADS);
  return (nx_run){
      .n_ranks = t->layout.world,
      .n_hosts = t->layout.nodes,
      .n_threads = n_threads,
      .target = target_of(s),
      .workspace_bytes = nxc_emit_workspace(e, target_of(s), n_threads),
      .seed = (uint64_t)nxc_int(s, NX_SETTING_RUN_SEED),
      .n_steps = (uint64_t)t->rate.max_steps,
      .epochs = nxc_has(s, NX_SETTING_SCHEDULE_EPOCHS) ? (uint64_t)nxc_int(s, NX_SETTING_SCHEDULE_EPOCHS) : 0,
      .n_micro_batches = e->graph->n_micro_batches,
      .micro_batch = (uint32_t)t->batch.micro,
      .sequence = (uint32_t)t->model.sequence,
      .global_batch = (uint32_t)t->batch.global,
      .vocab = (uint64_t)t->model.vocab,
      .tokens_per_step = (uint64_t)(t->batch.global * t->model.sequence),
      .flops_per_step = nxc_training_flops(t),
      .n_parameters = nxc_training_parameters(t),
      .n_trained = t->lora.rank > 0 ? count_adapters(e) : nxc_training_parameters(t),
      .save_base = t->lora.rank > 0 && nxc_flag(s, NX_SETTING_LORA_SAVE_BASE),
      .merge_every = (uint32_t)t->lora.merge_every,
      .merge_scale = t->lora.scale,
      .repeat_batches = (uint32_t)nxc_int_or(s, NX_SETTING_DATA_REPEAT_BATCHES, 0),
      .plateau = t->plateau,
      .data_size = t->layout.data,
      .pair_atoms = t->sharding.in_pairs ? nxc_axis(&t->mesh, NXC_AXIS_DATA) : 0,
      .objective = t->objective.kind,
      .seen_late = (uint16_t)t->rate.samples_late,
      .n_slots = e->pipeline->n_slots,
      .ring_size = t->layout.context / t->layout.ulysses,
      .ulysses_size = t->layout.ulysses,
      .end_of_document = NX_NONE,
      .stochastic = t->types.stochastic,
      .loss_mean = t->data.loss_mean};
}

static void add_texts(nxc_emitter *e, nx_run *run) {
  const nxc_training *t = e->training;
  const nxc_settings *s = e->settings;
  run->adapter_config = nxc_emit_string(e, nxc_adapter_config_text(e->arena, s, t));
  run->adapter_from = nxc_emit_string(e, adapter_from(s, t));
  run->init_from = nxc_emit_string(e, init_from(s));
  run->tensor_parts = nxc_emit_string(e, tensor_parts(e));
  run->model_config = nxc_emit_string(e, nxc_model_config_text(e->arena, s, &t->model));
}

static void add_rank_numbers(const nxc_emitter *e, nx_run *run) {
  run->data_rank = axis_rank(e->graph, NXC_AXIS_DATA);
  run->ring_rank = axis_rank(e->graph, NXC_AXIS_RING);
  run->ulysses_rank = axis_rank(e->graph, NXC_AXIS_ULYSSES);
}

/* What the run puts into a step, and reads of it. */
static void add_values(const nxc_emitter *e, nx_run *run) {
  const nxc_graph *graph = e->graph;
  run->updates = nxc_emit_value_of(e, graph->updates);
  run->reductions = nxc_emit_value_of(e, graph->reductions);
  run->tokens = nxc_emit_value_of(e, graph->tokens);
  run->labels = nxc_emit_value_of(e, graph->labels);
  run->positions = nxc_emit_value_of(e, graph->positions);
  run->samples = nxc_emit_value_of(e, graph->samples);
  run->step = nxc_emit_value_of(e, graph->step);
  run->reference = nxc_emit_value_of(e, graph->reference);
  run->rewards = nxc_emit_value_of(e, graph->rewards);
  run->counts_voters = graph->counts_voters;
  run->sequence_sums = sequence_sums(e);
  run->metrics = nxc_emit_value_of(e, graph->metrics_total);
  run->loss = nxc_emit_value_of(e, graph->loss);
  run->loss_total = nxc_emit_value_of(e, graph->loss_total);
  run->grad_norm = nxc_emit_value_of(e, graph->grad_norm);
  run->lr = nxc_emit_value_of(e, graph->lr);
  run->places = nxc_emit_value_of(e, graph->places);
  run->starts = nxc_emit_value_of(e, graph->starts);
  run->weights = nxc_emit_value_of(e, graph->weights);
  run->seen = nxc_emit_value_of(e, graph->seen);
  bool scaled = graph->gradient_factor != graph->loss_scale;
  run->gradient_factor = scaled ? nxc_emit_value_of(e, graph->gradient_factor) : NX_NONE;
  run->later_labels = nxc_emit_value_of(e, graph->later_labels);
  run->later_weights = nxc_emit_value_of(e, graph->later_weights);
  run->later_factor = graph->later_labels ? e->training->model.predict_factor : 0;
  run->loss_scale = nxc_emit_value_of(e, graph->loss_scale);
}

static void add_documents(const nxc_data *data, nx_run *run) {
  run->documents = (data->separate_documents ? NX_DOCUMENTS_ATTENTION : 0) |
                   (data->restart_positions ? NX_DOCUMENTS_POSITIONS : 0) |
                   (data->mask_document_ends ? NX_DOCUMENTS_LOSS : 0);
  if (run->documents && data->indexed_documents) run->documents |= NX_DOCUMENTS_INDEX;
  if (run->documents && data->end_of_document >= 0) run->end_of_document = (uint32_t)data->end_of_document;
}

static void add_loss_scale(const nxc_loss_scale *scale, nx_run *run) {
  run->loss_scale_initial = scale->initial;
  run->loss_scale_least = scale->least;
  run->loss_scale_window = scale->window;
  run->loss_scale_hysteresis = scale->hysteresis;
  run->loss_scale_rules = (scale->dynamic ? NX_LOSS_SCALE_DYNAMIC : 0) |
                          (scale->renews ? NX_LOSS_SCALE_RENEWS : 0) |
                          (scale->ends ? NX_LOSS_SCALE_ENDS : 0) | (scale->plain ? NX_LOSS_SCALE_PLAIN : 0);
}

void nxc_emit_run(nxc_emitter *e) {
  nx_run run = run_of(e);
  add_texts(e, &run);
  add_rank_numbers(e, &run);
  add_values(e, &run);
  add_documents(&e->training->data, &run);
  add_loss_scale(&e->training->types.loss_scale, &run);
  nxc_emit_record(e, NX_SECTION_RUN, &run);
}
