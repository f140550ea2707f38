/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit/emit.h"

#include "compiler/program/model/tensors.h"
#include "compiler/program/graph/rules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void enter_graph(nxc_emitter *e, uint32_t index) {
  e->graph = e->pipeline->graphs[index];
  e->value_index = e->value_indices[index];
}

/* ---- mesh and constants ---- */

static void emit_mesh(nxc_emitter *e) {
  const nxc_mesh *mesh = &e->graph->mesh;
  for (uint32_t atom = 0; atom < mesh->n_atoms; atom++) {
    uint32_t name = nxc_emit_string(e, mesh->name[atom]);
    uint32_t flags = nxc_axis(mesh, NXC_AXIS_PIPELINE) == 1u << atom ? NX_ATOM_PIPELINE : 0;
    nxc_emit_record(e, NX_SECTION_ATOMS, &(nx_atom){name, mesh->size[atom], mesh->stride[atom], flags});
  }
}

static void emit_groups(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->tables->n_groups; i++) {
    const nxc_group_node *group = &e->graph->tables->groups[i];
    nx_group record = {.name = nxc_emit_string(e, group->name),
                       .atoms = group->atoms,
                       .size = nxc_group_size(e->graph, group->atoms, group->stages)};
    if (group->stages) {
      record.n_stages = group->stages->n;
      record.stages = e->sections[NX_SECTION_TABLE].n_records;
      for (uint32_t s = 0; s < group->stages->n; s++)
        nxc_emit_record(e, NX_SECTION_TABLE, &(int64_t){group->stages->at[s]});
    }
    nxc_emit_record(e, NX_SECTION_GROUPS, &record);
  }
}

static nx_term describe_term(nxc_emitter *e, const nxc_term *term) {
  nx_term record = {.atoms = term->atoms, .stride = term->stride, .kind = NX_TERM_STRIDE};
  if (term->first) return (nx_term){.atoms = term->atoms, .kind = NX_TERM_FIRST};
  if (term->table == NULL) return record;
  uint32_t n = term->atoms == NX_NONE ? e->pipeline->n_chunks : nxc_mesh_size(&e->graph->mesh, term->atoms);
  record = (nx_term){.atoms = term->atoms, .kind = term->multiply ? NX_TERM_CHOICE : NX_TERM_ENTRY};
  record.table = e->sections[NX_SECTION_TABLE].n_records;
  for (uint32_t i = 0; i < n; i++) nxc_emit_record(e, NX_SECTION_TABLE, &term->table[i]);
  return record;
}

static void emit_constants(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->tables->n_constants; i++) {
    const nxc_rank_number *number = &e->graph->tables->constants[i];
    uint32_t first = e->sections[NX_SECTION_TERMS].n_records;
    for (uint32_t t = 0; t < number->n_terms; t++) {
      nx_term record = describe_term(e, &number->terms[t]);
      nxc_emit_record(e, NX_SECTION_TERMS, &record);
    }
    nxc_emit_record(e, NX_SECTION_CONSTANTS, &(nx_constant){number->base, first, number->n_terms});
  }
}

/* ---- values ---- */

static void mark_values(nxc_emitter *e, bool *used) {
  nxc_graph *graph = e->graph;
  for (nxc_program_index program = 0; program < NXC_N_PROGRAMS; program++)
    for (size_t i = 0; i < graph->programs[program].n; i++) {
      const nxc_operator_node *op = &graph->operators[graph->programs[program].operators[i]];
      for (uint32_t arg = 0; arg < op->n_in + op->n_out; arg++) used[op->args[arg]] = true;
    }
  nxc_graph_mark_inputs(graph, used);
  for (size_t i = 0; i < graph->n_ranges; i++)
    used[graph->ranges[i].param] = used[graph->ranges[i].grad] = true; /* of a frozen one 0 */
  for (nx_port port = 0; port < NX_N_PORTS; port++)
    if (graph->ports[port]) used[graph->ports[port]] = true;
  for (size_t i = 1; i < graph->n_values; i++)
    if (used[i]) used[nxc_value_root(graph, (nxc_id)i)] = true;
}

