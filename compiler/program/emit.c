/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit.h"

#include "compiler/program/rules.h"

#include <assert.h>
#include <string.h>

/* ---- mesh and constants ---- */

static void emit_mesh(nxc_emitter *e) {
  const nxc_mesh *mesh = &e->graph->mesh;
  for (nxc_atom atom = 0; atom < NXC_N_ATOMS; atom++) {
    uint32_t name = nxc_emit_string(e, nxc_atom_name(atom));
    nxc_emit_record(e, NX_SECTION_ATOMS, &(nx_atom){name, mesh->size[atom], mesh->stride[atom], 0});
  }
}

static void emit_groups(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->n_groups; i++) {
    const nxc_group_node *group = &e->graph->groups[i];
    uint32_t name = nxc_emit_string(e, group->name);
    nxc_emit_record(e, NX_SECTION_GROUPS,
                    &(nx_group){name, group->atoms, nxc_mesh_size(&e->graph->mesh, group->atoms), 0});
  }
}

static uint32_t emit_table(nxc_emitter *e, const nxc_term *term) {
  if (term->first) return NX_TERM_FIRST;
  if (term->table == NULL) return NX_NONE;
  uint32_t first = e->sections[NX_SECTION_TABLE].n_records;
  for (uint32_t i = 0; i < e->graph->mesh.size[term->atom]; i++)
    nxc_emit_record(e, NX_SECTION_TABLE, &term->table[i]);
  return first;
}

static void emit_constants(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->n_constants; i++) {
    const nxc_rank_number *number = &e->graph->constants[i];
    uint32_t first = e->sections[NX_SECTION_TERMS].n_records;
    for (uint32_t t = 0; t < number->n_terms; t++) {
      const nxc_term *term = &number->terms[t];
      bool listed = term->first || term->table != NULL;
      nx_term record = {term->atom, emit_table(e, term), listed ? term->multiply : term->stride};
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
  const nxc_id inputs[] = {graph->tokens, graph->labels, graph->positions, graph->samples, graph->step};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) used[inputs[i]] = true;
  for (size_t i = 0; i < graph->n_ranges; i++)
    used[graph->ranges[i].param] = used[graph->ranges[i].grad] = true;
  for (size_t i = 1; i < graph->n_values; i++)
    if (used[i]) used[nxc_value_root(graph, (nxc_id)i)] = true;
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
  e->value_index[id] = nxc_emit_record(e, NX_SECTION_VALUES, &record);
}

/* A view stands after the value that it is a view of. */
static void emit_values(nxc_emitter *e) {
  bool *used = nxc_arena_array(e->arena, e->graph->n_values, sizeof *used);
  mark_values(e, used);
  e->value_index = nxc_arena_array(e->arena, e->graph->n_values, sizeof *e->value_index);
  for (size_t i = 0; i < e->graph->n_values; i++) e->value_index[i] = NX_NONE;
  for (int views = 0; views < 2; views++)
    for (nxc_id i = 1; i < e->graph->n_values; i++)
      if (used[i] && (e->graph->values[i].view_of != 0) == views) emit_value(e, i);
}

static void emit_arenas(nxc_emitter *e) {
  for (nx_arena_kind kind = 0; kind < NX_N_ARENAS; kind++) {
    uint64_t bytes = e->graph->arena_bytes[kind];
    if (bytes == 0) continue;
    nx_arena_record record = {.kind = kind,
                              .flags = e->graph->arena_shared[kind] ? NX_ARENA_SHARED : 0,
                              .bytes = kind == NX_ARENA_slot ? bytes * e->graph->n_slots : bytes,
                              .slot_bytes = kind == NX_ARENA_slot ? bytes : 0};
    nxc_emit_record(e, NX_SECTION_ARENAS, &record);
  }
}

static uint32_t value_of(const nxc_emitter *e, nxc_id id) {
  return id ? e->value_index[id] : NX_NONE;
}

