/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check_record.h"

#include <float.h>

bool nx_check_operator(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_operator *op = &plan->operators[index];
  const nx_op_row *row = nx_op_find(op->op);
  if (row == NULL)
    return nx_flaw(check, op, "operator %u has number %u, which this program does not know", index, op->op);
  uint64_t n_args = (uint64_t)op->n_in + op->n_out;
  if (op->n_attrs != nx_op_n_attrs(row) || op->when == 0 || op->reserved != 0 ||
      op->first_argument + n_args > plan->n[NX_SECTION_ARGUMENTS] ||
      (uint64_t)op->first_attribute + op->n_attrs > plan->n[NX_SECTION_ATTRIBUTES] ||
      !nx_is_string(plan, op->origin))
    return nx_flaw(check, op, "operator %u (%s) is malformed", index, row->name);
  bool grouped = nx_op_is_collective(row) && op->op != NX_OP_wait;
  if (grouped ? !nx_is_index(plan, op->group, NX_SECTION_GROUPS) : op->group != NX_NONE)
    return nx_flaw(check, op, "operator %u (%s) has the wrong group", index, row->name);
  for (uint64_t i = 0; i < n_args; i++)
    if (!nx_is_index(plan, plan->arguments[op->first_argument + i], NX_SECTION_VALUES))
      return nx_flaw(check, op, "operator %u (%s) has no such value", index, row->name);
  char why[NX_OP_WHY];
  if (!nx_op_check(plan, op, why)) return nx_flaw(check, op, "operator %u (%s): %s", index, row->name, why);
  return true;
}

static bool is_span(float seconds) {
  return seconds >= 0 && seconds <= FLT_MAX;
}

bool nx_check_route(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_route *route = &plan->routes[index];
  if (!nx_is_index(plan, route->operator, NX_SECTION_OPERATORS) ||
      (index > 0 && route[-1].operator>= route->operator) || route->reserved != 0 ||
      !is_span(route->seconds) || !is_span(route->next_seconds))
    return nx_flaw(check, route, "route %u is malformed", index);
  const nx_operator *op = &plan->operators[route->operator];
  bool known = route->way < NX_N_WAYS && route->next < NX_N_WAYS;
  if (!known || op->group == NX_NONE || !nx_op_has_way((nx_op)op->op, (nx_way)route->way) ||
      !nx_op_has_way((nx_op)op->op, (nx_way)route->next))
    return nx_flaw(check, route, "route %u is none that operator %u (%s) can take", index, route->operator,
                   nx_op_find(op->op)->name);
  return true;
}

bool nx_check_program(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_program *program = &plan->programs[index];
  if (!nx_is_string(plan, program->name) || program->kind < NX_PROGRAM_FORWARD ||
      program->kind > NX_PROGRAM_STEP ||
      (uint64_t)program->first_operator + program->n_operators > plan->n[NX_SECTION_OPERATORS])
    return nx_flaw(check, program, "program %u is malformed", index);
  return true;
}

static bool is_program(const nx_plan *plan, uint32_t program, nx_program_kind kind) {
  return program == NX_NONE ||
         (nx_is_index(plan, program, NX_SECTION_PROGRAMS) && plan->programs[program].kind == kind);
}

/* Every operand of a program stays within the chunk's part of its arena. */
static bool check_chunk_program(const nx_checker *check, const nx_chunk *chunk, uint32_t index) {
  const nx_plan *plan = check->plan;
  if (index == NX_NONE) return true;
  const nx_operator *op = &plan->operators[plan->programs[index].first_operator];
  for (const nx_operator *end = op + plan->programs[index].n_operators; op < end; op++) {
    for (uint32_t i = 0; i < (uint32_t)op->n_in + op->n_out; i++) {
      bool inside;
      uint32_t value = plan->arguments[op->first_argument + i];
      if (!nx_check_in_chunk(check, chunk, value, &inside)) return false;
      if (!inside)
        return nx_flaw(check, chunk, "a chunk reaches outside its part of arena %s",
                       nx_arena_name(plan->values[value].arena));
    }
  }
  return true;
}

static bool check_chunk_arenas(const nx_checker *check, const nx_chunk *chunk) {
  const nx_plan *plan = check->plan;
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    const nx_arena_record *arena = nx_plan_arena(plan, kind);
    uint64_t room = arena ? arena->bytes : 0, base = chunk->arena_base[kind],
             bytes = chunk->arena_bytes[kind];
    uint64_t n = kind == NX_ARENA_slot ? chunk->n_slots : 1;
    if (base > room || bytes > (room - base) / n || base % NX_VALUE_ALIGNMENT || bytes % NX_VALUE_ALIGNMENT ||
        (kind == NX_ARENA_slot && arena && bytes > arena->slot_bytes))
      return nx_flaw(check, chunk, "a chunk reaches outside arena %s", nx_arena_name(kind));
  }
  return true;
}