/* The host's values and the numbers of the step are the same in all graphs, at the same place. */
static uint32_t find_shared(const nxc_emitter *e, const nx_value *record) {
  const nxc_section *section = &e->sections[NX_SECTION_VALUES];
  const nx_value *values = (const void *)section->bytes;
  bool shared = record->arena == NX_ARENA_input || record->arena == NX_ARENA_scalar;
  if (!shared || (record->view_of != NX_NONE && record->arena == NX_ARENA_scalar)) return NX_NONE;
  for (uint32_t i = 0; i < section->n_records; i++)
    if (memcmp(&values[i], record, sizeof *record) == 0) return i;
  return NX_NONE;
}

static void emit_value(nxc_emitter *e, nxc_id id) {
  const nxc_value_node *value = &e->graph->values[id];
  nx_value record = {.name = nxc_emit_string(e, value->name),
                     .dtype = (uint16_t)value->shape.dtype,
                     .n_dims = (uint8_t)value->shape.n_dims,
                     .arena = (uint8_t)value->arena,
                     .offset = value->offset,
                     .bytes = nxc_shape_bytes(&value->shape),
                     .view_of = value->view_of ? e->value_index[value->view_of] : NX_NONE,
                     .offset_shift = value->shift};
  memcpy(record.dims, value->shape.dims, sizeof record.dims);
  e->value_index[id] = find_shared(e, &record);
  if (e->value_index[id] == NX_NONE) e->value_index[id] = nxc_emit_record(e, NX_SECTION_VALUES, &record);
}

/* A view stands after the value that it is a view of. */
static void emit_values(nxc_emitter *e) {
  bool *used = nxc_arena_array(e->arena, e->graph->n_values, sizeof *used);
  mark_values(e, used);
  for (size_t i = 0; i < e->graph->n_values; i++) e->value_index[i] = NX_NONE;
  for (int views = 0; views < 2; views++)
    for (nxc_id i = 1; i < e->graph->n_values; i++)
      if (used[i] && (e->graph->values[i].view_of != 0) == views) emit_value(e, i);
}

static void emit_arenas(nxc_emitter *e) {
  const nxc_pipeline *p = e->pipeline;
  for (nx_arena_kind kind = 0; kind < NX_N_ARENAS; kind++) {
    bool shared = false;
    for (uint32_t i = 0; i < p->n_graphs; i++) shared |= p->graphs[i]->arena_shared[kind];
    if (p->arena_bytes[kind] == 0) continue;
    nx_arena_record record = {.kind = kind,
                              .flags = shared ? NX_ARENA_SHARED : 0,
                              .bytes = p->arena_bytes[kind],
                              .slot_bytes = kind == NX_ARENA_slot ? p->slot_bytes : 0};
    nxc_emit_record(e, NX_SECTION_ARENAS, &record);
  }
}

static uint32_t value_of(const nxc_emitter *e, nxc_id id) {
  return id ? e->value_index[id] : NX_NONE;
}

static void emit_ranges(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->n_ranges; i++) {
    const nxc_range_node *range = &e->graph->ranges[i];
    nx_range record = {
        .name = nxc_emit_string(e, range->name),
        .group = range->group_atoms ? nxc_group(e->graph, range->group_atoms, NULL) : NX_NONE,
        .shard_group = range->shard_atoms ? nxc_group(e->graph, range->shard_atoms, NULL) : NX_NONE,
        .n_elements = range->n_elements,
        .n_shard = range->n_shard,
        .shard_start = nxc_constant(e->graph, &range->shard_start),
        .param = value_of(e, range->param),
        .master = value_of(e, range->master),
        .grad = value_of(e, range->grad),
        .parameter_group = range->parameter_group};
    for (uint32_t state = 0; state < NX_MAX_STATES; state++)
      record.states[state] = value_of(e, range->states[state]);
    nxc_emit_record(e, NX_SECTION_RANGES, &record);
  }
}

/* Of the first graph: the numbers of the step are the same values in all. */
static void emit_parameter_groups(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->tables->n_parameter_groups; i++) {
    const nxc_parameter_group *group = &e->graph->tables->parameter_groups[i];
    const nxc_group_numbers *numbers = &e->graph->group_numbers[i];
    const nxc_learning_rate *decay = &group->weight_decay;
    nxc_emit_record(e, NX_SECTION_PARAMETER_GROUPS,
                    &(nx_parameter_group){.name = nxc_emit_string(e, group->name),
                                          .optimizer = group->update.rule->op,
                                          .lr = value_of(e, numbers->lr),
                                          .decay = value_of(e, numbers->decay),
                                          .lr_factor = group->lr_factor,
                                          .weight_decay = decay->segments[decay->n_segments - 1].to});
  }
}

