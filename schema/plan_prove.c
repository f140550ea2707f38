/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check.h"

#include <stdlib.h>
#include <string.h>

/* The proof replays one step of the schedule, stage by stage, operator by operator, and tracks two things per value:
 * whether it was written before it is read, and which collective still owns it.
 *
 * All ranks of a stage run the same operators in the same order, and a group never crosses stages here, so a
 * collective is met by its whole group at the same operator by construction; what is left to prove is that each is
 * waited for exactly once, before its result is read or what it reads is overwritten. */

enum { WRITTEN = 1, RESULT_PENDING = 2, SOURCE_PENDING = 4 };

typedef struct walk {
  const nx_plan *plan;
  nx_fault *fault;
  uint8_t *state;   /* per value, for slot values per slot */
  uint32_t *source; /* of a pending result: the value that its collective reads */
  uint32_t n_values;
  uint32_t slot;
} walk;

static uint8_t *state_of(const walk *at, uint32_t value) {
  uint32_t slot = at->plan->values[value].arena == NX_ARENA_slot ? at->slot : 0;
  return &at->state[(size_t)slot * at->n_values + value];
}

static uint32_t base_of(const nx_plan *plan, uint32_t value) {
  return plan->values[value].view_of == NX_NONE ? value : plan->values[value].view_of;
}

/* Parameters, optimizer state and inputs hold something when a step begins. */
static bool is_standing(const nx_plan *plan, uint32_t value) {
  uint8_t arena = plan->values[value].arena;
  return arena == NX_ARENA_param || arena == NX_ARENA_master || arena == NX_ARENA_state || arena == NX_ARENA_input;
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
    if (base_of(plan, other) == base_of(plan, value) && *state_of(at, other) & WRITTEN && overlap(plan, value, other))
      return true;
  return fail(at, op, "reads what was never written,", value);
}

static bool write_value(const walk *at, const nx_operator *op, uint32_t value) {
  uint8_t *state = state_of(at, value);
  uint8_t base = *state_of(at, base_of(at->plan, value));
  if ((*state | base) & RESULT_PENDING) return fail(at, op, "writes, before its wait,", value);
  if ((*state | base) & SOURCE_PENDING) return fail(at, op, "overwrites what a collective still reads,", value);
  *state |= WRITTEN;
  return true;
}

static bool start_collective(walk *at, const nx_operator *op, uint32_t source, uint32_t result) {
  if (!read_value(at, op, source)) return false;
  if (*state_of(at, result) & (RESULT_PENDING | SOURCE_PENDING)) return fail(at, op, "starts while another uses", result);
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
static bool accumulates(const nx_plan *plan, const nx_operator *op) {
  const nx_op_row *row = nx_op_find(op->op);
  if (op->op == NX_OP_embedding_grad || op->op == NX_OP_position_grad) return true;
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (strcmp(row->attrs[i].name, "accumulate") == 0) return plan->attributes[op->first_attribute + i].integer != 0;
  return false;
}

/* The first output that an accumulating operator adds to: a norm's gradient adds to all but its first output. */
static uint32_t first_accumulated(const nx_operator *op) {
  return op->op == NX_OP_rms_norm_grad || op->op == NX_OP_layer_norm_grad || op->op == NX_OP_ce_loss ? 1 : 0;
}

static bool run_operator(walk *at, const nx_operator *op) {
  const uint32_t *arguments = at->plan->arguments + op->first_argument;
  if (op->op == NX_OP_wait) return wait_collective(at, op, arguments[0]);
  if (nx_op_find(op->op)->kind == NX_COMM) return start_collective(at, op, arguments[0], arguments[1]);
  for (uint32_t i = 0; i < op->n_in; i++)
    if (!read_value(at, op, arguments[i])) return false;
  bool adds = accumulates(at->plan, op);
  for (uint32_t i = 0; i < op->n_out; i++) {
    uint32_t value = arguments[op->n_in + i];
    if (adds && i >= first_accumulated(op) && !read_value(at, op, value)) return false;
    if (!write_value(at, op, value)) return false;
  }
  return true;
}

static uint32_t item_program(const nx_plan *plan, const nx_item *item) {
  const nx_chunk *chunk = &plan->chunks[item->chunk];
  switch (item->kind) {
    case NX_ITEM_FORWARD: return chunk->forward;
    case NX_ITEM_BACKWARD: return chunk->backward;
    case NX_ITEM_EVALUATE: return chunk->evaluate;
    default: return chunk->step;
  }
}

static uint8_t item_when(const nx_plan *plan, const nx_item *item) {
  if (item->kind == NX_ITEM_STEP) return NX_WHEN_ALWAYS;
  uint8_t when = 0;
  if (item->micro_batch == 0) when |= NX_WHEN_FIRST;
  if (item->micro_batch + 1 == plan->run->n_micro_batches) when |= NX_WHEN_LAST;
  return when ? when : NX_WHEN_MIDDLE;
}

/* What lives within one program is gone when the next begins, unless a collective still owns it. */
static void forget_scratch(const walk *at) {
  for (uint32_t value = 0; value < at->n_values; value++) {
    uint8_t arena = at->plan->values[value].arena;
    if (arena == NX_ARENA_scratch || arena == NX_ARENA_comm) at->state[value] &= (uint8_t)~WRITTEN;
  }
}

static bool run_item(walk *at, const nx_item *item) {
  const nx_program *program = &at->plan->programs[item_program(at->plan, item)];
  uint8_t when = item_when(at->plan, item);
  at->slot = item->slot;
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &at->plan->operators[program->first_operator + i];
    if (op->when & when && !run_operator(at, op)) return false;
  }
  forget_scratch(at);
  return true;
}

