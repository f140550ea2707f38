/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check.h"

#include <stdlib.h>
#include <string.h>

/* The proof has two parts, for each schedule. plan_schedule.c walks the items of all stages together.
 * Here the programs that they run are replayed, operator by operator, as often as they differ (first,
 * middle and last micro-batch), in the order that the walk demands of every schedule, and two things are
 * tracked per value: whether it was written before it is read, and which collective still owns it.
 *
 * * All ranks of a stage run the same operators in the same order, so a collective within a stage is met
 * by its whole group at the same operator by construction; what is left to prove is that each is waited
 * for exactly once, before its result is read or what it reads is overwritten. Collectives that cross
 * stages stand in the step alone, where the walk lets all stages meet, and must be the same, in the same
 * order, on all. */

enum { WRITTEN = 1, RESULT_PENDING = 2, SOURCE_PENDING = 4 };

typedef struct walk {
  const nx_plan *plan;
  const nx_schedule *schedule;
  nx_fault *fault;
  uint8_t *state;   /* per chunk and value; scalars are the stage's */
  uint32_t *source; /* of a pending result: the value that its collective reads */
  uint32_t n_values;
  uint32_t chunk;
} walk;

static uint8_t *state_of(const walk *at, uint32_t value) {
  uint32_t chunk = at->chunk;
  if (at->plan->values[value].arena == NX_ARENA_scalar) chunk = at->plan->n[NX_SECTION_CHUNKS];
  return &at->state[(size_t)chunk * at->n_values + value];
}

static uint32_t base_of(const nx_plan *plan, uint32_t value) {
  return plan->values[value].view_of == NX_NONE ? value : plan->values[value].view_of;
}

/* Parameters, optimizer state and inputs hold something when a step begins. */
static bool is_standing(const nx_plan *plan, uint32_t value) {
  uint8_t arena = plan->values[value].arena;
  return arena == NX_ARENA_param || arena == NX_ARENA_master || arena == NX_ARENA_state ||
         arena == NX_ARENA_input;
}

static bool fail(const walk *at, const nx_operator *op, const char *what, uint32_t value) {
  const nx_plan *plan = at->plan;
  return nx_fault_set(at->fault, (uint64_t)((const uint8_t *)op - plan->bytes), "%s (%s) %s %s",
                      nx_op_find(op->op)->name, nx_plan_string(plan, op->origin), what,
                      nx_plan_string(plan, plan->values[value].name));
}

