/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/timeline.h"

#include "compiler/program/pipeline/pipeline.h"

#include <math.h>

enum { MOST_PASSES = 3000 };

/* ---- how long a pass is ---- */

/* The output layer, in layers of the model: by the parameters that a token goes through. */
static double output_in_layers(const nxc_sizes *z) {
  double attention = 2 * z->hidden * (z->heads + z->kv_heads) * z->head_dim;
  double width = z->mixtures > 0 ? z->top_k * z->expert_ffn + z->shared_ffn : z->ffn;
  return z->outputs * z->hidden / fmax(1, attention + (2 + z->gates) * z->hidden * width);
}

static double length_of(const nxc_pipeline *p, const nxc_sizes *z, uint32_t chunk, bool backward) {
  double forward = p->chunks[chunk].n_layers + (chunk + 1 == p->n_chunks ? output_in_layers(z) : 0);
  return backward ? forward * (z->recomputes_all ? 3 : 2) : forward;
}

/* ---- when it runs ---- */

typedef struct walk {
  nxc_timeline *t;
  const nxc_pipeline *p;
  double *forward_end, *backward_end; /* [chunks][micro-batches]; below 0: not yet */
  size_t *next, *end;                 /* [stages]: the passes of a stage that are left */
} walk;

static double *end_of(walk *w, const nxc_timed_pass *pass, uint32_t chunk, bool backward) {
  return &(backward ? w->backward_end : w->forward_end)[(size_t)chunk * w->t->n_shown + pass->micro_batch];
}

/* When what a pass reads is there; below 0: not yet. */
static double ready_at(walk *w, const nxc_timed_pass *pass) {
  uint32_t last = w->t->n_chunks - 1;
  if (!pass->backward) return pass->chunk == 0 ? 0 : *end_of(w, pass, pass->chunk - 1, false);
  double own = *end_of(w, pass, pass->chunk, false);
  double next = pass->chunk == last ? own : *end_of(w, pass, pass->chunk + 1, true);
  return own < 0 || next < 0 ? -1 : fmax(own, next);
}

static bool run_one(walk *w, const nxc_sizes *z, uint32_t stage) {
  nxc_timed_pass *passes = w->t->passes;
  size_t at = w->next[stage];
  if (at == w->end[stage]) return false;
  nxc_timed_pass *pass = &passes[at];
  bool first = at == 0 || passes[at - 1].stage != stage;
  double ready = ready_at(w, pass);
  if (ready < 0) return false;
  pass->begin = fmax(ready, first ? 0 : passes[at - 1].end);
  pass->end = pass->begin + length_of(w->p, z, pass->chunk, pass->backward);
  *end_of(w, pass, pass->chunk, pass->backward) = pass->end;
  w->t->length = fmax(w->t->length, pass->end);
  w->next[stage]++;
  return true;
}

static bool run_all(walk *w, const nxc_sizes *z) {
  size_t n_run = 0;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (uint32_t stage = 0; stage < w->t->n_stages; stage++)
      while (run_one(w, z, stage)) n_run++, goes_on = true;
  }
  return n_run == w->t->n_passes;
}

static void list_passes(walk *w, nxc_arena *arena) {
  const nxc_pipeline *p = w->p;
  nxc_timeline *t = w->t;
  t->passes = nxc_arena_array(arena, p->n_items, sizeof *t->passes);
  for (size_t i = 0; i < p->n_items; i++) {
    const nx_item *item = &p->items[i];
    if (item->kind != NX_ITEM_FORWARD && item->kind != NX_ITEM_BACKWARD) continue;
    if (w->end[item->stage] == 0) w->next[item->stage] = t->n_passes;
    t->passes[t->n_passes++] = (nxc_timed_pass){.stage = item->stage, .chunk = item->chunk,
                                                .micro_batch = item->micro_batch,
                                                .backward = item->kind == NX_ITEM_BACKWARD};
    w->end[item->stage] = t->n_passes;
  }
}

static void sum_up(const walk *w, const nxc_sizes *z, nxc_arena *arena) {
  nxc_timeline *t = w->t;
  double *of_stage = nxc_arena_array(arena, t->n_stages, sizeof *of_stage), busy = 0;
  uint32_t *live = nxc_arena_array(arena, t->n_stages, sizeof *live);
  t->in_flight = nxc_arena_array(arena, t->n_stages, sizeof *t->in_flight);
  for (size_t i = 0; i < t->n_passes; i++) {
    const nxc_timed_pass *pass = &t->passes[i];
    busy += pass->end - pass->begin;
    if (pass->backward) live[pass->stage]--;
    else if (++live[pass->stage] > t->in_flight[pass->stage]) t->in_flight[pass->stage] = live[pass->stage];
  }
  for (uint32_t chunk = 0; chunk < t->n_chunks; chunk++) {
    double *stage = &of_stage[chunk % t->n_stages];
    *stage += length_of(w->p, z, chunk, false) + length_of(w->p, z, chunk, true);
    t->busiest = fmax(t->busiest, *stage);
  }
  t->bubble = 1 - busy / (t->length * t->n_stages);
}

/* Whole turns of the stages, so that the schedule is that of more micro-batches. */
static uint32_t shown_of(const nxc_training *training) {
  uint32_t stages = training->layout.pipeline, most = MOST_PASSES / training->layout.n_chunks;
  if (most < 2 * stages) most = 2 * stages;
  most -= most % stages;
  return training->batch.n_micro < most ? (uint32_t)training->batch.n_micro : most;
}

bool nxc_timeline_of(const nxc_training *training, const nxc_sizes *sizes, nxc_arena *arena,
                     nxc_timeline *t) {
  nxc_training shown = *training;
  *t = (nxc_timeline){.n_shown = shown_of(training)};
  shown.batch.n_micro = t->n_shown;
  nxc_pipeline *p = nxc_pipeline_new(arena, &shown);
  nxc_schedule(p, &shown);
  t->n_stages = p->n_stages;
  t->n_chunks = p->n_chunks;
  size_t n = (size_t)t->n_chunks * t->n_shown;
  walk w = {t,
            p,
            nxc_arena_array(arena, n, sizeof(double)),
            nxc_arena_array(arena, n, sizeof(double)),
            nxc_arena_array(arena, t->n_stages, sizeof(size_t)),
            nxc_arena_array(arena, t->n_stages, sizeof(size_t))};
  for (size_t i = 0; i < n; i++) w.forward_end[i] = w.backward_end[i] = -1;
  list_passes(&w, arena);
  if (!run_all(&w, sizes)) return false;
  sum_up(&w, sizes, arena);
  return true;
}