static bool nothing_pending(const walk *at) {
  for (size_t i = 0; i < (size_t)at->n_values * at->plan->run->n_slots; i++)
    if (at->state[i] & (RESULT_PENDING | SOURCE_PENDING))
      return nx_fault_set(at->fault, 0, "no operator waits for the collective on %s",
                          nx_plan_string(at->plan, at->plan->values[i % at->n_values].name));
  return true;
}

/* Each micro-batch goes forward once and backward once, in that order, and the step comes last. */
static bool check_counts(const nx_plan *plan, nx_fault *fault) {
  uint32_t n_items = plan->n[NX_SECTION_ITEMS], n_chunks = plan->n[NX_SECTION_CHUNKS];
  uint64_t n_expected = (uint64_t)n_chunks * (2 * (uint64_t)plan->run->n_micro_batches);
  uint64_t n_passes = 0;
  for (uint32_t i = 0; i < n_items; i++) n_passes += plan->items[i].kind <= NX_ITEM_BACKWARD;
  if (n_passes != n_expected)
    return nx_fault_set(fault, 0, "the schedule has %llu passes and should have %llu", (unsigned long long)n_passes,
                        (unsigned long long)n_expected);
  if (plan->items[n_items - 1].kind != NX_ITEM_STEP) return nx_fault_set(fault, 0, "the schedule does not end with the step");
  return true;
}

static bool run_items(walk *at) {
  const nx_plan *plan = at->plan;
  uint32_t next_forward = 0, next_backward = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ITEMS]; i++) {
    const nx_item *item = &plan->items[i];
    uint32_t *next = item->kind == NX_ITEM_FORWARD ? &next_forward : item->kind == NX_ITEM_BACKWARD ? &next_backward : NULL;
    if (next && item->micro_batch != (*next)++)
      return nx_fault_set(at->fault, 0, "micro-batch %u is out of order in the schedule", item->micro_batch);
    if (next_backward > next_forward)
      return nx_fault_set(at->fault, 0, "micro-batch %u goes backward before it went forward", item->micro_batch);
    if (!run_item(at, item)) return false;
  }
  return nothing_pending(at);
}

bool nx_plan_prove(const nx_plan *plan, nx_fault *fault) {
  if (plan->n[NX_SECTION_CHUNKS] != 1)
    return nx_fault_set(fault, 0, "the plan has several chunks, which this version does not run");
  if (!check_counts(plan, fault)) return false;
  walk at = {.plan = plan, .fault = fault, .n_values = plan->n[NX_SECTION_VALUES]};
  at.state = calloc((size_t)at.n_values * plan->run->n_slots, 1);
  at.source = calloc(at.n_values, sizeof *at.source);
  bool proved = at.state && at.source ? run_items(&at) : nx_fault_set(fault, 0, "out of memory");
  free(at.source);
  free(at.state);
  return proved;
}