static bool overlap(const nx_plan *plan, uint32_t a, uint32_t b) {
  if (base_of(plan, a) != base_of(plan, b)) return false;
  const nx_value *x = &plan->values[a], *y = &plan->values[b];
  if (x->offset_shift != NX_NONE || y->offset_shift != NX_NONE) return true;
  return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static bool read_value(const walk *at, const nx_operator *op, uint32_t value) {
  const nx_plan *plan = at->plan;
  uint8_t state = *state_of(at, value) | *state_of(at, base_of(plan, value));
  if (state & RESULT_PENDING) return fail(at, op, "reads, before its wait,", value);
  if (is_standing(plan, value) || state & WRITTEN) return true;
  for (uint32_t other = 0; other < at->n_values; other++)
    if (base_of(plan, other) == base_of(plan, value) && *state_of(at, other) & WRITTEN &&
        overlap(plan, value, other))
      return true;
  return fail(at, op, "reads what was never written,", value);
}

/* An evaluation leaves the training as it is: of what outlives it, parameters may be brought together. */
static bool may_write(const walk *at, const nx_operator *op, uint32_t value) {
  uint8_t arena = at->plan->values[value].arena;
  if (at->schedule->kind == NX_SCHEDULE_TRAIN) return true;
  if (arena == NX_ARENA_param) return op->op == NX_OP_all_gather;
  return arena != NX_ARENA_master && arena != NX_ARENA_state && arena != NX_ARENA_grad;
}

static bool write_value(const walk *at, const nx_operator *op, uint32_t value) {
  if (!may_write(at, op, value)) return fail(at, op, "is of an evaluation and changes", value);
  uint8_t *state = state_of(at, value);
  uint8_t base = *state_of(at, base_of(at->plan, value));
  if ((*state | base) & RESULT_PENDING) return fail(at, op, "writes, before its wait,", value);
  if ((*state | base) & SOURCE_PENDING)
    return fail(at, op, "overwrites what a collective still reads,", value);
  *state |= WRITTEN;
  return true;
}

static bool start_collective(walk *at, const nx_operator *op, uint32_t source, uint32_t result) {
  if (!read_value(at, op, source)) return false;
  if (!may_write(at, op, result)) return fail(at, op, "is of an evaluation and changes", result);
  if (*state_of(at, result) & (RESULT_PENDING | SOURCE_PENDING))
    return fail(at, op, "starts while another uses", result);
  *state_of(at, result) |= RESULT_PENDING;
  *state_of(at, source) |= SOURCE_PENDING;
  at->source[result] = source;
  return true;
}

static bool wait_collective(const walk *at, const nx_operator *op, uint32_t result) {
  uint8_t *state = state_of(at, result);
  if (!(*state & RESULT_PENDING)) return fail(at, op, "waits for what no collective writes,", result);
  *state = WRITTEN;
  *state_of(at, at->source[result]) &= (uint8_t)~SOURCE_PENDING;
  return true;
}

/* Whether an output is added to, so that it must have been written before. */
static bool is_added_to(const nx_plan *plan, const nx_operator *op, const nx_operand_row *output) {
  if (output->added != NX_ADDED_ON_REQUEST) return output->added == NX_ADDED_ALWAYS;
  uint32_t accumulate = nx_op_accumulate(nx_op_find(op->op));
  return plan->attributes[op->first_attribute + accumulate].integer != 0;
}

static bool run_operator(walk *at, const nx_operator *op) {
  const uint32_t *arguments = at->plan->arguments + op->first_argument;
  if (op->op == NX_OP_wait) return wait_collective(at, op, arguments[0]);
  const nx_op_row *row = nx_op_find(op->op);
  if (nx_op_is_collective(row)) return start_collective(at, op, arguments[0], arguments[1]);
  for (uint32_t i = 0; i < op->n_in; i++)
    if (!read_value(at, op, arguments[i])) return false;
  nx_signature signature = nx_op_signature(row);
  for (uint32_t i = 0; i < op->n_out; i++) {
    uint32_t value = arguments[op->n_in + i];
    bool adds = is_added_to(at->plan, op, nx_signature_output(&signature, i));
    if (adds && !read_value(at, op, value)) return false;
    if (!write_value(at, op, value)) return false;
  }
  return true;
}

/* What lives within one program is gone when the next begins, unless a collective still owns it. */
static void forget_scratch(const walk *at) {
  for (uint32_t value = 0; value < at->n_values; value++) {
    uint8_t arena = at->plan->values[value].arena;
    if (arena == NX_ARENA_scratch || arena == NX_ARENA_comm) *state_of(at, value) &= (uint8_t)~WRITTEN;
  }
}

/* What a program leaves under way is of values that outlive it; when the step is over (`all`), nothing is. */
static bool nothing_pending(const walk *at, const char *after, bool all) {
  for (uint32_t value = 0; value < at->n_values; value++)
    if (*state_of(at, value) & (RESULT_PENDING | SOURCE_PENDING) &&
        (all || at->plan->values[value].arena != NX_ARENA_grad))
      return nx_fault_set(at->fault, 0, "no operator of %s waits for the collective on %s", after,
                          nx_plan_string(at->plan, at->plan->values[value].name));
  return true;
}

static bool run_program(walk *at, uint32_t chunk, uint32_t index, uint8_t when) {
  const nx_program *program = &at->plan->programs[index];
  at->chunk = chunk;
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &at->plan->operators[program->first_operator + i];
    if (op->when & when && !run_operator(at, op)) return false;
  }
  forget_scratch(at);
  return nothing_pending(at, nx_plan_string(at->plan, program->name), false);
}

/* What was received is there when the program begins. */
static void receive(const walk *at, uint32_t chunk, nx_port port) {
  uint32_t value = at->plan->chunks[chunk].ports[port];
  if (value != NX_NONE) at->state[(size_t)chunk * at->n_values + value] |= WRITTEN;
}

/* One micro-batch of a kind, forward through the stage's chunks and back. */
static void forget_slot(const walk *at, uint32_t chunk) {
  for (uint32_t value = 0; value < at->n_values; value++)
    if (at->plan->values[value].arena == NX_ARENA_slot) at->state[(size_t)chunk * at->n_values + value] = 0;
}

