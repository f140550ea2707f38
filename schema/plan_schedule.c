/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The walk runs a schedule's items of all stages together, each stage as far as it can. What can hold up
 * a stage: the wait for a transfer whose other end has not been started (nothing is buffered), and the
 * step, where it sums over stages: each such sum is a meeting, which the stages of its group come to in
 * turn. A stage that is held up is looked at again when what it waits for happens, so every item is
 * looked at a few times.
 *
 * * Beside that each stage's list must make sense by itself: every micro-batch goes forward and back
 * once, in ascending order, in a slot that holds nothing else and whose transfers are complete; the step
 * comes when all that is done. An evaluation goes forward alone, and of the step has the sum of its
 * losses. */

typedef enum transfer_state { NOT_STARTED, UNDER_WAY, COMPLETE } transfer_state;

typedef struct slot_state {
  bool used, forward, backward;
  uint32_t micro_batch;
  uint8_t ports[NX_N_PORTS];      /* transfer_state */
  /* of the transfer that is under way: how many of its port were started before */
  uint32_t sequence[NX_N_PORTS];
} slot_state;

/* One end of a channel: a port of a chunk. */
typedef struct channel_end {
  uint32_t n_started, n_complete;
  struct {
    uint32_t micro_batch;
    double at;
  } recent[2 * NX_MAX_TRANSFERS]; /* by sequence */
} channel_end;

typedef struct stage_state {
  uint32_t next, end; /* items */
  double at;
  uint8_t stepped; /* phases of the step that the chunks together began */
  bool queued, arrived; /* at the next meeting of its item */
  uint32_t n_met;       /* meetings of its item that are over */
} stage_state;

/* Of a group that crosses stages. A stage is at most one meeting ahead of another. */
typedef struct meetings {
  double at[2]; /* when the last stage so far came to an even, to an odd meeting */
  uint32_t *n_come; /* [stages]: how often */
} meetings;

typedef struct walk {
  const nx_plan *plan;
  const nx_schedule *schedule;
  bool trains; /* there are backward passes */
  nx_fault *fault;
  const double *seconds;
  double *begin, *end;
  uint32_t n_stages;
  stage_state *stages;
  meetings *meetings; /* [groups] */
  uint32_t *n_come;   /* [groups][stages] */
  slot_state *slots;     /* [chunks][slots of the run] */
  channel_end *ends;     /* [chunks][ports] */
  uint32_t *n_forward, *n_backward; /* [chunks] */
  uint8_t *stepped;      /* [chunks]: phases */
  uint32_t *queue, n_queued;
} walk;

void nx_item_describe(const nx_plan *plan, const nx_item *item, char *text, size_t room) {
  static const char *const names[] = {"",     "forward", "backward", "evaluation",
                                      "send", "receive", "wait",     "step"};
  const char *name = item->kind < sizeof names / sizeof *names ? names[item->kind] : "?";
  (void)plan;
  if (item->kind == NX_ITEM_STEP)
    snprintf(text, room, "step of chunk %u", item->chunk);
  else if (item->kind >= NX_ITEM_SEND && item->kind <= NX_ITEM_WAIT)
    snprintf(text, room, "%s %s %s of chunk %u, micro-batch %u", name,
             item->kind == NX_ITEM_WAIT ? "for the" : "of the",
             nx_port_name(item->port), item->chunk, item->micro_batch);
  else
    snprintf(text, room, "%s of chunk %u, micro-batch %u", name, item->chunk, item->micro_batch);
}

static bool fail(const walk *w, const nx_item *item, const char *what) {
  char text[128];
  nx_item_describe(w->plan, item, text, sizeof text);
  uint64_t offset = (uint64_t)((const uint8_t *)item - w->plan->bytes);
  return nx_fault_set(w->fault, offset, "stage %u, item %u, %s: %s", item->stage,
                      (uint32_t)(item - w->plan->items), text, what);
}

static slot_state *slot_of(const walk *w, const nx_item *item) {
  return &w->slots[(size_t)item->chunk * w->plan->run->n_slots + item->slot];
}

static channel_end *end_of(const walk *w, uint32_t chunk, nx_port port) {
  return &w->ends[(size_t)chunk * NX_N_PORTS + port];
}

