/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules are generators of one list of passes per stage: which chunk goes forward or back with which
 * micro-batch, backward in ascending order in every schedule. What is sent, received and waited for
 * follows from the passes, and is the same for all schedules:
 *
 * *   a receive is started one pass ahead, where a slot is free for it, and waited for right before its
 * pass; a send is started after its pass, and waited for when its slot is used again, or when too many
 * are under way.
 *
 * * An evaluation has the forward passes alone, in the same order and slots; each slot is free after its
 * pass. */
#include "compiler/program/pipeline/actions.h"
#include "compiler/program/pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>

/* A backward pass that is not cut has all of it, whichever part the order names. */
typedef struct pass {
  bool backward, later; /* what is cut off a backward pass */
  bool both;            /* a backward pass, and behind it what is cut off */
  uint32_t chunk, micro_batch;
} pass;

typedef struct sent {
  uint16_t slot;
  uint32_t micro_batch;
} sent;

/* The state of a chunk while the list of its stage is made. */
typedef struct chunk_list {
  uint16_t *slot_of;   /* [micro-batches] */
  bool *has_slot, *received_gradient, *forwarded; /* [micro-batches] */
  uint16_t *free_slots; /* queue [micro-batches]: oldest first */
  uint32_t n_freed, n_taken_again, n_new;
  sent *sends[NX_N_PORTS]; /* [micro-batches], in order */
  uint32_t n_sent[NX_N_PORTS], n_waited[NX_N_PORTS];
} chunk_list;

typedef struct generator {
  nxc_pipeline *p;
  uint32_t stage, n_micro_batches, group;
  uint32_t *chunks, n_own; /* of the stage, in model order */
  uint32_t most; /* micro-batches of a step of the plan */
  bool evaluates;
  uint8_t shift; /* of the phases of its steps */
  pass *passes;
  size_t n_passes;
  chunk_list *lists; /* [chunks] */
} generator;

/* ---- passes ---- */

static void add_pass(generator *g, const nxc_action *action) {
  bool forward = action->kind == NXC_ACTION_FORWARD, later = action->kind == NXC_ACTION_WEIGHTS;
  if ((later && !g->p->cuts) || (g->evaluates && !forward)) return;
  g->passes[g->n_passes++] = (pass){.backward = !forward && !later,
                                    .later = later,
                                    .both = g->p->cuts && action->kind == NXC_ACTION_BACKWARD,
                                    .chunk = action->chunk,
                                    .micro_batch = action->micro_batch};
}

static void list_passes(generator *g, const nxc_layout *layout) {
  const nxc_actions actions = nxc_actions_of(g->p->arena, layout, g->n_micro_batches, g->stage);
  g->passes = nxc_arena_array(g->p->arena, actions.n, sizeof *g->passes);
  for (size_t i = 0; i < actions.n; i++) add_pass(g, &actions.list[i]);
  for (uint32_t chunk = 0; chunk < g->p->n_chunks; chunk++)
    if (g->p->chunks[chunk].stage == g->stage) g->chunks[g->n_own++] = chunk;
}

/* ---- items ---- */

static void push(generator *g, nx_item_kind kind, nx_port port, uint32_t chunk, uint32_t micro_batch,
                 uint16_t slot) {
  nxc_pipeline *p = g->p;
  p->items = nxc_arena_grow(p->arena, p->items, p->n_items, sizeof *p->items);
  bool runs = kind <= NX_ITEM_EVALUATE;
  p->items[p->n_items++] =
      (nx_item){.stage = g->stage,
                .kind = (uint8_t)kind,
                .port = (uint8_t)port,
                .when = runs ? nx_pass_when(micro_batch, g->n_micro_batches, g->most) : 0,
                .slot = slot,
                .chunk = chunk,
                .micro_batch = micro_batch};
}

