/* SPDX-License-Identifier: Apache-2.0 */
/* What the items of a schedule do, one by one. */
#include "schema/plan_walk.h"

#include <stdio.h>

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

/* ---- what a stage does by itself ---- */

static bool is_free(const walk *w, const nx_item *item) {
  const slot_state *slot = slot_of(w, item);
  if (!slot->used) return true;
  for (nx_port port = 0; port < NX_N_PORTS; port++)
    if (has_port(w, item, port) && slot->ports[port] != COMPLETE) return false;
  return w->trains ? slot->backward && (slot->later || !w->cut[item->chunk]) : slot->forward;
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

static bool run_later(walk *w, const nx_item *item) {
  slot_state *slot = slot_of(w, item);
  if (!w->cut[item->chunk]) return fail(w, item, "nothing is cut off the chunk's backward passes");
  if (item->micro_batch != w->n_later[item->chunk]++)
    return fail(w, item, "micro-batches are out of order");
  if (!holds(w, item) || !slot->backward || slot->later)
    return fail(w, item, "its inputs' part has not gone back in this slot");
  slot->later = true;
  return true;
}

static bool run_inputs(walk *w, const nx_item *item) {
  slot_state *slot = slot_of(w, item);
  if (item->micro_batch != w->n_backward[item->chunk]++)
    return fail(w, item, "micro-batches are out of order");
  if (!holds(w, item) || !slot->forward || slot->backward)
    return fail(w, item, "it has not gone forward in this slot");
  if (has_port(w, item, NX_PORT_OUTPUT_GRADIENT) && slot->ports[NX_PORT_OUTPUT_GRADIENT] != COMPLETE)
    return fail(w, item, "its gradient has not been received");
  slot->backward = true;
  return true;
}

static bool run_backward(walk *w, const nx_item *item) {
  bool now = nx_when_now(item->when) != 0, later = nx_when_now(item->when) != item->when;
  if (!w->trains) return fail(w, item, "it is of another schedule");
  return (!now || run_inputs(w, item)) && (!later || run_later(w, item));
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
  nx_walk_enqueue(w, w->plan->chunks[peer].stage);
  return true;
}

/* Whether the other end has been started too. */
bool nx_walk_may_complete(const walk *w, const nx_item *item) {
  const slot_state *slot = slot_of(w, item);
  if (slot->ports[item->port] != UNDER_WAY) return true; /* and complete_transfer says why not */
  return end_of(w, nx_port_peer(item->chunk, item->port), nx_port_opposite(item->port))->n_started >
         slot->sequence[item->port];
}

static bool complete_transfer(walk *w, const nx_item *item) {
  slot_state *slot = slot_of(w, item);
  if (!holds(w, item) || slot->ports[item->port] != UNDER_WAY)
    return fail(w, item, "nothing was started");
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

bool nx_walk_is_chunk_done(const walk *w, uint32_t chunk) {
  const nx_chunk *at = &w->plan->chunks[chunk];
  bool passes = w->trains ? at->forward != NX_NONE && at->backward != NX_NONE : at->evaluate != NX_NONE;
  uint32_t n = w->schedule->n_micro_batches;
  for (nx_port port = 0; port < NX_N_PORTS; port++) {
    const channel_end *end = end_of(w, chunk, port);
    if (end->n_started != end->n_complete || (uses_port(w, chunk, port) && end->n_complete != n))
      return false;
  }
  uint32_t back = w->trains ? n : 0, later = w->cut[chunk] ? back : 0;
  return !passes ||
         (w->n_forward[chunk] == n && w->n_backward[chunk] == back && w->n_later[chunk] == later);
}

/* The sum of an evaluation's losses, once on each stage, when all of its chunks are done. */
static bool run_total(walk *w, const nx_item *item) {
  for (uint32_t chunk = 0; chunk < w->plan->n[NX_SECTION_CHUNKS]; chunk++)
    if (w->plan->chunks[chunk].stage == item->stage && !nx_walk_is_chunk_done(w, chunk))
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
  if ((item->when == NX_WHEN_EVALUATED) == w->trains)
    return fail(w, item, "it is of another schedule");
  if (!w->trains) return run_total(w, item);
  if (!nx_walk_is_chunk_done(w, item->chunk))
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

bool nx_walk_item(walk *w, const nx_item *item) {
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
    snprintf(text, room, "%s%s of chunk %u, micro-batch %u", name,
             item->kind == NX_ITEM_BACKWARD && nx_when_now(item->when) == 0 ? ", later part," : "",
             item->chunk, item->micro_batch);
}