/* Whether the chunk moves anything through the port. */
static bool uses_port(const walk *w, uint32_t chunk, nx_port port) {
  bool forward = port == NX_PORT_INPUT || port == NX_PORT_OUTPUT;
  return (forward || w->trains) && w->plan->chunks[chunk].ports[port] != NX_NONE;
}

static bool has_port(const walk *w, const nx_item *item, nx_port port) {
  return uses_port(w, item->chunk, port);
}

static void enqueue(walk *w, uint32_t stage) {
  if (w->stages[stage].queued) return;
  w->stages[stage].queued = true;
  w->queue[w->n_queued++] = stage;
}

/* ---- what a stage does by itself ---- */

static bool is_free(const walk *w, const nx_item *item) {
  const slot_state *slot = slot_of(w, item);
  if (!slot->used) return true;
  for (nx_port port = 0; port < NX_N_PORTS; port++)
    if (has_port(w, item, port) && slot->ports[port] != COMPLETE) return false;
  return w->trains ? slot->backward : slot->forward;
}

static void occupy(const walk *w, const nx_item *item) {
  *slot_of(w, item) = (slot_state){.used = true, .micro_batch = item->micro_batch};
}

static bool holds(const walk *w, const nx_item *item) {
  const slot_state *slot = slot_of(w, item);
  return slot->used && slot->micro_batch == item->micro_batch;
}

static bool run_forward(walk *w, const nx_item *item) {
  slot_state *slot = slot_of(w, item);
  if ((item->kind == NX_ITEM_FORWARD) != w->trains) return fail(w, item, "it is of another schedule");
  if (item->micro_batch != w->n_forward[item->chunk]++)
    return fail(w, item, "micro-batches are out of order");
  if (has_port(w, item, NX_PORT_INPUT)) {
    if (!holds(w, item) || slot->ports[NX_PORT_INPUT] != COMPLETE || slot->forward)
      return fail(w, item, "its input has not been received");
  } else if (is_free(w, item)) {
    occupy(w, item);
  } else {
    return fail(w, item, "its slot still holds another micro-batch");
  }
  slot->forward = true;
  return true;
}

static bool run_backward(walk *w, const nx_item *item) {
  slot_state *slot = slot_of(w, item);
  if (!w->trains) return fail(w, item, "it is of another schedule");
  if (item->micro_batch != w->n_backward[item->chunk]++)
    return fail(w, item, "micro-batches are out of order");
  if (!holds(w, item) || !slot->forward || slot->backward)
    return fail(w, item, "it has not gone forward in this slot");
  if (has_port(w, item, NX_PORT_OUTPUT_GRADIENT) && slot->ports[NX_PORT_OUTPUT_GRADIENT] != COMPLETE)
    return fail(w, item, "its gradient has not been received");
  slot->backward = true;
  return true;
}

/* ---- transfers ---- */

static bool start_transfer(walk *w, const nx_item *item) {
  slot_state *slot = slot_of(w, item);
  if (!has_port(w, item, item->port)) return fail(w, item, "it is of another schedule");
  uint32_t peer = nx_port_peer(item->chunk, item->port);
  channel_end *own = end_of(w, item->chunk, item->port);
  const channel_end *other = end_of(w, peer, nx_port_opposite(item->port));
  if (item->port == NX_PORT_INPUT) {
    if (!is_free(w, item)) return fail(w, item, "its slot still holds another micro-batch");
    occupy(w, item);
  }
  bool ready = item->port == NX_PORT_INPUT || slot->forward;
  if (item->port == NX_PORT_INPUT_GRADIENT) ready = slot->backward;
  if (!holds(w, item) || !ready) return fail(w, item, "there is nothing to move yet");
  if (slot->ports[item->port] != NOT_STARTED) return fail(w, item, "it is started a second time");
  if (own->n_started - own->n_complete == NX_MAX_TRANSFERS)
    return fail(w, item, "too many transfers are under way");
  uint32_t at = own->n_started % (2 * NX_MAX_TRANSFERS);
  own->recent[at].micro_batch = item->micro_batch;
  own->recent[at].at = w->stages[item->stage].at;
  if (other->n_started > own->n_started && other->recent[at].micro_batch != item->micro_batch)
    return fail(w, item, "its other end moves another micro-batch");
  slot->ports[item->port] = UNDER_WAY;
  slot->sequence[item->port] = own->n_started++;
  enqueue(w, w->plan->chunks[peer].stage);
  return true;
}

