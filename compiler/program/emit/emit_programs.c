/* SPDX-License-Identifier: Apache-2.0 */
/* What is done, and when: operators in programs, chunks, schedules and their phases. */
#include "compiler/program/emit/emit.h"

#include "compiler/program/graph/rules.h"

#include <string.h>

/* What runs in the first micro-batch or in the last, and not only behind the first or before the last, runs
 * in one that is both. */
static uint8_t when_of(const nxc_emitter *e, nxc_program_index program, uint8_t when) {
  const nxc_batch *batch = &e->training->batch;
  bool passes = program <= NXC_WEIGHTS && batch->n_phases > 0;
  bool evaluates = program == NXC_EVALUATE && batch->n_evaluated == 1 && batch->n_micro > 1;
  bool partly = when & NX_WHEN_MIDDLE && (when & NX_WHEN_ALWAYS) != NX_WHEN_ALWAYS;
  if ((passes || evaluates) && !partly) when |= NX_WHEN_ONLY;
  return program == NXC_WEIGHTS ? nx_when_later(when) : when;
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

/* In the plan what is cut off stands in the backward program. */
static uint32_t number_of(nxc_program_index program) {
  return program > NXC_WEIGHTS ? program - 1 : program;
}

static uint32_t n_programs(const nxc_emitter *e) {
  return number_of(e->training->evaluates ? NXC_N_PROGRAMS : NXC_EVALUATE);
}

static void emit_operators(nxc_emitter *e, nxc_program_index program) {
  const nxc_program_list *list = &e->graph->programs[program];
  for (size_t i = 0; i < list->n; i++) emit_operator(e, program, &e->graph->operators[list->operators[i]]);
}

static void emit_program(nxc_emitter *e, nxc_program_index program) {
  const char *name = program_rows[program].name;
  bool cut = program == NXC_BACKWARD;
  size_t n = e->graph->programs[program].n + (cut ? e->graph->programs[NXC_WEIGHTS].n : 0);
  if (e->pipeline->n_graphs > 1) name = nxc_arena_printf(e->arena, "%s of chunk %u", name, e->graph->chunk);
  nx_program record = {nxc_emit_string(e, name), program_rows[program].kind,
                       e->sections[NX_SECTION_OPERATORS].n_records, (uint32_t)n};
  emit_operators(e, program);
  if (cut) emit_operators(e, NXC_WEIGHTS);
  nxc_emit_record(e, NX_SECTION_PROGRAMS, &record);
}

void nxc_emit_programs(nxc_emitter *e) {
  for (nxc_program_index program = 0; program < NXC_N_PROGRAMS; program++)
    if (program != NXC_WEIGHTS && number_of(program) < n_programs(e)) emit_program(e, program);
}

static void emit_chunk(nxc_emitter *e, const nxc_chunk_node *chunk) {
  nxc_emit_enter(e, chunk->graph);
  uint32_t first_program = chunk->graph * n_programs(e);
  nx_chunk record = {.stage = chunk->stage,
                     .first_layer = (uint32_t)chunk->first_layer,
                     .n_layers = (uint32_t)chunk->n_layers,
                     .forward = first_program + NXC_FORWARD,
                     .backward = first_program + NXC_BACKWARD,
                     .evaluate = e->training->evaluates ? first_program + number_of(NXC_EVALUATE) : NX_NONE,
                     .step = first_program + number_of(NXC_STEP),
                     .n_slots = chunk->n_slots};
  for (nx_port port = 0; port < NX_N_PORTS; port++)
    record.ports[port] = nxc_emit_value_of(e, e->graph->ports[port]);
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

void nxc_emit_schedule(nxc_emitter *e) {
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