static bool has_port(const generator *g, uint32_t chunk, nx_port port) {
  bool towards_start = port == NX_PORT_INPUT || port == NX_PORT_INPUT_GRADIENT;
  return towards_start ? chunk > 0 : chunk + 1 < g->p->n_chunks;
}

/* Whether the other end of the port is a chunk of the same stage. */
static bool is_local(const generator *g, uint32_t chunk, nx_port port) {
  return has_port(g, chunk, port) && g->p->chunks[nx_port_peer(chunk, port)].stage == g->stage;
}

static void wait_oldest_send(generator *g, uint32_t chunk, nx_port port) {
  chunk_list *list = &g->lists[chunk];
  const sent *at = &list->sends[port][list->n_waited[port]++];
  push(g, NX_ITEM_WAIT, port, chunk, at->micro_batch, at->slot);
}

static void send(generator *g, uint32_t chunk, nx_port port, uint32_t micro_batch) {
  chunk_list *list = &g->lists[chunk];
  if (!has_port(g, chunk, port)) return;
  if (list->n_sent[port] - list->n_waited[port] == NX_MAX_TRANSFERS) wait_oldest_send(g, chunk, port);
  list->sends[port][list->n_sent[port]++] = (sent){list->slot_of[micro_batch], micro_batch};
  push(g, NX_ITEM_SEND, port, chunk, micro_batch, list->slot_of[micro_batch]);
}

/* The number of a port's sends up to the last one of the slot that is still under way. */
static uint32_t last_send_of(const chunk_list *list, nx_port port, uint16_t slot) {
  uint32_t last = list->n_waited[port];
  for (uint32_t s = last; s < list->n_sent[port]; s++)
    if (list->sends[port][s].slot == slot) last = s + 1;
  return last;
}

/* Waits for what was sent from the slot before. */
static void wait_sends_of(generator *g, uint32_t chunk, uint16_t slot) {
  static const nx_port ports[] = {NX_PORT_OUTPUT, NX_PORT_INPUT_GRADIENT};
  chunk_list *list = &g->lists[chunk];
  for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
    uint32_t last = last_send_of(list, ports[i], slot);
    while (list->n_waited[ports[i]] < last) wait_oldest_send(g, chunk, ports[i]);
  }
}

static bool is_slot_free(const generator *g, uint32_t chunk) {
  const chunk_list *list = &g->lists[chunk];
  return list->n_new < g->p->chunks[chunk].n_slots || list->n_taken_again < list->n_freed;
}

/* A slot that is free, and of which nothing is being sent: to wait for that ahead of time could be to wait
 * for a stage that waits for this one. */
static bool is_slot_idle(const generator *g, uint32_t chunk) {
  const chunk_list *list = &g->lists[chunk];
  if (!is_slot_free(g, chunk)) return false;
  if (list->n_new < g->p->chunks[chunk].n_slots) return true;
  uint16_t slot = list->free_slots[list->n_taken_again];
  return last_send_of(list, NX_PORT_OUTPUT, slot) == list->n_waited[NX_PORT_OUTPUT] &&
         last_send_of(list, NX_PORT_INPUT_GRADIENT, slot) == list->n_waited[NX_PORT_INPUT_GRADIENT];
}

static void take_slot(generator *g, uint32_t chunk, uint32_t micro_batch) {
  chunk_list *list = &g->lists[chunk];
  assert(is_slot_free(g, chunk));
  bool is_new = list->n_new < g->p->chunks[chunk].n_slots;
  uint16_t slot = is_new ? (uint16_t)list->n_new++ : list->free_slots[list->n_taken_again++];
  if (!is_new) wait_sends_of(g, chunk, slot);
  list->slot_of[micro_batch] = slot;
  list->has_slot[micro_batch] = true;
}