/* Whether the other end has been started too. */
static bool may_complete(const walk *w, const nx_item *item) {
  const slot_state *slot = slot_of(w, item);
  if (slot->ports[item->port] != UNDER_WAY) return true; /* and complete_transfer says why not */
  return end_of(w, nx_port_peer(item->chunk, item->port), nx_port_opposite(item->port))->n_started >
         slot->sequence[item->port];
}

static bool complete_transfer(walk *w, const nx_item *item) {
  slot_state *slot = slot_of(w, item);
  if (!holds(w, item) || slot->ports[item->port] != UNDER_WAY) return fail(w, item, "nothing was started");
  channel_end *own = end_of(w, item->chunk, item->port);
  const channel_end *other = end_of(w, nx_port_peer(item->chunk, item->port), nx_port_opposite(item->port));
  double met = other->recent[slot->sequence[item->port] % (2 * NX_MAX_TRANSFERS)].at;
  if (slot->sequence[item->port] != own->n_complete)
    return fail(w, item, "an earlier transfer is still under way");
  if (met > w->stages[item->stage].at) w->stages[item->stage].at = met;
  slot->ports[item->port] = COMPLETE;
  own->n_complete++;
  return true;
}

/* ---- the step ---- */

static bool is_chunk_done(const walk *w, uint32_t chunk) {
  const nx_chunk *at = &w->plan->chunks[chunk];
  bool passes = w->trains ? at->forward != NX_NONE && at->backward != NX_NONE : at->evaluate != NX_NONE;
  uint32_t n = w->schedule->n_micro_batches;
  for (nx_port port = 0; port < NX_N_PORTS; port++) {
    const channel_end *end = end_of(w, chunk, port);
    if (end->n_started != end->n_complete || (uses_port(w, chunk, port) && end->n_complete != n))
      return false;
  }
  return !passes || (w->n_forward[chunk] == n && w->n_backward[chunk] == (w->trains ? n : 0));
}

/* The sum of an evaluation's losses, once on each stage, when all of its chunks are done. */
static bool run_total(walk *w, const nx_item *item) {
  for (uint32_t chunk = 0; chunk < w->plan->n[NX_SECTION_CHUNKS]; chunk++)
    if (w->plan->chunks[chunk].stage == item->stage && !is_chunk_done(w, chunk))
      return fail(w, item, "passes or transfers of a chunk are missing before it");
  if (w->stages[item->stage].stepped) return fail(w, item, "it comes twice");
  w->stages[item->stage].stepped = item->when;
  return true;
}

/* Phases run in order: all of one, over the stage's chunks, before any of the next. */
static bool run_step(walk *w, const nx_item *item) {
  const nx_plan *plan = w->plan;
  uint8_t phases = nx_step_phases(item), all_first = NX_WHEN_FIRST, earlier = 0;
  stage_state *stage = &w->stages[item->stage];
  if ((item->when == NX_WHEN_EVALUATED) == w->trains) return fail(w, item, "it is of another schedule");
  if (!w->trains) return run_total(w, item);
  if (!is_chunk_done(w, item->chunk))
    return fail(w, item, "passes or transfers of the chunk are missing before it");
  if (w->stepped[item->chunk] & phases) return fail(w, item, "it comes twice");
  if ((stage->stepped & phases & NX_WHEN_MIDDLE) != 0)
    return fail(w, item, "what the chunks share is done twice");
  w->stepped[item->chunk] |= phases;
  for (uint32_t chunk = 0; chunk < plan->n[NX_SECTION_CHUNKS]; chunk++)
    if (plan->chunks[chunk].stage == item->stage) all_first &= w->stepped[chunk];
  if (phases & (NX_WHEN_MIDDLE | NX_WHEN_LAST)) earlier |= NX_WHEN_FIRST;
  if (earlier & ~all_first)
    return fail(w, item, "gradients of another chunk of the stage are not reduced yet");
  stage->stepped |= phases;
  if (phases & NX_WHEN_LAST && !(stage->stepped & NX_WHEN_MIDDLE))
    return fail(w, item, "it updates before the norm is known");
  return true;
}