static bool run_passes(walk *at, uint32_t stage, uint8_t when) {
  const nx_chunk *chunks = at->plan->chunks;
  uint32_t n = at->plan->n[NX_SECTION_CHUNKS];
  bool trains = at->schedule->kind == NX_SCHEDULE_TRAIN;
  for (uint32_t chunk = 0; chunk < n; chunk++) {
    if (chunks[chunk].stage != stage) continue;
    forget_slot(at, chunk);
    receive(at, chunk, NX_PORT_INPUT);
    uint32_t program = trains ? chunks[chunk].forward : chunks[chunk].evaluate;
    if (program != NX_NONE && !run_program(at, chunk, program, when)) return false;
  }
  if (!trains) return true;
  for (uint32_t chunk = n; chunk-- > 0;) {
    if (chunks[chunk].stage != stage) continue;
    receive(at, chunk, NX_PORT_OUTPUT_GRADIENT);
    uint32_t back = chunks[chunk].backward;
    if (back == NX_NONE) continue;
    if (!run_program(at, chunk, back, when) || !run_program(at, chunk, back, nx_when_later(when)))
      return false;
  }
  return true;
}

static bool run_stage(walk *at, uint32_t stage) {
  const nx_plan *plan = at->plan;
  uint32_t n = at->schedule->n_micro_batches;
  memset(at->state, 0, (size_t)at->n_values * (plan->n[NX_SECTION_CHUNKS] + 1));
  if (!run_passes(at, stage, nx_pass_when(0, n, plan->run->n_micro_batches))) return false;
  if (n > 2 && !run_passes(at, stage, NX_WHEN_MIDDLE)) return false;
  if (n > 1 && !run_passes(at, stage, NX_WHEN_LAST)) return false;
  for (uint32_t i = 0; i < at->schedule->n_items; i++) {
    const nx_item *item = &plan->items[at->schedule->first_item + i];
    if (item->stage != stage || item->kind != NX_ITEM_STEP) continue;
    if (!run_program(at, item->chunk, nx_item_program(plan, item), item->when)) return false;
  }
  for (at->chunk = 0; at->chunk < plan->n[NX_SECTION_CHUNKS]; at->chunk++)
    if (plan->chunks[at->chunk].stage == stage && !nothing_pending(at, "the step", true)) return false;
  return true;
}

/* ---- collectives that cross stages ---- */

/* The next collective of a program that crosses stages, from operator `at` on; the program's end where there
 * is none. */
static uint32_t next_crossing(const nx_plan *plan, const nx_program *program, uint32_t at) {
  while (at < program->n_operators &&
         !nx_group_crosses_stages(plan, plan->operators[program->first_operator + at].group))
    at++;
  return at;
}

static bool is_same_collective(const nx_plan *plan, const nx_operator *a, const nx_operator *b) {
  if (a->op != b->op || a->group != b->group || a->when != b->when) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const nx_value *x = &plan->values[plan->arguments[a->first_argument + i]];
    const nx_value *y = &plan->values[plan->arguments[b->first_argument + i]];
    if (x->dtype != y->dtype || x->name != y->name || memcmp(x->dims, y->dims, sizeof x->dims) != 0)
      return false;
  }
  return true;
}

static bool fail_crossing(const nx_plan *plan, nx_fault *fault, const nx_operator *op, const char *what) {
  return nx_fault_set(fault, (uint64_t)((const uint8_t *)op - plan->bytes),
                      "%s (%s) sums over pipeline stages, %s", nx_op_find(op->op)->name,
                      nx_plan_string(plan, op->origin), what);
}

/* The collectives of a group that a stage comes to, in order, over the items of its step. */
typedef struct comer {
  const nx_plan *plan;
  const nx_schedule *schedule;
  uint32_t stage, group;
  uint32_t item, op; /* where to look next; the item counted in the schedule */
} comer;

static comer come(const nx_plan *plan, const nx_schedule *schedule, uint32_t stage, uint32_t group) {
  return (comer){.plan = plan, .schedule = schedule, .stage = stage, .group = group};
}

static const nx_operator *next_of_group(comer *at) {
  const nx_plan *plan = at->plan;
  for (; at->item < at->schedule->n_items; at->item++, at->op = 0) {
    const nx_item *item = &plan->items[at->schedule->first_item + at->item];
    if (item->stage != at->stage || item->kind != NX_ITEM_STEP) continue;
    const nx_program *program = &plan->programs[nx_item_program(plan, item)];
    while (at->op < program->n_operators) {
      const nx_operator *op = &plan->operators[program->first_operator + at->op++];
      if (op->group == at->group && op->when & item->when) return op;
    }
  }
  return NULL;
}