/* Starts what a pass receives, unless that was done; ahead of the pass only where it is possible. */
static void receive(generator *g, const pass *at, bool ahead) {
  chunk_list *list = &g->lists[at->chunk];
  uint32_t m = at->micro_batch;
  if (at->later) return;
  if (at->backward) {
    if (!has_port(g, at->chunk, NX_PORT_OUTPUT_GRADIENT)) return;
    if (list->received_gradient[m] || !list->forwarded[m]) return;
    list->received_gradient[m] = true;
    push(g, NX_ITEM_RECV, NX_PORT_OUTPUT_GRADIENT, at->chunk, m, list->slot_of[m]);
  } else if (!list->has_slot[m] && (!ahead || (at->chunk > 0 && is_slot_idle(g, at->chunk)))) {
    take_slot(g, at->chunk, m);
    if (at->chunk > 0) push(g, NX_ITEM_RECV, NX_PORT_INPUT, at->chunk, m, list->slot_of[m]);
  }
}

/* What goes to a chunk of the same stage is received before it is sent, so that nothing waits for it. */
static void hand_on(generator *g, const pass *at) {
  nx_port port = at->backward ? NX_PORT_INPUT_GRADIENT : NX_PORT_OUTPUT;
  const pass next = {
      .backward = at->backward, .chunk = nx_port_peer(at->chunk, port), .micro_batch = at->micro_batch};
  if (is_local(g, at->chunk, port)) receive(g, &next, false);
  send(g, at->chunk, port, at->micro_batch);
}

static void free_slot(generator *g, const pass *at) {
  chunk_list *list = &g->lists[at->chunk];
  list->free_slots[list->n_freed++] = list->slot_of[at->micro_batch];
}

static void run_later(generator *g, const pass *at) {
  push(g, NX_ITEM_BACKWARD, 0, at->chunk, at->micro_batch, g->lists[at->chunk].slot_of[at->micro_batch]);
  uint8_t *when = &g->p->items[g->p->n_items - 1].when;
  *when = nx_when_later(*when);
  free_slot(g, at);
}

static void run(generator *g, const pass *at) {
  chunk_list *list = &g->lists[at->chunk];
  uint32_t m = at->micro_batch;
  nx_port port = at->backward ? NX_PORT_OUTPUT_GRADIENT : NX_PORT_INPUT;
  if (at->later) {
    run_later(g, at);
    return;
  }
  if (has_port(g, at->chunk, port)) push(g, NX_ITEM_WAIT, port, at->chunk, m, list->slot_of[m]);
  nx_item_kind forward = g->evaluates ? NX_ITEM_EVALUATE : NX_ITEM_FORWARD;
  push(g, at->backward ? NX_ITEM_BACKWARD : forward, 0, at->chunk, m, list->slot_of[m]);
  if (!at->backward) list->forwarded[m] = true;
  hand_on(g, at);
  if (at->both) run_later(g, at);
  else if ((at->backward && !g->p->cuts) || g->evaluates) free_slot(g, at);
}

static void push_step(generator *g, uint32_t chunk, uint8_t when) {
  push(g, NX_ITEM_STEP, 0, chunk, 0, 0);
  g->p->items[g->p->n_items - 1].when = when;
}

/* A stage of several chunks steps in three phases. */
static void step(generator *g) {
  if (g->evaluates) {
    push_step(g, g->chunks[0], NX_WHEN_EVALUATED);
    return;
  }
  uint8_t first = NX_WHEN_FIRST << g->shift, middle = NX_WHEN_MIDDLE << g->shift,
          last = NX_WHEN_LAST << g->shift;
  if (g->n_own == 1) {
    push_step(g, g->chunks[0], first | middle | last);
    return;
  }
  for (uint32_t i = 0; i < g->n_own; i++) push_step(g, g->chunks[i], first);
  push_step(g, g->chunks[0], middle);
  for (uint32_t i = 0; i < g->n_own; i++) push_step(g, g->chunks[i], last);
}

/* Micro-batches that hold a slot of each chunk at once: what comes from a chunk of the same stage is put
 * there when it is made. */