static void emit_piece(nxc_emitter *e, uint32_t chunk, const nxc_piece_node *piece) {
  nxc_graph *graph = e->graph;
  const nxc_chunk_node *at = &e->pipeline->chunks[chunk];
  const nxc_value_node *value = &graph->values[piece->value];
  int32_t layer = piece->layer < 0 ? piece->layer : piece->layer - graph->first_layer + at->first_layer;
  const nxc_rank_number tensor_id = nxc_rank_number_of(nxc_piece_key(e->training, piece, layer));
  uint64_t row_elements = value->shape.n_dims == 1 ? 1 : (uint64_t)piece->columns;
  nx_piece record = {.name = nxc_emit_string(e, nxc_piece_name(e->arena, e->training, piece, layer)),
                     .value = value_of(e, piece->value),
                     .range = e->first_range[at->graph] + value->range,
                     .flags = (piece->transposed ? NX_PIECE_TRANSPOSED : 0) |
                              (piece->adapter ? NX_PIECE_ADAPTER : 0) | (piece->alias ? NX_PIECE_ALIAS : 0) |
                              (piece->memory ? NX_PIECE_MEMORY : 0),
                     .logical_rows = piece->logical_rows,
                     .logical_columns = piece->logical_columns,
                     .rows = piece->rows,
                     .columns = piece->columns,
                     .row_start = nxc_constant(graph, &piece->row_start),
                     .column_start = nxc_constant(graph, &piece->column_start),
                     .row = piece->row,
                     .range_offset = value->range_start + (uint64_t)piece->row * row_elements,
                     .owner = nxc_constant(graph, &piece->owner),
                     .init = piece->init,
                     .init_std = piece->init_std,
                     .tensor_id = nxc_constant(graph, &tensor_id),
                     .n_dims = piece->n_dims,
                     .chunk = chunk,
                     .slices = piece->slices,
                     .form = piece->form};
  nxc_emit_record(e, NX_SECTION_PIECES, &record);
}

static void emit_pieces(nxc_emitter *e) {
  for (uint32_t chunk = 0; chunk < e->pipeline->n_chunks; chunk++) {
    enter_graph(e, e->pipeline->chunks[chunk].graph);
    for (size_t i = 0; i < e->graph->n_pieces; i++) emit_piece(e, chunk, &e->graph->pieces[i]);
  }
}

/* Of the first graph: they are the same values in all. */
static void emit_fixed_values(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->n_fixed; i++) {
    const nxc_fixed_value *fixed = &e->graph->fixed[i];
    nx_fixed_value record = {value_of(e, fixed->value), e->sections[NX_SECTION_TABLE].n_records};
    int64_t n = nxc_shape_elements(&e->graph->values[fixed->value].shape);
    for (int64_t at = 0; at < n; at++) nxc_emit_record(e, NX_SECTION_TABLE, &fixed->bits[at]);
    nxc_emit_record(e, NX_SECTION_FIXED_VALUES, &record);
  }
}

/* ---- programs ---- */

/* What runs in the first micro-batch or in the last, and not only behind the first or before the last, runs
 * in one that is both. */
static uint8_t when_of(const nxc_emitter *e, nxc_program_index program, uint8_t when) {
  const nxc_batch *batch = &e->training->batch;
  bool passes = (program == NXC_FORWARD || program == NXC_BACKWARD) && batch->n_phases > 0;
  bool evaluates = program == NXC_EVALUATE && batch->n_evaluated == 1 && batch->n_micro > 1;
  bool partly = when & NX_WHEN_MIDDLE && (when & NX_WHEN_ALWAYS) != NX_WHEN_ALWAYS;
  return (passes || evaluates) && !partly ? when | NX_WHEN_ONLY : when;
}