static bool compare_stages(const nx_plan *plan, const nx_schedule *schedule, nx_fault *fault, uint32_t group,
                           uint32_t one, uint32_t other) {
  comer a = come(plan, schedule, one, group), b = come(plan, schedule, other, group);
  for (;;) {
    const nx_operator *op = next_of_group(&a), *of_other = next_of_group(&b);
    if (op == NULL && of_other == NULL) return true;
    if (op == NULL || of_other == NULL)
      return fail_crossing(plan, fault, op ? op : of_other, "and another stage does not come to it");
    if (!is_same_collective(plan, op, of_other))
      return fail_crossing(plan, fault, op, "and another stage comes to another collective");
  }
}

/* All stages of a group come to the same collectives; a stage that is not in it to none. */
static bool check_meetings(const nx_plan *plan, const nx_schedule *schedule, nx_fault *fault,
                           uint32_t group) {
  uint32_t first = NX_NONE;
  for (uint32_t stage = 0; stage < nx_plan_n_stages(plan); stage++) {
    if (!nx_group_has_stage(plan, group, stage)) {
      comer at = come(plan, schedule, stage, group);
      const nx_operator *op = next_of_group(&at);
      if (op) return fail_crossing(plan, fault, op, "of which this is none");
      continue;
    }
    if (first == NX_NONE) first = stage;
    if (!compare_stages(plan, schedule, fault, group, first, stage)) return false;
  }
  return true;
}

static bool check_crossings(const nx_plan *plan, nx_fault *fault) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_CHUNKS]; i++) {
    const uint32_t passes[] = {plan->chunks[i].forward, plan->chunks[i].backward, plan->chunks[i].evaluate};
    for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
      if (passes[p] == NX_NONE) continue;
      const nx_program *program = &plan->programs[passes[p]];
      uint32_t at = next_crossing(plan, program, 0);
      if (at < program->n_operators)
        return fail_crossing(plan, fault, &plan->operators[program->first_operator + at], "outside the step");
    }
  }
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SCHEDULES]; i++)
    for (uint32_t group = 0; group < plan->n[NX_SECTION_GROUPS]; group++)
      if (nx_group_crosses_stages(plan, group) && !check_meetings(plan, &plan->schedules[i], fault, group))
        return false;
  return true;
}

/* Stages whose chunks run the same programs need no second replay. */
static bool is_like_earlier(const nx_plan *plan, uint32_t stage) {
  const nx_chunk *chunks = plan->chunks;
  uint32_t n = plan->n[NX_SECTION_CHUNKS], n_stages = nx_plan_n_stages(plan);
  if (stage == 0 || n != n_stages) return false;
  const nx_chunk *own = &chunks[stage], *before = &chunks[stage - 1];
  return own->stage == stage && before->stage == stage - 1 && own->forward == before->forward &&
         own->backward == before->backward && own->step == before->step && own->evaluate == before->evaluate;
}

static bool run_stages(walk *at) {
  for (uint32_t stage = 0; stage < nx_plan_n_stages(at->plan); stage++)
    if (!is_like_earlier(at->plan, stage) && !run_stage(at, stage)) return false;
  return true;
}

static bool walk_schedules(const nx_plan *plan, nx_fault *fault) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SCHEDULES]; i++)
    if (!nx_schedule_walk(plan, &plan->schedules[i], NULL, NULL, NULL, fault)) return false;
  return true;
}

static bool run_schedules(walk *at) {
  for (uint32_t i = 0; i < at->plan->n[NX_SECTION_SCHEDULES]; i++) {
    at->schedule = &at->plan->schedules[i];
    if (!run_stages(at)) return false;
  }
  return true;
}

bool nx_plan_prove(const nx_plan *plan, nx_fault *fault) {
  if (!walk_schedules(plan, fault) || !check_crossings(plan, fault)) return false;
  walk at = {.plan = plan, .fault = fault, .n_values = plan->n[NX_SECTION_VALUES]};
  at.state = calloc(at.n_values, (size_t)plan->n[NX_SECTION_CHUNKS] + 1);
  at.source = calloc(at.n_values, sizeof *at.source);
  bool proved = at.state && at.source ? run_schedules(&at) : nx_fault_set(fault, 0, "out of memory");
  free(at.source);
  free(at.state);
  return proved;
}