/* The `index`-th collective of an item that crosses stages, or NULL. */
static const nx_operator *meeting_of(const walk *w, const nx_item *item, uint32_t index) {
  const nx_plan *plan = w->plan;
  if (item->kind != NX_ITEM_STEP || w->n_stages == 1) return NULL;
  const nx_program *program = &plan->programs[nx_item_program(plan, item)];
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &plan->operators[program->first_operator + i];
    if (op->when & item->when && nx_group_crosses_stages(plan, op->group) && index-- == 0) return op;
  }
  return NULL;
}

static void arrive(walk *w, uint32_t index, uint32_t group) {
  stage_state *stage = &w->stages[index];
  meetings *of = &w->meetings[group];
  double *at = &of->at[of->n_come[index] % 2];
  bool first = true;
  for (uint32_t i = 0; i < w->n_stages; i++) {
    if (i != index && of->n_come[i] > of->n_come[index]) first = false;
    if (i != index && nx_group_has_stage(w->plan, group, i)) enqueue(w, i);
  }
  if (first || stage->at > *at) *at = stage->at;
  of->n_come[index]++;
  stage->arrived = true;
}

static bool is_complete(const walk *w, uint32_t index, uint32_t group) {
  const meetings *of = &w->meetings[group];
  for (uint32_t i = 0; i < w->n_stages; i++)
    if (nx_group_has_stage(w->plan, group, i) && of->n_come[i] < of->n_come[index]) return false;
  return true;
}

/* Whether all meetings of the item are over: the stage goes from one to the next as they become complete. */
static bool has_met_all(walk *w, const nx_item *item) {
  stage_state *stage = &w->stages[item->stage];
  for (const nx_operator *op; (op = meeting_of(w, item, stage->n_met)) != NULL; stage->n_met++) {
    if (!stage->arrived) arrive(w, item->stage, op->group);
    if (!is_complete(w, item->stage, op->group)) return false;
    const meetings *of = &w->meetings[op->group];
    stage->at = of->at[(of->n_come[item->stage] - 1) % 2];
    stage->arrived = false;
  }
  stage->n_met = 0;
  return true;
}

/* ---- the walk ---- */

static bool run_item(walk *w, const nx_item *item) {
  switch (item->kind) {
    case NX_ITEM_FORWARD:
    case NX_ITEM_EVALUATE: return run_forward(w, item);
    case NX_ITEM_BACKWARD: return run_backward(w, item);
    case NX_ITEM_SEND:
    case NX_ITEM_RECV: return start_transfer(w, item);
    case NX_ITEM_WAIT: return complete_transfer(w, item);
    case NX_ITEM_STEP: return run_step(w, item);
    default: return true;
  }
}

static bool run_stage(walk *w, uint32_t index) {
  stage_state *stage = &w->stages[index];
  for (; stage->next < stage->end; stage->next++) {
    const nx_item *item = &w->plan->items[stage->next];
    double since = stage->at;
    if (item->kind == NX_ITEM_WAIT && !may_complete(w, item)) return true;
    if (!has_met_all(w, item)) return true;
    if (!run_item(w, item)) return false;
    if (w->seconds) stage->at += w->seconds[stage->next];
    if (w->begin)
      w->begin[stage->next] = item->kind == NX_ITEM_WAIT ? since : stage->at - w->seconds[stage->next];
    if (w->end) w->end[stage->next] = stage->at;
  }
  return true;
}

static bool report_stuck(const walk *w) {
  char list[900] = "";
  size_t length = 0;
  uint64_t offset = 0;
  for (uint32_t i = 0; i < w->n_stages; i++) {
    const stage_state *stage = &w->stages[i];
    char text[128];
    if (stage->next == stage->end) continue;
    const nx_item *item = &w->plan->items[stage->next];
    if (offset == 0) offset = (uint64_t)((const uint8_t *)item - w->plan->bytes);
    nx_item_describe(w->plan, item, text, sizeof text);
    int n = snprintf(list + length, sizeof list - length, "%sstage %u stands at item %u, %s",
                     length ? "; " : "", i, stage->next, text);
    if (n < 0 || (size_t)n >= sizeof list - length) break;
    length += (size_t)n;
  }
  return nx_fault_set(w->fault, offset, "the schedule can not end: %s", list);
}