/* A port is a value of a slot; what one chunk sends is what its neighbour receives. */
static bool check_chunk_ports(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_chunk *chunk = &plan->chunks[index];
  for (nx_port port = 0; port < NX_N_PORTS; port++) {
    uint32_t peer = nx_port_peer(index, port);
    bool inside;
    if (chunk->ports[port] == NX_NONE) continue;
    if (!nx_is_index(plan, chunk->ports[port], NX_SECTION_VALUES) ||
        !nx_is_index(plan, peer, NX_SECTION_CHUNKS) ||
        plan->values[chunk->ports[port]].arena != NX_ARENA_slot)
      return nx_flaw(check, chunk, "chunk %u has a malformed port", index);
    if (!nx_check_in_chunk(check, chunk, chunk->ports[port], &inside)) return false;
    uint32_t other = plan->chunks[peer].ports[nx_port_opposite(port)];
    if (!inside || !nx_is_index(plan, other, NX_SECTION_VALUES) ||
        plan->values[other].bytes != plan->values[chunk->ports[port]].bytes ||
        plan->values[other].dtype != plan->values[chunk->ports[port]].dtype)
      return nx_flaw(check, chunk, "the %s of chunk %u does not fit its neighbour", nx_port_name(port),
                     index);
  }
  return true;
}

bool nx_check_chunk(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_chunk *chunk = &plan->chunks[index];
  if (!is_program(plan, chunk->forward, NX_PROGRAM_FORWARD) ||
      !is_program(plan, chunk->backward, NX_PROGRAM_BACKWARD) ||
      !is_program(plan, chunk->evaluate, NX_PROGRAM_EVALUATE) ||
      !is_program(plan, chunk->step, NX_PROGRAM_STEP) || chunk->n_slots == 0 ||
      chunk->n_slots > plan->run->n_slots || chunk->stage >= nx_plan_n_stages(plan))
    return nx_flaw(check, chunk, "chunk %u is malformed", index);
  const uint32_t programs[] = {chunk->forward, chunk->backward, chunk->evaluate, chunk->step};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    if (!check_chunk_program(check, chunk, programs[i])) return false;
  return check_chunk_arenas(check, chunk) && check_chunk_ports(check, index);
}

/* Phases of one of both kinds of steps, or what an evaluation runs. */
static bool is_step_when(uint8_t when) {
  uint8_t compressed = when >> NX_WHEN_COMPRESSED;
  return compressed ? when == compressed << NX_WHEN_COMPRESSED : when > 0 && when <= NX_WHEN_EVALUATED;
}

bool nx_check_item(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_item *item = &plan->items[index];
  bool step = item->kind == NX_ITEM_STEP;
  if (item->kind < NX_ITEM_FORWARD || item->kind > NX_ITEM_STEP || item->port >= NX_N_PORTS ||
      item->reserved != 0 || !nx_is_index(plan, item->chunk, NX_SECTION_CHUNKS) ||
      item->slot >= plan->chunks[item->chunk].n_slots ||
      (step && item->micro_batch > 0) || plan->chunks[item->chunk].stage != item->stage)
    return nx_flaw(check, item, "schedule item %u is malformed", index);
  bool runs = item->kind <= NX_ITEM_EVALUATE || item->kind == NX_ITEM_STEP;
  if (runs && nx_item_program(plan, item) == NX_NONE)
    return nx_flaw(check, item, "schedule item %u runs a program that its chunk lacks", index);
  if ((runs && item->port != 0) || (step && !is_step_when(item->when)))
    return nx_flaw(check, item, "schedule item %u is malformed", index);
  if (!runs && plan->chunks[item->chunk].ports[item->port] == NX_NONE)
    return nx_flaw(check, item, "schedule item %u moves data through a port that its chunk lacks", index);
  bool sends = item->port == NX_PORT_OUTPUT || item->port == NX_PORT_INPUT_GRADIENT;
  if ((item->kind == NX_ITEM_SEND && !sends) || (item->kind == NX_ITEM_RECV && sends))
    return nx_flaw(check, item, "schedule item %u moves data the wrong way", index);
  return true;
}