static void emit_ranges(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->n_ranges; i++) {
    const nxc_range_node *range = &e->graph->ranges[i];
    nx_range record = {.name = nxc_emit_string(e, range->name),
                       .group = range->group_atoms ? nxc_group(e->graph, range->group_atoms) : NX_NONE,
                       .n_elements = range->n_elements,
                       .n_shard = range->n_shard,
                       .shard_start = nxc_constant(e->graph, &range->shard_start),
                       .param = value_of(e, range->param),
                       .master = value_of(e, range->master),
                       .grad = value_of(e, range->grad),
                       .moment1 = value_of(e, range->moment1),
                       .moment2 = value_of(e, range->moment2),
                       .weight_decay = range->weight_decay};
    nxc_emit_record(e, NX_SECTION_RANGES, &record);
  }
}

static uint32_t range_of(const nxc_graph *graph, nxc_id parameter) {
  for (size_t i = 0; i < graph->n_ranges; i++)
    if (graph->ranges[i].param == graph->values[parameter].view_of) return (uint32_t)i;
  assert(!"a parameter is in no range");
  return NX_NONE;
}

static void emit_pieces(nxc_emitter *e) {
  nxc_graph *graph = e->graph;
  for (size_t i = 0; i < graph->n_pieces; i++) {
    const nxc_piece_node *piece = &graph->pieces[i];
    const nxc_value_node *value = &graph->values[piece->value];
    const nxc_rank_number tensor_id = nxc_rank_number_of(piece->tensor_id);
    uint64_t start = value->view_offset / (nx_dtype_bits(value->shape.dtype) / 8);
    uint64_t row_elements = value->shape.n_dims == 1 ? 1 : (uint64_t)piece->columns;
    nx_piece record = {.name = nxc_emit_string(e, piece->name),
                       .value = value_of(e, piece->value),
                       .range = range_of(graph, piece->value),
                       .flags = piece->transposed ? NX_PIECE_TRANSPOSED : 0,
                       .logical_rows = piece->logical_rows,
                       .logical_columns = piece->logical_columns,
                       .rows = piece->rows,
                       .columns = piece->columns,
                       .row_start = nxc_constant(graph, &piece->row_start),
                       .column_start = nxc_constant(graph, &piece->column_start),
                       .row = piece->row,
                       .range_offset = start + (uint64_t)piece->row * row_elements,
                       .owner = nxc_constant(graph, &piece->owner),
                       .init = piece->init,
                       .init_std = piece->init_std,
                       .tensor_id = nxc_constant(graph, &tensor_id),
                       .n_dims = piece->n_dims};
    nxc_emit_record(e, NX_SECTION_PIECES, &record);
  }
}

/* ---- programs ---- */

