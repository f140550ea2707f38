/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/overlap.h"
#include "compiler/program/passes/standing.h"

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

typedef struct extent {
  uint64_t from, to;
} extent;

typedef struct region {
  extent at; /* empty: nowhere */
  uint32_t arena;
} region;

/* A collective, or a transfer between stages, that is under way. */
typedef struct collective {
  uint32_t input, result;   /* values that it reads and writes; NX_NONE: none */
  region reads, writes;      /* where they lie */
  uint32_t chunk, slot;     /* in which it was started */
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

static extent extent_of(const replay *r, uint32_t value) {
  const nx_value *at = &r->plan->values[value];
  const nx_chunk *chunk = &r->plan->chunks[r->chunk];
  uint64_t from = at->offset + chunk->arena_base[at->arena];
  if (at->arena == NX_ARENA_slot) from += r->slot * chunk->arena_bytes[NX_ARENA_slot];
  if (at->offset_shift != NX_NONE && at->arena == NX_ARENA_scalar)
    from += (uint64_t)nx_constant_value(r->plan, at->offset_shift, 0, r->chunk);
  return (extent){from, from + at->bytes};
}

static bool meet(extent a, extent b) {
  return a.from < b.to && b.from < a.to;
}

static uint32_t base_of(const replay *r, uint32_t value) {
  uint32_t base = r->plan->values[value].view_of;
  return base == NX_NONE ? value : base;
}

/* Who owns what is written: views are parts of their base, and what was written as one may be read as the
 * other; but an operator that writes over its input leaves nothing there that its input's other names stand
 * for. */
static uint32_t owner_of(const replay *r, uint32_t value, const uint32_t *inputs, uint32_t n_inputs) {
  for (uint32_t i = 0; i < n_inputs; i++)
    if (inputs[i] != value && base_of(r, inputs[i]) == base_of(r, value) &&
        meet(extent_of(r, inputs[i]), extent_of(r, value)))
      return value;
  return base_of(r, value);
}

static bool fail(const replay *r, const nx_operator *op, uint32_t value, const char *what, uint32_t other) {
  const nx_plan *plan = r->plan;
  const uint8_t *at = op ? (const void *)op : (const void *)plan->chunks;
  return nx_fault_set(r->fault, (uint64_t)(at - plan->bytes), "%s (%s) %s %s%s%s",
                      op ? nx_op_find(op->op)->name : "a transfer",
                      op ? nx_plan_string(plan, op->origin) : "pipeline", what,
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

static region region_of(const replay *r, uint32_t value) {
  if (value == NX_NONE) return (region){0};
  return (region){extent_of(r, value), r->plan->values[value].arena};
}

static bool shared(const region *a, const region *b) {
  return a->arena == b->arena && meet(a->at, b->at);
}

static void start(replay *r, uint32_t input, uint32_t result) {
  r->started = nxc_arena_grow(r->arena, r->started, r->n_started, sizeof *r->started);
  r->started[r->n_started++] =
      (collective){input, result, region_of(r, input), region_of(r, result), r->chunk, r->slot};
}

static bool read_value(replay *r, const nx_operator *op, uint32_t value) {
  region p = region_of(r, value);
  for (size_t i = 0; i < r->n_started; i++)
    if (shared(&r->started[i].writes, &p))
      return fail(r, op, value, "reads, while a collective writes there,", NX_NONE);
  if (!nxc_is_passing(p.arena)) return true;
  const owners *o = &r->by_arena[p.arena];
  uint64_t reached = p.at.from;
  for (size_t i = segment_at(o, reached); i < o->n && reached < p.at.to; i++) {
    if (o->segments[i].from > reached) break;
    uint32_t owner = o->segments[i].owner;
    if (owner != value && owner != base_of(r, value)) return fail(r, op, value, "reads", owner);
    reached = o->segments[i].to;
  }
  return reached >= p.at.to || fail(r, op, value, "reads what was never written,", NX_NONE);
}

static bool write_value(replay *r, const nx_operator *op, uint32_t value, const uint32_t *inputs,
                        uint32_t n_inputs) {
  region p = region_of(r, value);
  for (size_t i = 0; i < r->n_started; i++)
    if (shared(&r->started[i].writes, &p) || shared(&r->started[i].reads, &p))
      return fail(r, op, value, "writes, while a collective is using the place,", NX_NONE);
  if (nxc_is_passing(p.arena)) own(r, p.arena, p.at, owner_of(r, value, inputs, n_inputs));
  return true;
}

static bool run_collective(replay *r, const nx_operator *op, uint32_t input, uint32_t result) {
  if (!read_value(r, op, input) || !write_value(r, op, result, &input, 1)) return false;
  start(r, input, result);
  return true;
}

static bool run_wait(replay *r, const nx_operator *op, uint32_t result) {
  for (size_t i = 0; i < r->n_started; i++) {
    if (r->started[i].result != result || r->started[i].chunk != r->chunk) continue;
    r->started[i] = r->started[--r->n_started];
    return true;
  }
  return fail(r, op, result, "waits for what was never started,", NX_NONE);
}

static bool run_operator(replay *r, const nx_operator *op) {
  const uint32_t *args = r->plan->arguments + op->first_argument;
  if (op->op == NX_OP_wait) return run_wait(r, op, args[0]);
  if (nx_op_is_collective(nx_op_find(op->op))) return run_collective(r, op, args[0], args[1]);
  for (uint32_t i = 0; i < op->n_in; i++)
    if (!read_value(r, op, args[i])) return false;
  for (uint32_t i = 0; i < op->n_out; i++)
    if (!write_value(r, op, args[op->n_in + i], args, op->n_in)) return false;
  return true;
}

static bool passes(const replay *r, uint32_t value) {
  return value != NX_NONE && nxc_is_passing(r->plan->values[value].arena);
}

/* Collectives that outlive their program are on what lives as long as the run; transfers are the
 * schedule's. */
static bool nothing_passing(const replay *r, const nx_item *item) {
  for (size_t i = 0; i < r->n_started; i++) {
    const collective *at = &r->started[i];
    bool transfer = at->input == NX_NONE || at->result == NX_NONE;
    if (!transfer && at->chunk == item->chunk && (passes(r, at->input) || passes(r, at->result)))
      return false;
  }
  return true;
}

static bool run_program(replay *r, const nx_item *item) {
  const nx_plan *plan = r->plan;
  const nx_program *program = &plan->programs[nx_item_program(plan, item)];
  uint8_t when = item->when;
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &plan->operators[program->first_operator + i];
    if ((op->when & when) && !run_operator(r, op)) return false;
  }
  return nothing_passing(r, item) || nx_fault_set(r->fault, 0, "a program ends before its collectives");
}

static bool wait_transfer(replay *r, uint32_t value) {
  for (size_t i = 0; i < r->n_started; i++) {
    const collective *at = &r->started[i];
    if ((at->result != value && at->input != value) || at->chunk != r->chunk || at->slot != r->slot) continue;
    r->started[i] = r->started[--r->n_started];
    return true;
  }
  return fail(r, NULL, value, "is waited for, and was never started,", NX_NONE);
}

static bool run_item(replay *r, const nx_item *item) {
  uint32_t value = r->plan->chunks[item->chunk].ports[item->port];
  r->chunk = item->chunk;
  r->slot = item->slot;
  switch (item->kind) {
    case NX_ITEM_SEND:
      if (!read_value(r, NULL, value)) return false;
      start(r, value, NX_NONE);
      return true;
    case NX_ITEM_RECV:
      if (!write_value(r, NULL, value, NULL, 0)) return false;
      start(r, NX_NONE, value);
      return true;
    case NX_ITEM_WAIT: return wait_transfer(r, value);
    default: return run_program(r, item);
  }
}

/* Every state that slots can be in occurs among the first micro-batches and the last; the others are left
 * out, as if the step were shorter. */
static bool is_replayed(const nx_plan *plan, const nx_schedule *schedule, const nx_item *item) {
  uint32_t n = schedule->n_micro_batches, some = 2 * plan->run->n_slots + 2;
  return item->kind == NX_ITEM_STEP || item->micro_batch < some || item->micro_batch + some >= n;
}

static bool replay_schedule(const nx_plan *plan, const nx_schedule *schedule, nxc_arena *arena,
                            nx_fault *fault) {
  replay r = {.plan = plan, .arena = arena, .fault = fault};
  uint32_t stage = NX_NONE, end = schedule->first_item + schedule->n_items;
  for (uint32_t i = schedule->first_item; i < end; i++) {
    const nx_item *item = &plan->items[i];
    if (item->stage != stage) {
      r = (replay){.plan = plan, .arena = arena, .fault = fault, .chunk = item->chunk};
      for (uint32_t v = 0; v < plan->n[NX_SECTION_VALUES]; v++)
        if (plan->values[v].arena == NX_ARENA_input) own(&r, NX_ARENA_input, extent_of(&r, v), v);
    }
    stage = item->stage;
    if (is_replayed(plan, schedule, item) && !run_item(&r, item)) return false;
    bool is_last = i + 1 == end || plan->items[i + 1].stage != stage;
    if (is_last && r.n_started) return nx_fault_set(fault, 0, "the step ends before its collectives");
  }
  return true;
}

bool nxc_overlap_check(const nx_plan *plan, nxc_arena *arena, nx_fault *fault) {
  if (!nxc_standing_check(plan, arena, fault)) return false;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SCHEDULES]; i++)
    if (!replay_schedule(plan, &plan->schedules[i], arena, fault)) return false;
  return true;
}
