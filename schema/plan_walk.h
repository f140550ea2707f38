/* SPDX-License-Identifier: Apache-2.0 */
/* The walk runs a schedule's items of all stages together, each stage as far as it can. What can hold up
 * a stage: the wait for a transfer whose other end has not been started (nothing is buffered), and the
 * step, where it sums over stages: each such sum is a meeting, which the stages of its group come to in
 * turn. A stage that is held up is looked at again when what it waits for happens, so every item is
 * looked at a few times.
 *
 * Beside that each stage's list must make sense by itself: every micro-batch goes forward and back
 * once, in ascending order, in a slot that holds nothing else and whose transfers are complete; the step
 * comes when all that is done. An evaluation goes forward alone, and of the step has the sum of its
 * losses. */
#ifndef NX_PLAN_WALK_H
#define NX_PLAN_WALK_H

#include "schema/plan_check.h"

typedef enum transfer_state { NOT_STARTED, UNDER_WAY, COMPLETE } transfer_state;

typedef struct slot_state {
  bool used, forward, backward, later; /* the part of the backward pass that is cut off */
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
  uint32_t *n_forward, *n_backward, *n_later; /* [chunks] */
  bool *cut;                        /* [chunks] */
  uint8_t *stepped;      /* [chunks]: phases */
  uint32_t *queue, n_queued;
} walk;

/* Looks at the stage again. */
static inline void nx_walk_enqueue(walk *w, uint32_t stage) {
  if (w->stages[stage].queued) return;
  w->stages[stage].queued = true;
  w->queue[w->n_queued++] = stage;
}

/* ---- plan_walk.c ---- */

/* Whether the item, a wait, waits for nothing: the other end has been started too. */
bool nx_walk_may_complete(const walk *w, const nx_item *item);

/* Does the item. False: the fault says what is wrong with it. */
bool nx_walk_item(walk *w, const nx_item *item);

/* Whether all passes and transfers of a chunk are over. */
bool nx_walk_is_chunk_done(const walk *w, uint32_t chunk);

#endif