static void emit_operator(nxc_emitter *e, nxc_program_index program, const nxc_operator_node *op) {
  bool grouped = op->group_atoms && nx_op_is_collective(nx_op_find(op->op));
  nx_operator record = {.op = (uint16_t)op->op,
                        .when = when_of(e, program, op->when),
                        .n_in = (uint8_t)op->n_in,
                        .n_out = (uint8_t)op->n_out,
                        .n_attrs = (uint8_t)op->n_attrs,
                        .first_argument = e->sections[NX_SECTION_ARGUMENTS].n_records,
                        .first_attribute = e->sections[NX_SECTION_ATTRIBUTES].n_records,
                        .group = grouped ? nxc_group(e->graph, op->group_atoms, op->stages) : NX_NONE,
                        .origin = nxc_emit_string(e, op->origin),
                        .flops = nxc_flops(e->graph, op),
                        .moved_bytes = nxc_bytes_moved(e->graph, op)};
  for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
    nxc_emit_record(e, NX_SECTION_ARGUMENTS, &e->value_index[op->args[i]]);
  for (uint32_t i = 0; i < op->n_attrs; i++) nxc_emit_record(e, NX_SECTION_ATTRIBUTES, &op->attrs[i]);
  nxc_emit_record(e, NX_SECTION_OPERATORS, &record);
}

static const struct {
  const char *name;
  nx_program_kind kind;
} program_rows[NXC_N_PROGRAMS] = {
    [NXC_FORWARD] = {"forward", NX_PROGRAM_FORWARD},
    [NXC_BACKWARD] = {"backward", NX_PROGRAM_BACKWARD},
    [NXC_STEP] = {"step", NX_PROGRAM_STEP},
    [NXC_EVALUATE] = {"evaluation", NX_PROGRAM_EVALUATE},
};

static uint32_t n_programs(const nxc_emitter *e) {
  return e->training->evaluates ? NXC_N_PROGRAMS : NXC_EVALUATE;
}

static void emit_programs(nxc_emitter *e) {
  for (nxc_program_index program = 0; program < n_programs(e); program++) {
    const nxc_program_list *list = &e->graph->programs[program];
    const char *name = program_rows[program].name;
    if (e->pipeline->n_graphs > 1) name = nxc_arena_printf(e->arena, "%s of chunk %u", name, e->graph->chunk);
    nx_program record = {nxc_emit_string(e, name), program_rows[program].kind,
                         e->sections[NX_SECTION_OPERATORS].n_records, (uint32_t)list->n};
    for (size_t i = 0; i < list->n; i++) emit_operator(e, program, &e->graph->operators[list->operators[i]]);
    nxc_emit_record(e, NX_SECTION_PROGRAMS, &record);
  }
}

static void emit_chunk(nxc_emitter *e, const nxc_chunk_node *chunk) {
  enter_graph(e, chunk->graph);
  uint32_t first_program = chunk->graph * n_programs(e);
  nx_chunk record = {.stage = chunk->stage,
                     .first_layer = (uint32_t)chunk->first_layer,
                     .n_layers = (uint32_t)chunk->n_layers,
                     .forward = first_program + NXC_FORWARD,
                     .backward = first_program + NXC_BACKWARD,
                     .evaluate = e->training->evaluates ? first_program + NXC_EVALUATE : NX_NONE,
                     .step = first_program + NXC_STEP,
                     .n_slots = chunk->n_slots};
  for (nx_port port = 0; port < NX_N_PORTS; port++) record.ports[port] = value_of(e, e->graph->ports[port]);
  memcpy(record.arena_base, chunk->arena_base, sizeof record.arena_base);
  memcpy(record.arena_bytes, e->graph->arena_bytes, sizeof record.arena_bytes);
  nxc_emit_record(e, NX_SECTION_CHUNKS, &record);
}

static const char *schedule_name(const nxc_emitter *e, const nx_schedule *schedule) {
  if (schedule->kind == NX_SCHEDULE_EVALUATE) return "evaluate";
  bool full = schedule->n_micro_batches == e->graph->n_micro_batches;
  const char *name = full ? "train" : nxc_arena_printf(e->arena, "train.%u", schedule->n_micro_batches);
  bool compressed = schedule->flags & NX_SCHEDULE_COMPRESSED;
  return compressed ? nxc_arena_printf(e->arena, "%s.compressed", name) : name;
}

static bool is_of_phase(const nx_schedule *schedule, const nxc_phase_node *phase) {
  bool compressed = schedule->flags & NX_SCHEDULE_COMPRESSED;
  return schedule->n_micro_batches == phase->batch.n_micro && compressed == phase->compressed;
}

