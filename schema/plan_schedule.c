/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_walk.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- meetings ---- */

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
    if (i != index && nx_group_has_stage(w->plan, group, i)) nx_walk_enqueue(w, i);
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

static bool run_stage(walk *w, uint32_t index) {
  stage_state *stage = &w->stages[index];
  for (; stage->next < stage->end; stage->next++) {
    const nx_item *item = &w->plan->items[stage->next];
    double since = stage->at;
    if (item->kind == NX_ITEM_WAIT && !nx_walk_may_complete(w, item)) return true;
    if (!has_met_all(w, item)) return true;
    if (!nx_walk_item(w, item)) return false;
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
    if (!nx_walk_is_chunk_done(w, chunk))
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
  for (uint32_t i = w->n_stages; i-- > 0;) nx_walk_enqueue(w, i);
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
  w.n_later = calloc(n_chunks, sizeof *w.n_later);
  w.cut = calloc(n_chunks, sizeof *w.cut);
  w.stepped = calloc(n_chunks, sizeof *w.stepped);
  uint32_t n_groups = plan->n[NX_SECTION_GROUPS];
  w.meetings = calloc(n_groups + 1, sizeof *w.meetings);
  w.n_come = calloc((size_t)n_groups * w.n_stages + 1, sizeof *w.n_come);
  bool enough = w.stages && w.queue && w.slots && w.ends && w.n_forward && w.n_backward && w.n_later &&
                w.cut && w.stepped && w.meetings && w.n_come;
  for (uint32_t group = 0; enough && group < n_groups; group++)
    w.meetings[group].n_come = &w.n_come[(size_t)group * w.n_stages];
  for (uint32_t chunk = 0; enough && chunk < n_chunks; chunk++)
    w.cut[chunk] = nx_chunk_is_cut(plan, &plan->chunks[chunk]);
  bool good = enough ? walk_all(&w) : nx_fault_set(fault, 0, "out of memory");
  free(w.meetings);
  free(w.n_come);
  free(w.stages);
  free(w.queue);
  free(w.slots);
  free(w.ends);
  free(w.n_forward);
  free(w.n_backward);
  free(w.n_later);
  free(w.cut);
  free(w.stepped);
  return good;
}