static uint32_t *most_in_flight(const generator *g) {
  uint32_t *now = nxc_arena_array(g->p->arena, g->p->n_chunks, sizeof *now);
  uint32_t *most = nxc_arena_array(g->p->arena, g->p->n_chunks, sizeof *most);
  for (size_t i = 0; i < g->n_passes; i++) {
    const pass *at = &g->passes[i];
    uint32_t next = at->chunk + 1;
    if (at->later || at->both || (at->backward && !g->p->cuts)) now[at->chunk]--;
    if (at->later || at->backward) continue;
    if (!is_local(g, at->chunk, NX_PORT_INPUT) && ++now[at->chunk] > most[at->chunk])
      most[at->chunk] = now[at->chunk];
    if (is_local(g, at->chunk, NX_PORT_OUTPUT) && ++now[next] > most[next]) most[next] = now[next];
  }
  return most;
}

/* As many slots as micro-batches are between their forward and their backward pass at once; as many more as
 * gradients wait to be received where a chunk's turn is longer than the pipeline; and spare ones, as for the
 * next one's input where it is to be received ahead. The first chunk receives none. */
static void count_slots(generator *g, uint32_t spare) {
  const uint32_t *most = most_in_flight(g);
  for (uint32_t i = 0; i < g->n_own; i++) {
    uint32_t c = g->chunks[i], n_slots = most[c];
    if (c > 0 && g->n_own > 1 && g->group > g->p->n_stages) n_slots += g->group - g->p->n_stages;
    if (c > 0) n_slots += spare;
    if (n_slots > g->n_micro_batches) n_slots = g->n_micro_batches;
    if (n_slots > g->p->chunks[c].n_slots) g->p->chunks[c].n_slots = n_slots;
    if (n_slots > g->p->n_slots) g->p->n_slots = n_slots;
  }
}

static void open_lists(generator *g) {
  nxc_arena *arena = g->p->arena;
  size_t n = g->n_micro_batches;
  g->lists = nxc_arena_array(arena, g->p->n_chunks, sizeof *g->lists);
  for (uint32_t i = 0; i < g->n_own; i++) {
    chunk_list *list = &g->lists[g->chunks[i]];
    list->slot_of = nxc_arena_array(arena, n, sizeof *list->slot_of);
    list->has_slot = nxc_arena_array(arena, n, sizeof *list->has_slot);
    list->received_gradient = nxc_arena_array(arena, n, sizeof *list->received_gradient);
    list->forwarded = nxc_arena_array(arena, n, sizeof *list->forwarded);
    list->free_slots = nxc_arena_array(arena, n, sizeof *list->free_slots);
    for (nx_port port = 0; port < NX_N_PORTS; port++)
      list->sends[port] = nxc_arena_array(arena, n, sizeof *list->sends[port]);
  }
}

static void schedule_stage(nxc_pipeline *p, const nxc_training *t, const nx_schedule *schedule,
                           uint32_t stage) {
  generator g = {.p = p,
                 .stage = stage,
                 .n_micro_batches = schedule->n_micro_batches,
                 .most = (uint32_t)t->batch.n_micro,
                 .chunks = nxc_arena_array(p->arena, p->n_chunks, sizeof *g.chunks),
                 .group = nxc_layout_turn(&t->layout, schedule->n_micro_batches),
                 .evaluates = schedule->kind == NX_SCHEDULE_EVALUATE,
                 .shift = schedule->flags & NX_SCHEDULE_COMPRESSED ? NX_WHEN_COMPRESSED : 0};
  list_passes(&g, &t->layout);
  if (!g.evaluates) count_slots(&g, t->layout.spare_slots); /* an evaluation needs no more */
  open_lists(&g);
  for (size_t i = 0; i < g.n_passes; i++) {
    receive(&g, &g.passes[i], false);
    if (i + 1 < g.n_passes) receive(&g, &g.passes[i + 1], true);
    run(&g, &g.passes[i]);
  }
  for (uint32_t i = 0; i < g.n_own; i++)
    for (nx_port port = 0; port < NX_N_PORTS; port++)
      while (g.lists[g.chunks[i]].n_waited[port] < g.lists[g.chunks[i]].n_sent[port])
        wait_oldest_send(&g, g.chunks[i], port);
  step(&g);
}

