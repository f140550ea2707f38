/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/overlap.h"

#include "schema/plan_check.h"

#include <stdlib.h>
#include <string.h>

/* Bytes [from, to) of an arena were last written by `owner`. */
typedef struct segment {
  uint64_t from, to;
  uint32_t owner;
} segment;

typedef struct owners {
  segment *segments; /* ascending, disjoint */
  size_t n;
} owners;

typedef struct collective {
  uint32_t input, result;
  uint64_t shift; /* of the slot in which it was started */
} collective;

typedef struct replay {
  const nx_plan *plan;
  nxc_arena *arena;
  nx_fault *fault;
  owners by_arena[NX_N_ARENAS];
  collective *started;
  size_t n_started;
  uint32_t chunk;
  uint32_t slot;
} replay;

typedef struct extent {
  uint64_t from, to;
} extent;

/* Values that are planned for one micro-batch; all others live as long as the run. */
static bool is_passing(uint32_t arena) {
  return arena == NX_ARENA_slot || arena == NX_ARENA_scratch || arena == NX_ARENA_comm ||
         arena == NX_ARENA_input || arena == NX_ARENA_scalar;
}

static extent extent_of(const replay *r, uint32_t value, uint32_t slot) {
  const nx_value *at = &r->plan->values[value];
  uint64_t from = at->offset + r->plan->chunks[r->chunk].arena_base[at->arena];
  const nx_arena_record *arena = nx_plan_arena(r->plan, at->arena);
  if (at->arena == NX_ARENA_slot) from += slot * arena->slot_bytes;
  return (extent){from, from + at->bytes};
}

static bool meet(extent a, extent b) {
  return a.from < b.to && b.from < a.to;
}

static bool fail(const replay *r, const nx_operator *op, uint32_t value, const char *what, uint32_t other) {
  const nx_plan *plan = r->plan;
  return nx_fault_set(r->fault, (uint64_t)((const uint8_t *)op - plan->bytes), "%s (%s) %s %s%s%s",
                      nx_op_find(op->op)->name, nx_plan_string(plan, op->origin), what,
                      nx_plan_string(plan, plan->values[value].name),
                      other == NX_NONE ? "" : ", overwritten by ",
                      other == NX_NONE ? "" : nx_plan_string(plan, plan->values[other].name));
}

