/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/pipeline/actions.h"

typedef struct course {
  nxc_arena *arena;
  const nxc_layout *layout;
  uint32_t stage, n_stages, n_micro;
  uint32_t *chunks, n_chunks; /* of the stage, in model order */
  nxc_actions actions;
  uint32_t *next[4]; /* by kind: the next micro-batch of each of the stage's chunks */
} course;

static void add(course *c, nxc_action_kind kind, uint32_t chunk, uint32_t micro_batch) {
  c->actions.list[c->actions.n++] = (nxc_action){kind, chunk, micro_batch};
}

/* The next micro-batch of the stage's chunk number `turn`. */
static void go(course *c, nxc_action_kind kind, uint32_t turn) {
  bool whole = kind == NXC_ACTION_BACKWARD;
  uint32_t *next = &c->next[whole ? NXC_ACTION_INPUTS : kind][turn];
  add(c, kind, c->chunks[turn], (*next)++);
  if (whole) c->next[NXC_ACTION_WEIGHTS][turn]++;
}

/* ---- looped ---- */

/* All passes of one direction: micro-batches in groups of as many as a turn has, each group through all
 * chunks of the stage, so that no more than a group waits for a stage that has still to come to them. With
 * one chunk a stage they are simply in order. */
static nxc_action *interleaved(const course *c, nxc_action_kind kind) {
  uint32_t n = c->n_micro, width = nxc_layout_turn(c->layout, n);
  nxc_action *passes = nxc_arena_array(c->arena, (size_t)n * c->n_chunks, sizeof *passes);
  size_t at = 0;
  for (uint32_t first = 0; first < n; first += width)
    for (uint32_t v = 0; v < c->n_chunks; v++)
      for (uint32_t m = first; m < n && m < first + width; m++)
        passes[at++] = (nxc_action){
            kind, c->chunks[kind == NXC_ACTION_FORWARD ? v : c->n_chunks - 1 - v], m};
  return passes;
}

static void gpipe(course *c) {
  size_t n = (size_t)c->n_micro * c->n_chunks;
  const nxc_action *forward = interleaved(c, NXC_ACTION_FORWARD), *back = interleaved(c, NXC_ACTION_BACKWARD);
  for (size_t i = 0; i < n; i++) c->actions.list[c->actions.n++] = forward[i];
  for (size_t i = 0; i < n; i++) c->actions.list[c->actions.n++] = back[i];
}

/* Some forward passes fill the pipeline, then one goes forward and one back in turn; those of the weights
 * follow when so many of their backward passes have been, if they are apart. */
static void in_turn(course *c, size_t ahead, bool apart, size_t behind) {
  size_t n = (size_t)c->n_micro * c->n_chunks, n_weights = 0;
  const nxc_action *forward = interleaved(c, NXC_ACTION_FORWARD),
                   *back = interleaved(c, apart ? NXC_ACTION_INPUTS : NXC_ACTION_BACKWARD);
  if (ahead > n) ahead = n;
  for (size_t i = 0; i < ahead; i++) c->actions.list[c->actions.n++] = forward[i];
  for (size_t i = 0; i < n; i++) {
    if (ahead + i < n) c->actions.list[c->actions.n++] = forward[ahead + i];
    c->actions.list[c->actions.n++] = back[i];
    for (; apart && n_weights + behind <= i; n_weights++)
      add(c, NXC_ACTION_WEIGHTS, back[n_weights].chunk, back[n_weights].micro_batch);
  }
  for (; apart && n_weights < n; n_weights++)
    add(c, NXC_ACTION_WEIGHTS, back[n_weights].chunk, back[n_weights].micro_batch);
}

static size_t other_chunks_turns(const course *c) {
  return (size_t)(c->n_chunks - 1) * nxc_layout_turn(c->layout, c->n_micro);
}

/* Interleaved (Megatron's schedules.py) the number of passes ahead is twice as steep over the stages, and all
 * but the last chunk go ahead. */
static void one_forward_one_back(course *c) {
  size_t later_stages = c->n_stages - 1 - c->stage;
  in_turn(c, c->n_chunks > 1 ? 2 * later_stages + other_chunks_turns(c) : later_stages, false, 0);
}

/* ZB1P of arXiv:2401.10241: as PyTorch's ScheduleInterleavedZeroBubble. */
static void zero_bubble(course *c) {
  in_turn(c, c->n_stages - 1 - c->stage + other_chunks_turns(c), true, c->stage);
}

/* ---- V-shaped: the stage's first chunk leads away from the first stage, its second back to it ---- */

enum { AWAY, RETURN };
static const nxc_action_kind F = NXC_ACTION_FORWARD, B = NXC_ACTION_BACKWARD, I = NXC_ACTION_INPUTS,
                             W = NXC_ACTION_WEIGHTS;

static void go_back(course *c, uint32_t turn) {
  go(c, I, turn);
  go(c, W, turn);
}

static bool is_behind(const course *c, uint32_t turn) {
  return c->next[W][turn] < c->next[I][turn];
}

/* Section 6 of arXiv:2401.10241, as PyTorch's ScheduleZBVZeroBubble. Of a step of fewer micro-batches than
 * fill it, those that are not there are left out. */