static void emit_phase(nxc_emitter *e, const nxc_phase_node *phase) {
  nx_phase record = {.first_step = (uint64_t)phase->batch.first_step,
                     .first_sample = (uint64_t)phase->batch.first_sample,
                     .global_batch = (uint32_t)phase->batch.global};
  while (!is_of_phase(&e->pipeline->schedules[record.schedule], phase)) record.schedule++;
  nxc_emit_record(e, NX_SECTION_PHASES, &record);
}

static void emit_schedule(nxc_emitter *e) {
  for (uint32_t i = 0; i < e->pipeline->n_chunks; i++) emit_chunk(e, &e->pipeline->chunks[i]);
  for (size_t i = 0; i < e->pipeline->n_items; i++)
    nxc_emit_record(e, NX_SECTION_ITEMS, &e->pipeline->items[i]);
  for (uint32_t i = 0; i < e->pipeline->n_schedules; i++) {
    nx_schedule schedule = e->pipeline->schedules[i];
    schedule.name = nxc_emit_string(e, schedule_name(e, &schedule));
    nxc_emit_record(e, NX_SECTION_SCHEDULES, &schedule);
  }
  for (size_t i = 0; i < e->pipeline->n_phases; i++) emit_phase(e, &e->pipeline->phases[i]);
}

/* Values, ranges and programs, one graph after another. */
static void emit_graphs(nxc_emitter *e) {
  nxc_pipeline *p = e->pipeline;
  e->value_indices = nxc_arena_array(e->arena, p->n_graphs, sizeof *e->value_indices);
  e->first_range = nxc_arena_array(e->arena, p->n_graphs, sizeof *e->first_range);
  for (uint32_t i = 0; i < p->n_graphs; i++) {
    e->value_indices[i] = nxc_arena_array(e->arena, p->graphs[i]->n_values, sizeof **e->value_indices);
    enter_graph(e, i);
    emit_values(e);
    e->first_range[i] = e->sections[NX_SECTION_RANGES].n_records;
    emit_ranges(e);
    emit_programs(e);
  }
}

/* ---- the run ---- */

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