/* The first segment that ends after `offset`. */
static size_t segment_at(const owners *o, uint64_t offset) {
  size_t low = 0, high = o->n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (o->segments[middle].to <= offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void own(replay *r, uint32_t arena, extent e, uint32_t value) {
  owners *o = &r->by_arena[arena];
  size_t first = segment_at(o, e.from), last = first;
  segment kept[3];
  size_t n_kept = 0;
  if (first < o->n && o->segments[first].from < e.from)
    kept[n_kept++] = (segment){o->segments[first].from, e.from, o->segments[first].owner};
  kept[n_kept++] = (segment){e.from, e.to, value};
  while (last < o->n && o->segments[last].from < e.to) last++;
  if (last > first && o->segments[last - 1].to > e.to)
    kept[n_kept++] = (segment){e.to, o->segments[last - 1].to, o->segments[last - 1].owner};
  size_t n_new = o->n - (last - first) + n_kept;
  for (size_t n = o->n; n < n_new; n++)
    o->segments = nxc_arena_grow(r->arena, o->segments, n, sizeof *o->segments);
  memmove(o->segments + first + n_kept, o->segments + last, (o->n - last) * sizeof *o->segments);
  memcpy(o->segments + first, kept, n_kept * sizeof *kept);
  o->n = n_new;
}

static bool read_value(replay *r, const nx_operator *op, uint32_t value) {
  const nx_value *at = &r->plan->values[value];
  extent e = extent_of(r, value, r->slot);
  for (size_t i = 0; i < r->n_started; i++) {
    const nx_value *result = &r->plan->values[r->started[i].result];
    if (result->arena == at->arena &&
        meet(extent_of(r, r->started[i].result, (uint32_t)r->started[i].shift), e))
      return fail(r, op, value, "reads, while a collective writes there,", NX_NONE);
  }
  if (!is_passing(at->arena)) return true;
  const owners *o = &r->by_arena[at->arena];
  uint64_t reached = e.from;
  for (size_t i = segment_at(o, e.from); i < o->n && reached < e.to; i++) {
    if (o->segments[i].from > reached) break;
    if (o->segments[i].owner != value) return fail(r, op, value, "reads", o->segments[i].owner);
    reached = o->segments[i].to;
  }
  return reached >= e.to || fail(r, op, value, "reads what was never written,", NX_NONE);
}

static bool write_value(replay *r, const nx_operator *op, uint32_t value) {
  const nx_value *at = &r->plan->values[value];
  extent e = extent_of(r, value, r->slot);
  for (size_t i = 0; i < r->n_started; i++) {
    const uint32_t used[] = {r->started[i].input, r->started[i].result};
    for (int side = 0; side < 2; side++)
      if (r->plan->values[used[side]].arena == at->arena &&
          meet(extent_of(r, used[side], (uint32_t)r->started[i].shift), e))
        return fail(r, op, value, "writes, while a collective is using the place,", NX_NONE);
  }
  if (is_passing(at->arena)) own(r, at->arena, e, value);
  return true;
}

static bool run_collective(replay *r, const nx_operator *op, uint32_t input, uint32_t result) {
  if (!read_value(r, op, input) || !write_value(r, op, result)) return false;
  r->started = nxc_arena_grow(r->arena, r->started, r->n_started, sizeof *r->started);
  r->started[r->n_started++] = (collective){input, result, r->slot};
  return true;
}

static bool run_wait(replay *r, const nx_operator *op, uint32_t result) {
  for (size_t i = 0; i < r->n_started; i++) {
    if (r->started[i].result != result) continue;
    r->started[i] = r->started[--r->n_started];
    return true;
  }
  return fail(r, op, result, "waits for what was never started,", NX_NONE);
}

static bool run_operator(replay *r, const nx_operator *op) {
  const uint32_t *args = r->plan->arguments + op->first_argument;
  if (op->op == NX_OP_wait) return run_wait(r, op, args[0]);
  if (nx_op_find(op->op)->kind == NX_COMM) return run_collective(r, op, args[0], args[1]);
  for (uint32_t i = 0; i < op->n_in; i++)
    if (!read_value(r, op, args[i])) return false;
  for (uint32_t i = 0; i < op->n_out; i++)
    if (!write_value(r, op, args[op->n_in + i])) return false;
  return true;
}

static uint8_t when_of(const nx_plan *plan, const nx_item *item) {
  uint8_t when = 0;
  if (item->kind == NX_ITEM_STEP) return NX_WHEN_ALWAYS;
  if (item->micro_batch == 0) when |= NX_WHEN_FIRST;
  if (item->micro_batch + 1 == plan->run->n_micro_batches) when |= NX_WHEN_LAST;
  return when ? when : NX_WHEN_MIDDLE;
}

static bool run_item(replay *r, const nx_item *item) {
  const nx_plan *plan = r->plan;
  const nx_chunk *chunk = &plan->chunks[item->chunk];
  const uint32_t programs[] = {[NX_ITEM_FORWARD] = chunk->forward,
                               [NX_ITEM_BACKWARD] = chunk->backward,
                               [NX_ITEM_EVALUATE] = chunk->evaluate,
                               [NX_ITEM_STEP] = chunk->step};
  const nx_program *program = &plan->programs[programs[item->kind]];
  uint8_t when = when_of(plan, item);
  r->chunk = item->chunk;
  r->slot = item->slot;
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &plan->operators[program->first_operator + i];
    if ((op->when & when) && !run_operator(r, op)) return false;
  }
  return r->n_started == 0 || nx_fault_set(r->fault, 0, "a program ends before its collectives");
}

typedef struct box {
  uint64_t from, to;
  uint32_t arena, value;
} box;

static int compare_boxes(const void *left, const void *right) {
  const box *a = left, *b = right;
  if (a->arena != b->arena) return a->arena < b->arena ? -1 : 1;
  return a->from < b->from ? -1 : a->from > b->from;
}

static bool disjoint(const nx_plan *plan, box *boxes, size_t n, nx_fault *fault) {
  qsort(boxes, n, sizeof *boxes, compare_boxes);
  for (size_t i = 1; i < n; i++)
    if (boxes[i].arena == boxes[i - 1].arena && boxes[i].from < boxes[i - 1].to)
      return nx_fault_set(fault, 0, "%s and %s share bytes",
                          nx_plan_string(plan, plan->values[boxes[i - 1].value].name),
                          nx_plan_string(plan, plan->values[boxes[i].value].name));
  return true;
}

/* What lives as long as the run, and the parameters within their ranges. */
static bool check_standing(const nx_plan *plan, nxc_arena *arena, nx_fault *fault) {
  uint32_t n_values = plan->n[NX_SECTION_VALUES];
  box *boxes = nxc_arena_array(arena, n_values, sizeof *boxes);
  bool *listed = nxc_arena_array(arena, n_values, sizeof *listed);
  size_t n = 0;
  for (uint32_t i = 0; i < n_values; i++) {
    const nx_value *value = &plan->values[i];
    bool standing =
        !is_passing(value->arena) || value->arena == NX_ARENA_input || value->arena == NX_ARENA_scalar;
    if (standing && value->view_of == NX_NONE)
      boxes[n++] = (box){value->offset, value->offset + value->bytes, value->arena, i};
  }
  if (!disjoint(plan, boxes, n, fault)) return false;
  n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    uint32_t index = plan->pieces[i].value;
    const nx_value *value = &plan->values[index];
    if (!listed[index]) boxes[n++] = (box){value->offset, value->offset + value->bytes, value->arena, index};
    listed[index] = true;
  }
  return disjoint(plan, boxes, n, fault);
}

bool nxc_overlap_check(const nx_plan *plan, nxc_arena *arena, nx_fault *fault) {
  replay r = {.plan = plan, .arena = arena, .fault = fault};
  if (!check_standing(plan, arena, fault)) return false;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_VALUES]; i++)
    if (plan->values[i].arena == NX_ARENA_input) own(&r, NX_ARENA_input, extent_of(&r, i, 0), i);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ITEMS]; i++) {
    const nx_item *item = &plan->items[i];
    uint32_t n = plan->run->n_micro_batches;
    bool alike =
        item->micro_batch > 1 && item->micro_batch + 1 < n; /* as the second micro-batch, in the same state */
    if (!alike && !run_item(&r, item)) return false;
  }
  return true;
}
