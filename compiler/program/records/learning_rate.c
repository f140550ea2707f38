/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/learning_rate.h"

#include "compiler/program/records/read.h"

#include <string.h>

typedef enum rise { RISE_ASKED, RISE_FROM_ZERO, RISE_LEARNING } rise; /* asked: as schedule.rise says */

/* What each named schedule is made of: a linear warm-up, then this. */
static const struct {
  const char *name;
  rise rise;
  nxc_segment_kind fall;
} rows[] = {
    {"constant", RISE_ASKED, NXC_SEGMENT_CONSTANT},
    {"linear", RISE_FROM_ZERO, NXC_SEGMENT_LINEAR},
    {"annealing", RISE_LEARNING, NXC_SEGMENT_LINEAR},
    {"cosine", RISE_ASKED, NXC_SEGMENT_COSINE},
};

static void add(nxc_learning_rate *rate, nxc_segment segment) {
  rate->segments[rate->n_segments++] = segment;
}

/* From zero: 0 at step 0, lr at step `warmup`, where the next segment begins. Learning: lr / (warmup + 1) at
 * step 0, and step `warmup` is the last of the warm-up. Returns the first step behind it. */
static int64_t add_rise(nxc_learning_rate *rate, bool from_zero, int64_t warmup, double lr) {
  if (warmup <= 0) return 0;
  nxc_segment segment = {
      NXC_SEGMENT_LINEAR, 0, from_zero ? 0 : -1, from_zero ? warmup : warmup + 1, 0, lr, 0};
  add(rate, segment);
  return from_zero ? warmup : warmup + 1;
}

/* It falls from the end of the warm-up to `end`; where nothing is left for that it is at its least at once.
 */
static void add_fall(nxc_learning_rate *rate, nxc_segment_kind kind, int64_t first, int64_t warmup,
                     int64_t end, double lr, double least) {
  nxc_segment segment = {kind, first, warmup, end - warmup, lr, least, 0};
  if (kind != NXC_SEGMENT_CONSTANT && end <= warmup)
    segment = (nxc_segment){.kind = NXC_SEGMENT_CONSTANT, .from = least, .to = least};
  if (segment.kind == NXC_SEGMENT_CONSTANT) {
    segment.first = segment.origin = first;
    segment.span = 1;
    segment.to = segment.from;
  }
  add(rate, segment);
}

nxc_learning_rate nxc_learning_rate_between(const nxc_settings *s, double lr, double least) {
  nxc_learning_rate rate = {.max_steps = nxc_int_or(s, NX_SETTING_SCHEDULE_MAX_STEPS, 0)};
  int64_t warmup = nxc_int(s, NX_SETTING_SCHEDULE_WARMUP_STEPS);
  int64_t end = rate.max_steps - nxc_int(s, NX_SETTING_SCHEDULE_CONSTANT_STEPS);
  bool asked = nxc_is(s, NX_SETTING_SCHEDULE_RISE, "zero");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!nxc_is(s, NX_SETTING_SCHEDULE_NAME, rows[i].name)) continue;
    bool from_zero = rows[i].rise == RISE_FROM_ZERO || (rows[i].rise == RISE_ASKED && asked);
    int64_t first = add_rise(&rate, from_zero, warmup, lr);
    add_fall(&rate, rows[i].fall, first, warmup, end, lr, least);
  }
  return rate;
}

nxc_learning_rate nxc_learning_rate_read(const nxc_settings *s) {
  return nxc_learning_rate_between(s, nxc_number_or(s, NX_SETTING_OPTIMIZER_LR, 0),
                                   nxc_number(s, NX_SETTING_SCHEDULE_MIN_LR));
}