static void emit_operator(nxc_emitter *e, const nxc_operator_node *op) {
  nx_operator record = {.op = (uint16_t)op->op,
                        .when = op->when,
                        .n_in = (uint8_t)op->n_in,
                        .n_out = (uint8_t)op->n_out,
                        .n_attrs = (uint8_t)op->n_attrs,
                        .first_argument = e->sections[NX_SECTION_ARGUMENTS].n_records,
                        .first_attribute = e->sections[NX_SECTION_ATTRIBUTES].n_records,
                        .group = op->group_atoms ? nxc_group(e->graph, op->group_atoms) : NX_NONE,
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
};

static void emit_programs(nxc_emitter *e) {
  for (nxc_program_index program = 0; program < NXC_N_PROGRAMS; program++) {
    const nxc_program_list *list = &e->graph->programs[program];
    nx_program record = {nxc_emit_string(e, program_rows[program].name), program_rows[program].kind,
                         e->sections[NX_SECTION_OPERATORS].n_records, (uint32_t)list->n};
    for (size_t i = 0; i < list->n; i++) emit_operator(e, &e->graph->operators[list->operators[i]]);
    nxc_emit_record(e, NX_SECTION_PROGRAMS, &record);
  }
}

/* One stage holds the whole model, as one chunk. */
static void emit_schedule(nxc_emitter *e) {
  const nx_chunk chunk = {.n_layers = (uint32_t)e->training->layers,
                          .forward = NXC_FORWARD,
                          .backward = NXC_BACKWARD,
                          .evaluate = NX_NONE,
                          .step = NXC_STEP};
  nxc_emit_record(e, NX_SECTION_CHUNKS, &chunk);
  for (size_t i = 0; i < e->graph->n_items; i++) nxc_emit_record(e, NX_SECTION_ITEMS, &e->graph->items[i]);
}

/* ---- the run ---- */

static void emit_run(nxc_emitter *e) {
  const nxc_training *t = e->training;
  const nxc_settings *s = e->settings;
  nxc_graph *graph = e->graph;
  nxc_rank_number data_rank = nxc_rank_number_of(0);
  nxc_rank_number_stride(graph, &data_rank, NXC_ATOM_SHARD, 1);
  const char *init_from = nxc_has(s, NX_SETTING_RUN_INIT_FROM) ? nxc_text(s, NX_SETTING_RUN_INIT_FROM) : "";
  nx_run run = {.n_ranks = t->world,
                .n_hosts = t->nodes,
                .n_threads = (uint32_t)nxc_int(s, NX_SETTING_RUN_THREADS),
                .target = t->target,
                .workspace_bytes = (uint64_t)nxc_int(s, NX_SETTING_RUN_WORKSPACE_BYTES),
                .seed = (uint64_t)nxc_int(s, NX_SETTING_RUN_SEED),
                .n_steps = (uint64_t)t->max_steps,
                .n_micro_batches = graph->n_micro_batches,
                .micro_batch = (uint32_t)t->micro_batch,
                .sequence = (uint32_t)t->sequence,
                .global_batch = (uint32_t)t->global_batch,
                .vocab = (uint64_t)t->vocab,
                .tokens_per_step = (uint64_t)(t->global_batch * t->sequence),
                .flops_per_step = nxc_training_flops(t),
                .n_parameters = nxc_training_parameters(t),
                .data_kind = NX_DATA_INDEXED,
                .shuffle = nxc_flag(s, NX_SETTING_DATA_SHUFFLE),
                .data_rank = nxc_constant(graph, &data_rank),
                .data_size = t->data,
                .tokens = value_of(e, graph->tokens),
                .labels = value_of(e, graph->labels),
                .positions = value_of(e, graph->positions),
                .samples = value_of(e, graph->samples),
                .step = value_of(e, graph->step),
                .loss = value_of(e, graph->loss),
                .loss_total = value_of(e, graph->loss_total),
                .grad_norm = value_of(e, graph->grad_norm),
                .lr = value_of(e, graph->lr),
                .names = t->names,
                .init_from = nxc_emit_string(e, init_from),
                .n_slots = graph->n_slots};
  nxc_emit_record(e, NX_SECTION_RUN, &run);
}

const uint8_t *nxc_emit(nxc_graph *graph, const nxc_training *training, const nxc_settings *settings,
                        uint64_t *n_bytes) {
  nxc_emitter e = {.arena = graph->arena, .graph = graph, .training = training, .settings = settings};
  nxc_emit_strings_begin(&e, &e.strings, NX_SECTION_STRINGS);
  nxc_emit_strings_begin(&e, &e.places, NX_SECTION_PLACES_TEXT);
  emit_mesh(&e);
  emit_values(&e);
  emit_arenas(&e);
  emit_ranges(&e);
  emit_pieces(&e);
  emit_programs(&e);
  emit_schedule(&e);
  emit_run(&e);
  nxc_emit_data_paths(&e);
  emit_groups(&e);
  emit_constants(&e);
  nxc_emit_run_names(&e);
  nxc_emit_settings(&e);
  return nxc_emit_file(&e, n_bytes);
}
