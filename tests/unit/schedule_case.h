/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a compiled plan, to be broken on purpose. */
#ifndef TESTS_UNIT_SCHEDULE_CASE_H
#define TESTS_UNIT_SCHEDULE_CASE_H

#include "tests/unit/program_case.h"

/* The items of a compiled plan, in room for more; `plan` is a view of them. */
typedef struct schedule {
  program_case compiled;
  nx_plan plan;
  nx_item *items;
  uint32_t n, from; /* items are looked for from there on, and belong to the last schedule */
  nx_schedule schedules[2];
  nx_fault fault;
} schedule;

static const char pipeline2[] = "mesh.world=2 mesh.pipeline=2 batch.micro=1 batch.global=4";
static const char interleaved2[] =
    "mesh.world=2 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4 batch.micro=1 batch.global=4";

static const char ahead5[] =
    "mesh.world=5 mesh.pipeline=5 model.layers=10 mesh.virtual_pipeline=2 batch.micro=1 "
    "batch.global=13 pipeline.receive_ahead=true";
static const char tied4[] =
    "mesh.world=8 mesh.pipeline=4 mesh.virtual_pipeline=2 model.layers=8 batch.micro=1 "
    "batch.global=8 model.tied_embeddings=true optimizer.zero_stage=1";

static const char zbv2[] =
    "mesh.world=2 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4 batch.micro=1 batch.global=4 "
    "pipeline.schedule=zbv";

static inline schedule begin(const char *changes) {
  schedule s = {.compiled = program_good(changes)};
  s.plan = s.compiled.out.plan;
  s.n = s.plan.n[NX_SECTION_ITEMS];
  s.items = calloc(2 * s.n, sizeof *s.items);
  assert_non_null(s.items);
  memcpy(s.items, s.plan.items, s.n * sizeof *s.items);
  memcpy(s.schedules, s.plan.schedules, s.plan.n[NX_SECTION_SCHEDULES] * sizeof *s.schedules);
  return s;
}

/* The schedule of its evaluation is what is changed. */
static inline schedule begin_evaluation(const char *changes) {
  char text[512];
  snprintf(text, sizeof text, "%s data.split=[90,10] evaluate.batches=1", changes);
  schedule s = begin(text);
  assert_int_equal(s.plan.n[NX_SECTION_SCHEDULES], 2);
  s.from = s.schedules[1].first_item;
  return s;
}

static inline bool is_proved(schedule *s) {
  s->plan.items = s->items;
  s->plan.n[NX_SECTION_ITEMS] = s->n;
  s->plan.schedules = s->schedules;
  s->schedules[s->plan.n[NX_SECTION_SCHEDULES] - 1].n_items = s->n - s->from;
  memset(&s->fault, 0, sizeof s->fault);
  return nx_plan_prove(&s->plan, &s->fault);
}

static inline void end(schedule *s) {
  free(s->items);
  program_end(&s->compiled);
}

/* Refused, with both texts in the fault. */
static inline void expect(schedule *s, const char *what, const char *where) {
  if (is_proved(s)) fail_msg("it was accepted, and should be refused: %s", what);
  if (!strstr(s->fault.text, what) || !strstr(s->fault.text, where))
    fail_msg("the fault lacks \"%s\" or \"%s\": %s", what, where, s->fault.text);
  end(s);
}

static inline uint32_t find_port(const schedule *s, nx_item_kind kind, nx_port port, uint32_t chunk,
                          uint32_t micro_batch) {
  for (uint32_t i = s->from; i < s->n; i++) {
    const nx_item *at = &s->items[i];
    if (at->kind == kind && at->port == port && at->chunk == chunk && at->micro_batch == micro_batch)
      return i;
  }
  fail_msg("the schedule lacks an item");
  return 0;
}

static inline uint32_t find(const schedule *s, nx_item_kind kind, uint32_t chunk, uint32_t micro_batch) {
  return find_port(s, kind, 0, chunk, micro_batch);
}

/* The step of a chunk that has the phase. */
static inline uint32_t find_step(const schedule *s, uint32_t chunk, uint8_t phase) {
  uint32_t at = s->from;
  while (at < s->n &&
         !(s->items[at].kind == NX_ITEM_STEP && s->items[at].chunk == chunk && s->items[at].when & phase))
    at++;
  assert_true(at < s->n);
  return at;
}

static inline void drop(schedule *s, uint32_t at) {
  memmove(s->items + at, s->items + at + 1, (s->n - at - 1) * sizeof *s->items);
  s->n--;
}

static inline void insert(schedule *s, uint32_t at, nx_item item) {
  memmove(s->items + at + 1, s->items + at, (s->n - at) * sizeof *s->items);
  s->items[at] = item;
  s->n++;
}

static inline void swap(schedule *s, uint32_t a, uint32_t b) {
  nx_item kept = s->items[a];
  s->items[a] = s->items[b];
  s->items[b] = kept;
}

static inline void move(schedule *s, uint32_t from, uint32_t to) {
  nx_item kept = s->items[from];
  drop(s, from);
  insert(s, to, kept);
}

/* As textbooks write it: a send and a receive return when they are complete. */
static inline void make_blocking(schedule *s) {
  schedule old = *s;
  s->items = calloc(2 * old.n, sizeof *s->items);
  assert_non_null(s->items);
  s->n = 0;
  for (uint32_t i = 0; i < old.n; i++) {
    nx_item item = old.items[i], other = item;
    bool received = item.port == NX_PORT_INPUT || item.port == NX_PORT_OUTPUT_GRADIENT;
    if (item.kind == NX_ITEM_RECV || (item.kind == NX_ITEM_WAIT && !received)) continue;
    other.kind = item.kind == NX_ITEM_SEND ? NX_ITEM_WAIT : NX_ITEM_RECV;
    if (item.kind == NX_ITEM_WAIT) s->items[s->n++] = other;
    s->items[s->n++] = item;
    if (item.kind == NX_ITEM_SEND) s->items[s->n++] = other;
  }
  free(old.items);
}

#endif
