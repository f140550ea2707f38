/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/pipeline/play.h"

#include <math.h>

typedef struct player {
  const nxc_layout *layout;
  uint32_t n_micro;
  const nxc_pass_lengths *lengths;
  nxc_played *played;
  double *forward_end, *backward_end; /* [chunks][micro-batches]; below 0: not yet */
  size_t *next, *end;                 /* [stages]: the passes of a stage that are left */
} player;

static double *end_of(const player *p, uint32_t chunk, uint32_t micro_batch, bool backward) {
  return &(backward ? p->backward_end : p->forward_end)[(size_t)chunk * p->n_micro + micro_batch];
}

/* When what a pass reads is there; below 0: not yet. The weights' part stands behind its inputs' one. */
static double ready_at(const player *p, const nxc_timed_pass *pass) {
  uint32_t m = pass->micro_batch;
  if (pass->kind == NXC_ACTION_WEIGHTS) return 0;
  if (pass->kind == NXC_ACTION_FORWARD) return pass->chunk == 0 ? 0 : *end_of(p, pass->chunk - 1, m, false);
  double own = *end_of(p, pass->chunk, m, false);
  double next = pass->chunk + 1 == p->layout->n_chunks ? own : *end_of(p, pass->chunk + 1, m, true);
  return own < 0 || next < 0 ? -1 : fmax(own, next);
}

static bool run_one(const player *p, uint32_t stage) {
  nxc_timed_pass *passes = p->played->passes;
  size_t at = p->next[stage];
  if (at == p->end[stage]) return false;
  nxc_timed_pass *pass = &passes[at];
  bool first = at == 0 || passes[at - 1].stage != stage;
  double ready = ready_at(p, pass);
  if (ready < 0) return false;
  pass->begin = fmax(ready, first ? 0 : passes[at - 1].end);
  pass->end = pass->begin + p->lengths[pass->chunk].of[pass->kind];
  if (pass->kind != NXC_ACTION_WEIGHTS)
    *end_of(p, pass->chunk, pass->micro_batch, pass->kind != NXC_ACTION_FORWARD) = pass->end;
  p->played->length = fmax(p->played->length, pass->end);
  p->next[stage]++;
  return true;
}

static bool run_all(const player *p) {
  size_t n_run = 0;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (uint32_t stage = 0; stage < p->layout->pipeline; stage++)
      while (run_one(p, stage)) n_run++, goes_on = true;
  }
  return n_run == p->played->n_passes;
}

static void list_passes(player *p, nxc_arena *arena) {
  nxc_played *played = p->played;
  size_t most = (size_t)3 * p->n_micro * p->layout->n_chunks;
  played->passes = nxc_arena_array(arena, most, sizeof *played->passes);
  for (uint32_t stage = 0; stage < p->layout->pipeline; stage++) {
    const nxc_actions actions = nxc_actions_of(arena, p->layout, p->n_micro, stage);
    p->next[stage] = played->n_passes;
    for (size_t i = 0; i < actions.n; i++) {
      const nxc_action *a = &actions.list[i];
      played->passes[played->n_passes++] = (nxc_timed_pass){stage, a->chunk, a->micro_batch, a->kind, 0, 0};
    }
    p->end[stage] = played->n_passes;
  }
}

bool nxc_play(nxc_arena *arena, const nxc_layout *layout, uint32_t n_micro, const nxc_pass_lengths *lengths,
              nxc_played *played) {
  size_t n = (size_t)layout->n_chunks * n_micro;
  *played = (nxc_played){0};
  player p = {layout, n_micro, lengths, played,
              nxc_arena_array(arena, n, sizeof(double)),
              nxc_arena_array(arena, n, sizeof(double)),
              nxc_arena_array(arena, layout->pipeline, sizeof(size_t)),
              nxc_arena_array(arena, layout->pipeline, sizeof(size_t))};
  for (size_t i = 0; i < n; i++) p.forward_end[i] = p.backward_end[i] = -1;
  list_passes(&p, arena);
  return run_all(&p);
}

/* ---- of many micro-batches ---- */

/* A step of very many goes as one of fewer, and what grows with each turn of the stages goes on so. */
typedef struct shorter {
  nxc_layout layout; /* whose turns are those of the step */
  uint32_t n, more;  /* micro-batches; of one turn of the stages more */
  double times;      /* turns that the step has beyond n */
} shorter;

static shorter shorten(const nxc_layout *layout, uint64_t n_micro) {
  enum { TURNS = 2 };
  uint64_t p = layout->pipeline, n = TURNS * p + n_micro % p;
  shorter s = {.layout = *layout};
  if (n + p > n_micro) n = n_micro;
  s.layout.group = nxc_layout_turn(layout, (uint32_t)n_micro);
  s.n = (uint32_t)n, s.more = (uint32_t)(n + p), s.times = (double)(n_micro - n) / (double)p;
  return s;
}

static double along(const shorter *s, double less, double more) {
  return less + s->times * (more - less);
}

static double wait_in(const nxc_layout *layout, uint32_t n_micro, const nxc_pass_lengths *each) {
  nxc_arena *arena = nxc_arena_new();
  nxc_pass_lengths *lengths = nxc_arena_array(arena, layout->n_chunks, sizeof *lengths);
  nxc_played played;
  for (uint32_t chunk = 0; chunk < layout->n_chunks; chunk++) lengths[chunk] = *each;
  nxc_play(arena, layout, n_micro, lengths, &played);
  double busy = 0;
  for (size_t i = 0; i < played.n_passes; i++) busy += each->of[played.passes[i].kind];
  nxc_arena_free(arena);
  return fmax(0, played.length - busy / layout->pipeline);
}

double nxc_play_wait(const nxc_layout *layout, uint64_t n_micro, const nxc_pass_lengths *each) {
  if (layout->pipeline == 1) return 0;
  const shorter s = shorten(layout, n_micro);
  double less = wait_in(&s.layout, s.n, each);
  return s.times > 0 ? along(&s, less, wait_in(&s.layout, s.more, each)) : less;
}

static double most_in_flight(const nxc_layout *layout, uint32_t n_micro, uint32_t stage) {
  nxc_arena *arena = nxc_arena_new();
  const nxc_actions actions = nxc_actions_of(arena, layout, n_micro, stage);
  uint32_t now = 0, most = 0;
  for (size_t i = 0; i < actions.n; i++) {
    nxc_action_kind kind = actions.list[i].kind;
    if (kind == NXC_ACTION_FORWARD && ++now > most) most = now;
    if (kind == NXC_ACTION_BACKWARD || kind == NXC_ACTION_WEIGHTS) now--;
  }
  nxc_arena_free(arena);
  return (double)most * layout->pipeline / layout->n_chunks;
}

double nxc_play_in_flight(const nxc_layout *layout, uint64_t n_micro, uint32_t stage) {
  if (layout->pipeline == 1) return 1;
  const shorter s = shorten(layout, n_micro);
  double less = most_in_flight(&s.layout, s.n, stage);
  return s.times > 0 ? along(&s, less, most_in_flight(&s.layout, s.more, stage)) : less;
}