static void emit_run(nxc_emitter *e) {
  const nxc_training *t = e->training;
  const nxc_settings *s = e->settings;
  nxc_graph *graph = e->graph;
  const nxc_loss_scale *scale = &t->types.loss_scale;
  const char *init_from = nxc_has(s, NX_SETTING_RUN_INIT_FROM) ? nxc_text(s, NX_SETTING_RUN_INIT_FROM) : "";
  nx_run run = {
      .n_ranks = t->layout.world,
      .n_hosts = t->layout.nodes,
      .n_threads = (uint32_t)nxc_int(s, NX_SETTING_RUN_THREADS),
      .target = target_of(s),
      .workspace_bytes = (uint64_t)nxc_int(s, NX_SETTING_RUN_WORKSPACE_BYTES),
      .seed = (uint64_t)nxc_int(s, NX_SETTING_RUN_SEED),
      .n_steps = (uint64_t)t->rate.max_steps,
      .epochs = nxc_has(s, NX_SETTING_SCHEDULE_EPOCHS) ? (uint64_t)nxc_int(s, NX_SETTING_SCHEDULE_EPOCHS) : 0,
      .n_micro_batches = graph->n_micro_batches,
      .micro_batch = (uint32_t)t->batch.micro,
      .sequence = (uint32_t)t->model.sequence,
      .global_batch = (uint32_t)t->batch.global,
      .vocab = (uint64_t)t->model.vocab,
      .tokens_per_step = (uint64_t)(t->batch.global * t->model.sequence),
      .flops_per_step = nxc_training_flops(t),
      .n_parameters = nxc_training_parameters(t),
      .n_trained = t->lora.rank > 0 ? count_adapters(e) : nxc_training_parameters(t),
      .adapter_config = nxc_emit_string(e, nxc_adapter_config_text(e->arena, s, t)),
      .adapter_from = nxc_emit_string(e, adapter_from(s, t)),
      .save_base = t->lora.rank > 0 && nxc_flag(s, NX_SETTING_LORA_SAVE_BASE),
      .merge_every = (uint32_t)t->lora.merge_every,
      .merge_scale = t->lora.scale,
      .updates = value_of(e, graph->updates),
      .reductions = value_of(e, graph->reductions),
      .plateau = t->plateau,
      .data_rank = axis_rank(graph, NXC_AXIS_DATA),
      .data_size = t->layout.data,
      .pair_atoms = t->sharding.in_pairs ? nxc_axis(&t->mesh, NXC_AXIS_DATA) : 0,
      .tokens = value_of(e, graph->tokens),
      .labels = value_of(e, graph->labels),
      .positions = value_of(e, graph->positions),
      .samples = value_of(e, graph->samples),
      .step = value_of(e, graph->step),
      .objective = t->objective.kind,
      .reference = value_of(e, graph->reference),
      .sequence_sums = sequence_sums(e),
      .metrics = value_of(e, graph->metrics_total),
      .loss = value_of(e, graph->loss),
      .loss_total = value_of(e, graph->loss_total),
      .grad_norm = value_of(e, graph->grad_norm),
      .lr = value_of(e, graph->lr),
      .init_from = nxc_emit_string(e, init_from),
      .tensor_parts = nxc_emit_string(e, *init_from || nxc_has(s, NX_SETTING_CHECKPOINT_LOAD)
                                             ? nxc_tensor_parts_text(e->arena, t)
                                             : ""),
      .model_config = nxc_emit_string(e, nxc_model_config_text(e->arena, s, t->model.family)),
      .n_slots = e->pipeline->n_slots,
      .ring_rank = axis_rank(graph, NXC_AXIS_RING),
      .ring_size = t->layout.context / t->layout.ulysses,
      .ulysses_rank = axis_rank(graph, NXC_AXIS_ULYSSES),
      .ulysses_size = t->layout.ulysses,
      .places = value_of(e, graph->places),
      .starts = value_of(e, graph->starts),
      .weights = value_of(e, graph->weights),
      .documents = (t->data.separate_documents ? NX_DOCUMENTS_ATTENTION : 0) |
                   (t->data.restart_positions ? NX_DOCUMENTS_POSITIONS : 0) |
                   (t->data.mask_document_ends ? NX_DOCUMENTS_LOSS : 0),
      .end_of_document = NX_NONE,
      .stochastic = t->types.stochastic,
      .loss_mean = t->data.loss_mean,
      .seen = value_of(e, graph->seen),
      .gradient_factor =
          graph->gradient_factor == graph->loss_scale ? NX_NONE : value_of(e, graph->gradient_factor),
      .later_labels = value_of(e, graph->later_labels),
      .later_weights = value_of(e, graph->later_weights),
      .later_factor = graph->later_labels ? t->model.predict_factor : 0,
      .loss_scale = value_of(e, graph->loss_scale),
      .loss_scale_initial = scale->initial,
      .loss_scale_least = scale->least,
      .loss_scale_window = scale->window,
      .loss_scale_hysteresis = scale->hysteresis,
      .loss_scale_rules = (scale->dynamic ? NX_LOSS_SCALE_DYNAMIC : 0) |
                          (scale->renews ? NX_LOSS_SCALE_RENEWS : 0) |
                          (scale->ends ? NX_LOSS_SCALE_ENDS : 0)};
  if (run.documents && t->data.end_of_document >= 0) run.end_of_document = (uint32_t)t->data.end_of_document;
  nxc_emit_record(e, NX_SECTION_RUN, &run);
}

const uint8_t *nxc_emit(nxc_pipeline *pipeline, const nxc_training *training, const nxc_settings *settings,
                        uint64_t *n_bytes) {
  nxc_emitter e = {
      .arena = pipeline->arena, .pipeline = pipeline, .training = training, .settings = settings};
  e.graph = pipeline->graphs[0];
  nxc_emit_strings_begin(&e, &e.strings, NX_SECTION_STRINGS);
  nxc_emit_strings_begin(&e, &e.provenance, NX_SECTION_PROVENANCE_TEXT);
  emit_mesh(&e);
  emit_graphs(&e);
  emit_arenas(&e);
  emit_pieces(&e);
  emit_schedule(&e);
  enter_graph(&e, 0);
  emit_fixed_values(&e);
  emit_parameter_groups(&e);
  emit_run(&e);
  nxc_emit_measures(&e);
  nxc_emit_datasets(&e);
  nxc_emit_evaluations(&e);
  emit_groups(&e);
  emit_constants(&e);
  nxc_emit_run_names(&e);
  nxc_emit_settings(&e);
  return nxc_emit_file(&e, n_bytes);
}
