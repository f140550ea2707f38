/* SPDX-License-Identifier: Apache-2.0 */
/* Where each value lies: arenas, values, ranges. */
#include "compiler/program/emit/emit.h"

#include <string.h>

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
void nxc_emit_values(nxc_emitter *e) {
  bool *used = nxc_arena_array(e->arena, e->graph->n_values, sizeof *used);
  mark_values(e, used);
  for (size_t i = 0; i < e->graph->n_values; i++) e->value_index[i] = NX_NONE;
  for (int views = 0; views < 2; views++)
    for (nxc_id i = 1; i < e->graph->n_values; i++)
      if (used[i] && (e->graph->values[i].view_of != 0) == views) emit_value(e, i);
}

void nxc_emit_arenas(nxc_emitter *e) {
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

void nxc_emit_ranges(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->n_ranges; i++) {
    const nxc_range_node *range = &e->graph->ranges[i];
    nx_range record = {
        .name = nxc_emit_string(e, range->name),
        .group = range->group_atoms ? nxc_group(e->graph, range->group_atoms, NULL) : NX_NONE,
        .shard_group = range->shard_atoms ? nxc_group(e->graph, range->shard_atoms, NULL) : NX_NONE,
        .n_elements = range->n_elements,
        .n_shard = range->n_shard,
        .shard_start = nxc_constant(e->graph, &range->shard_start),
        .param = nxc_emit_value_of(e, range->param),
        .master = nxc_emit_value_of(e, range->master),
        .grad = nxc_emit_value_of(e, range->grad),
        .parameter_group = range->parameter_group};
    for (uint32_t state = 0; state < NX_MAX_STATES; state++)
      record.states[state] = nxc_emit_value_of(e, range->states[state]);
    nxc_emit_record(e, NX_SECTION_RANGES, &record);
  }
}