static int descending(const void *a, const void *b) {
  const nx_schedule *one = a, *other = b;
  if (one->n_micro_batches != other->n_micro_batches)
    return one->n_micro_batches < other->n_micro_batches ? 1 : -1;
  return (int)one->flags - (int)other->flags;
}

static bool has_schedule(const nxc_pipeline *p, uint32_t n_micro, uint32_t flags) {
  for (uint32_t i = 0; i < p->n_schedules; i++)
    if (p->schedules[i].n_micro_batches == n_micro && p->schedules[i].flags == flags) return true;
  return false;
}

/* The batch's phases, of which that in which compression begins is two. */
static void list_phases(nxc_pipeline *p, const nxc_training *t) {
  const nxc_batch *batch = &t->batch;
  int64_t from = t->optimizer.compresses_from;
  bool compresses = from > 0 && from < t->rate.max_steps;
  size_t n = batch->n_phases ? batch->n_phases : compresses ? 1 : 0;
  p->phases = nxc_arena_array(p->arena, 2 * n + 1, sizeof *p->phases);
  for (size_t i = 0; i < n; i++) {
    const nxc_batch_phase all = {0, 0, batch->global, batch->n_micro},
                          of = batch->n_phases ? batch->phases[i] : all;
    nxc_phase_node *phase = &p->phases[p->n_phases++];
    *phase = (nxc_phase_node){of, compresses && of.first_step >= from};
    int64_t end = i + 1 < n ? batch->phases[i + 1].first_step : t->rate.max_steps;
    if (!compresses || of.first_step >= from || end <= from) continue;
    p->phases[p->n_phases] = *phase;
    p->phases[p->n_phases].batch.first_sample += (from - of.first_step) * of.global;
    p->phases[p->n_phases].batch.first_step = from;
    p->phases[p->n_phases++].compressed = true;
  }
}

/* One for each number of micro-batches that a step of the training has, the full batch first. */
static void list_schedules(nxc_pipeline *p, const nxc_training *t) {
  const nxc_batch *batch = &t->batch;
  nx_schedule full = {.kind = NX_SCHEDULE_TRAIN, .n_micro_batches = (uint32_t)batch->n_micro};
  p->schedules = nxc_arena_array(p->arena, p->n_phases + 2, sizeof *p->schedules);
  p->schedules[p->n_schedules++] = full;
  for (size_t i = 0; i < p->n_phases; i++) {
    uint32_t n_micro = (uint32_t)p->phases[i].batch.n_micro,
             flags = p->phases[i].compressed ? NX_SCHEDULE_COMPRESSED : 0;
    if (has_schedule(p, n_micro, flags)) continue;
    p->schedules[p->n_schedules] = full;
    p->schedules[p->n_schedules].flags = flags;
    p->schedules[p->n_schedules++].n_micro_batches = n_micro;
  }
  qsort(p->schedules, p->n_schedules, sizeof *p->schedules, descending);
  if (!t->evaluates) return;
  full.kind = NX_SCHEDULE_EVALUATE;
  full.n_micro_batches = (uint32_t)batch->n_evaluated;
  p->schedules[p->n_schedules++] = full;
}

void nxc_schedule(nxc_pipeline *p, const nxc_training *t) {
  list_phases(p, t);
  list_schedules(p, t);
  for (uint32_t i = 0; i < p->n_schedules; i++) {
    nx_schedule *schedule = &p->schedules[i];
    schedule->first_item = (uint32_t)p->n_items;
    for (uint32_t stage = 0; stage < p->n_stages; stage++) schedule_stage(p, t, schedule, stage);
    schedule->n_items = (uint32_t)p->n_items - schedule->first_item;
  }
}