static void zbv(course *c) {
  uint32_t stage = c->stage, after = c->n_stages - stage, *forward = c->next[F];
  uint32_t n = c->n_micro < 2 * c->n_stages - 1 ? 2 * c->n_stages - 1 : c->n_micro;
  for (uint32_t i = 0; i < 2 * after - 1; i++) go(c, F, AWAY);
  for (uint32_t i = 0; i < stage; i++) go(c, F, RETURN), go(c, F, AWAY);
  for (uint32_t i = 0; i < after; i++) go(c, F, RETURN), go_back(c, RETURN);
  while (forward[RETURN] < forward[AWAY] || forward[AWAY] < n) {
    if (forward[AWAY] < n) go(c, F, AWAY);
    go_back(c, AWAY);
    go(c, F, RETURN);
    go_back(c, RETURN);
  }
  for (uint32_t i = 0; i < stage; i++) go(c, I, AWAY), go(c, I, RETURN);
  for (uint32_t i = 0; i < after; i++) go_back(c, AWAY);
  while (is_behind(c, RETURN)) go(c, W, RETURN);
  while (is_behind(c, AWAY)) go(c, W, AWAY);
}

/* Weights' parts that wait for their turn, oldest first. */
typedef struct pending {
  uint32_t *turns;
  size_t first, n;
} pending;

static void go_inputs(course *c, pending *p, uint32_t turn) {
  go(c, I, turn);
  p->turns[p->n++] = turn;
}

static void go_oldest(course *c, pending *p) {
  if (p->first < p->n) go(c, W, p->turns[p->first++]);
}

/* The end of a stage: its first half with whole backward passes, its second without weights. */
static bool go_home(course *c, pending *p, uint32_t n) {
  bool apart = false;
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t turn = RETURN + 1; turn-- > AWAY;) {
      if (i == n / 2 && (c->stage % 2 == 1) == (turn == RETURN)) apart = true;
      if (apart) go_inputs(c, p, turn);
      else go(c, B, turn);
    }
  }
  return apart;
}

/* DeepSeek's (arXiv:2412.19437), as PyTorch's ScheduleDualPipeV: what it lets overlap goes forward first. */
static void dualpipev(course *c) {
  uint32_t stage = c->stage, later = c->n_stages - 1 - stage;
  uint32_t n = c->n_micro < 2 * c->n_stages ? 2 * c->n_stages : c->n_micro;
  pending p = {.turns = nxc_arena_array(c->arena, 2 * (size_t)n, sizeof *p.turns)};
  for (uint32_t i = 0; i < 2 * later; i++) go(c, F, AWAY);
  for (uint32_t i = 0; i <= stage; i++) go(c, F, AWAY), go(c, F, RETURN);
  for (uint32_t i = 0; i < later; i++) go_inputs(c, &p, RETURN), go_oldest(c, &p), go(c, F, RETURN);
  for (uint32_t i = 0; i < n - 2 * c->n_stages + stage + 1; i++)
    go(c, F, AWAY), go(c, B, RETURN), go(c, F, RETURN), go(c, B, AWAY);
  for (uint32_t i = 0; i < later; i++) go(c, B, RETURN), go(c, F, RETURN), go(c, B, AWAY);
  bool apart = go_home(c, &p, stage + 1);
  for (uint32_t i = 0; i < later; i++) {
    go_oldest(c, &p);
    if (apart) go_inputs(c, &p, AWAY);
    else go(c, B, AWAY);
  }
  while (p.first < p.n) go_oldest(c, &p);
}

/* ---- all ---- */

static void (*const orders[NXC_N_ORDERS])(course *) = {
    [NXC_ORDER_1F1B] = one_forward_one_back,
    [NXC_ORDER_INTERLEAVED] = one_forward_one_back,
    [NXC_ORDER_GPIPE] = gpipe,
    [NXC_ORDER_ZERO_BUBBLE] = zero_bubble,
    [NXC_ORDER_ZBV] = zbv,
    [NXC_ORDER_DUALPIPEV] = dualpipev,
};

/* Leaves out what is of no micro-batch of the step. */
static void tidy(course *c) {
  nxc_actions *a = &c->actions;
  size_t n = 0;
  for (size_t i = 0; i < a->n; i++)
    if (a->list[i].micro_batch < c->n_micro) a->list[n++] = a->list[i];
  a->n = n;
}

nxc_actions nxc_actions_of(nxc_arena *arena, const nxc_layout *layout, uint32_t n_micro, uint32_t stage) {
  course c = {
      .arena = arena, .layout = layout, .stage = stage, .n_stages = layout->pipeline, .n_micro = n_micro};
  size_t most = n_micro > 2 * c.n_stages ? n_micro : 2 * c.n_stages;
  c.chunks = nxc_arena_array(arena, layout->n_chunks, sizeof *c.chunks);
  for (uint32_t chunk = 0; chunk < layout->n_chunks; chunk++)
    if (nxc_layout_stage_of(layout, chunk) == stage) c.chunks[c.n_chunks++] = chunk;
  for (nxc_action_kind kind = 0; kind <= NXC_ACTION_WEIGHTS; kind++)
    c.next[kind] = nxc_arena_array(arena, c.n_chunks + 1, sizeof **c.next);
  c.actions.list = nxc_arena_array(arena, 3 * most * (c.n_chunks + 1), sizeof *c.actions.list);
  orders[layout->pipeline_order](&c);
  tidy(&c);
  return c.actions;
}
