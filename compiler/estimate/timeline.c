/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/timeline.h"

#include <math.h>

enum { MOST_PASSES = 3000 };

/* ---- how long a pass is ---- */

/* The output layer, in layers of the model: by the parameters that a token goes through. */
static double output_in_layers(const nxc_sizes *z) {
  double attention = 2 * z->hidden * (z->heads + z->kv_heads) * z->head_dim;
  double width = z->mixtures > 0 ? z->top_k * z->expert_ffn + z->shared_ffn : z->ffn;
  return z->outputs * z->hidden / fmax(1, attention + (2 + z->gates) * z->hidden * width);
}

/* Of the backward pass each part has as many products as the forward one. */
static nxc_pass_lengths length_of(const nxc_training *t, const nxc_sizes *z, uint32_t chunk) {
  double forward =
      (double)(nxc_training_layers_before(t, chunk + 1) - nxc_training_layers_before(t, chunk));
  if (chunk + 1 == t->layout.n_chunks) forward += output_in_layers(z);
  double inputs = forward * (z->recomputes_all ? 2 : 1);
  return (nxc_pass_lengths){{[NXC_ACTION_FORWARD] = forward,
                             [NXC_ACTION_BACKWARD] = inputs + forward,
                             [NXC_ACTION_INPUTS] = inputs,
                             [NXC_ACTION_WEIGHTS] = forward}};
}

/* ---- all ---- */

static void count(nxc_timeline *t, const nxc_played *played, nxc_arena *arena) {
  uint32_t *live = nxc_arena_array(arena, t->n_stages, sizeof *live);
  double busy = 0;
  t->in_flight = nxc_arena_array(arena, t->n_stages, sizeof *t->in_flight);
  for (size_t i = 0; i < t->n_passes; i++) {
    const nxc_timed_pass *pass = &played->passes[i];
    busy += pass->end - pass->begin;
    if (pass->kind == NXC_ACTION_FORWARD) live[pass->stage]++;
    if (pass->kind == NXC_ACTION_BACKWARD || pass->kind == NXC_ACTION_WEIGHTS) live[pass->stage]--;
    if (live[pass->stage] > t->in_flight[pass->stage]) t->in_flight[pass->stage] = live[pass->stage];
  }
  t->bubble = 1 - busy / (t->length * t->n_stages);
}

static double longest(const nxc_layout *layout, const nxc_pass_lengths *lengths, nxc_arena *arena) {
  double *of_stage = nxc_arena_array(arena, layout->pipeline, sizeof *of_stage), most = 0;
  for (uint32_t chunk = 0; chunk < layout->n_chunks; chunk++) {
    double *stage = &of_stage[nxc_layout_stage_of(layout, chunk)];
    *stage += lengths[chunk].of[NXC_ACTION_FORWARD] + lengths[chunk].of[NXC_ACTION_BACKWARD];
    most = fmax(most, *stage);
  }
  return most;
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
  nxc_layout layout = training->layout;
  nxc_played played;
  layout.group = nxc_layout_turn(&training->layout, (uint32_t)training->batch.n_micro);
  *t = (nxc_timeline){
      .n_shown = shown_of(training), .n_stages = layout.pipeline, .n_chunks = layout.n_chunks};
  nxc_pass_lengths *lengths = nxc_arena_array(arena, layout.n_chunks, sizeof *lengths);
  for (uint32_t chunk = 0; chunk < layout.n_chunks; chunk++)
    lengths[chunk] = length_of(training, sizes, chunk);
  if (!nxc_play(arena, &layout, t->n_shown, lengths, &played)) return false;
  t->passes = played.passes, t->n_passes = played.n_passes, t->length = played.length;
  count(t, &played, arena);
  t->busiest = longest(&layout, lengths, arena);
  return true;
}