static bool check_complete(const walk *w) {
  const nx_plan *plan = w->plan;
  for (uint32_t i = 0; i < w->n_stages; i++)
    if (w->stages[i].next < w->stages[i].end) return report_stuck(w);
  for (uint32_t chunk = 0; chunk < plan->n[NX_SECTION_CHUNKS]; chunk++) {
    uint8_t all = NX_WHEN_FIRST | NX_WHEN_LAST;
    if (!is_chunk_done(w, chunk))
      return nx_fault_set(w->fault, 0, "the schedule lacks passes or transfers of chunk %u", chunk);
    uint8_t stepped = w->stages[plan->chunks[chunk].stage].stepped;
    if (!w->trains && plan->chunks[chunk].step != NX_NONE && stepped == 0)
      return nx_fault_set(w->fault, 0, "the evaluation does not end with the sum of the losses of chunk %u",
                          chunk);
    bool shared = stepped & NX_WHEN_MIDDLE;
    if (w->trains && plan->chunks[chunk].step != NX_NONE && ((w->stepped[chunk] & all) != all || !shared))
      return nx_fault_set(w->fault, 0, "the schedule does not end with the step of chunk %u", chunk);
  }
  return true;
}

static bool split_stages(walk *w) {
  const nx_plan *plan = w->plan;
  for (uint32_t i = w->schedule->first_item; i < w->schedule->first_item + w->schedule->n_items; i++) {
    stage_state *stage = &w->stages[plan->items[i].stage];
    if (stage->end == 0) stage->next = i;
    stage->end = i + 1;
  }
  for (uint32_t i = 0; i < w->n_stages; i++)
    if (w->stages[i].end == 0) return nx_fault_set(w->fault, 0, "stage %u has nothing to do", i);
  return true;
}

static bool walk_all(walk *w) {
  if (!split_stages(w)) return false;
  for (uint32_t i = w->n_stages; i-- > 0;) enqueue(w, i);
  while (w->n_queued) {
    uint32_t stage = w->queue[--w->n_queued];
    w->stages[stage].queued = false;
    if (!run_stage(w, stage)) return false;
  }
  return check_complete(w);
}

bool nx_schedule_walk(const nx_plan *plan, const nx_schedule *schedule, const double *seconds, double *begin,
                      double *end, nx_fault *fault) {
  size_t n_chunks = plan->n[NX_SECTION_CHUNKS];
  walk w = {
      .plan = plan, .schedule = schedule, .fault = fault, .seconds = seconds, .begin = begin, .end = end};
  w.trains = schedule->kind == NX_SCHEDULE_TRAIN;
  w.n_stages = nx_plan_n_stages(plan);
  w.stages = calloc(w.n_stages, sizeof *w.stages);
  w.queue = calloc(w.n_stages, sizeof *w.queue);
  w.slots = calloc(n_chunks * plan->run->n_slots, sizeof *w.slots);
  w.ends = calloc(n_chunks * NX_N_PORTS, sizeof *w.ends);
  w.n_forward = calloc(n_chunks, sizeof *w.n_forward);
  w.n_backward = calloc(n_chunks, sizeof *w.n_backward);
  w.stepped = calloc(n_chunks, sizeof *w.stepped);
  uint32_t n_groups = plan->n[NX_SECTION_GROUPS];
  w.meetings = calloc(n_groups + 1, sizeof *w.meetings);
  w.n_come = calloc((size_t)n_groups * w.n_stages + 1, sizeof *w.n_come);
  bool enough = w.stages && w.queue && w.slots && w.ends && w.n_forward && w.n_backward && w.stepped &&
                w.meetings && w.n_come;
  for (uint32_t group = 0; enough && group < n_groups; group++)
    w.meetings[group].n_come = &w.n_come[(size_t)group * w.n_stages];
  bool good = enough ? walk_all(&w) : nx_fault_set(fault, 0, "out of memory");
  free(w.meetings);
  free(w.n_come);
  free(w.stages);
  free(w.queue);
  free(w.slots);
  free(w.ends);
  free(w.n_forward);
  free(w.n_backward);
  free(w.stepped);
  return good;
}