static bool check_scheduled(const nx_checker *check, const nx_schedule *schedule, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_item *item = &plan->items[index];
  uint32_t n = schedule->n_micro_batches;
  bool runs = item->kind <= NX_ITEM_EVALUATE;
  uint8_t when = runs ? nx_pass_when(item->micro_batch, n, plan->run->n_micro_batches) : 0;
  bool compressed = schedule->flags & NX_SCHEDULE_COMPRESSED;
  if (item->kind == NX_ITEM_STEP && (item->when >> NX_WHEN_COMPRESSED != 0) != compressed)
    return nx_flaw(check, item, "schedule item %u is of another kind of step", index);
  bool whole = item->when == when;
  if (item->kind == NX_ITEM_BACKWARD)
    whole = whole || item->when == nx_when_later(when) || item->when == (when | nx_when_later(when));
  if (item->micro_batch >= n || (item->kind != NX_ITEM_STEP && !whole))
    return nx_flaw(check, item, "schedule item %u is malformed", index);
  if (index > schedule->first_item && item[-1].stage > item->stage)
    return nx_flaw(check, item, "schedule item %u is out of order", index);
  return true;
}

/* A full batch, and then fewer micro-batches from schedule to schedule. */
static bool is_good_count(const nx_plan *plan, uint32_t index) {
  const nx_schedule *schedule = &plan->schedules[index];
  bool less = index > 0 && schedule->kind == NX_SCHEDULE_TRAIN;
  bool again = schedule->flags && less && !schedule[-1].flags;
  if (again && schedule->n_micro_batches == schedule[-1].n_micro_batches) return true;
  if (less) return schedule->n_micro_batches > 0 && schedule->n_micro_batches < schedule[-1].n_micro_batches;
  if (schedule->kind == NX_SCHEDULE_EVALUATE)
    return schedule->n_micro_batches > 0 && schedule->n_micro_batches <= plan->run->n_micro_batches;
  return schedule->n_micro_batches == plan->run->n_micro_batches;
}

/* Those of the training come first, and together schedules are all items; a stage's items stand together. */
bool nx_check_schedule(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_schedule *schedule = &plan->schedules[index];
  uint32_t first = index == 0 ? 0 : schedule[-1].first_item + schedule[-1].n_items;
  bool last = index + 1 == plan->n[NX_SECTION_SCHEDULES];
  uint32_t before = index == 0 ? NX_SCHEDULE_TRAIN : schedule[-1].kind;
  bool good_kind = before == NX_SCHEDULE_TRAIN && schedule->kind >= NX_SCHEDULE_TRAIN &&
                   schedule->kind <= (index == 0 ? NX_SCHEDULE_TRAIN : NX_SCHEDULE_EVALUATE);
  if (!nx_is_string(plan, schedule->name) || !good_kind || !is_good_count(plan, index) ||
      schedule->first_item != first || schedule->n_items == 0 ||
      schedule->flags > (schedule->kind == NX_SCHEDULE_TRAIN ? NX_SCHEDULE_COMPRESSED : 0) ||
      schedule->n_items > plan->n[NX_SECTION_ITEMS] - first ||
      (last && first + schedule->n_items != plan->n[NX_SECTION_ITEMS]))
    return nx_flaw(check, schedule, "schedule %u is malformed", index);
  for (uint32_t i = first; i < first + schedule->n_items; i++)
    if (!check_scheduled(check, schedule, i)) return false;
  return true;
}

/* Each phase begins after whole steps of the one before it. */
bool nx_check_phase(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_phase *phase = &plan->phases[index];
  uint64_t steps = index == 0 ? 0 : phase->first_step - phase[-1].first_step;
  uint64_t samples = index == 0 ? 0 : phase[-1].first_sample + steps * phase[-1].global_batch;
  bool in_order = index == 0 ? phase->first_step == 0 : phase->first_step > phase[-1].first_step;
  if (!in_order || phase->first_step >= plan->run->n_steps || phase->first_sample != samples ||
      !nx_is_index(plan, phase->schedule, NX_SECTION_SCHEDULES))
    return nx_flaw(check, phase, "phase %u is malformed", index);
  const nx_schedule *schedule = &plan->schedules[phase->schedule];
  uint64_t batch = (uint64_t)plan->run->micro_batch * schedule->n_micro_batches * plan->run->data_size;
  if (schedule->kind != NX_SCHEDULE_TRAIN || phase->global_batch != batch)
    return nx_flaw(check, phase, "phase %u has another batch than its schedule", index);
  return true;
}
