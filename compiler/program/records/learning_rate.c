/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/learning_rate.h"

#include "compiler/program/records/read.h"

#include <string.h>

enum { RISE_ASKED, RISE_ZERO, RISE_FIRST };
enum { DECAY, START, TRAINING, WARMUP, SAMPLES, RISE, PERIOD, PERIODS, CYCLE, STEPS, REDUCTIONS };
enum { LEAST, ZERO, FACTOR, HALF, CYCLES };
enum { STOPS, GOES };

typedef struct row {
  const char *name;
  int rise, kind, clock, target, end;
  double exponent;
} row;

static const row rows[] = {
#define SCHEDULE(name, rise, kind, clock, target, end, exponent, meaning)                                    \
  {#name, RISE_##rise, NX_SEGMENT_##kind, clock, target, end, exponent},
#include "schema/schedules.def"
};

/* What settings say. Steps may have fractions where others' schedules count samples or shares. */
typedef struct schedule {
  const row *row;
  double peak, least, initial;
  double warmup, hold, end; /* the decay is over `end` steps after the first */
  double period, fall, factor, power; /* fall: steps of a cycle behind its period */
  double unit; /* see nxc_learning_rate_unit; all steps here are so many */
  double sample; /* what of a step one sequence is */
  bool first_learns, second_again, logs; /* how it rises: schedule.rise */
} schedule;

int64_t nxc_learning_rate_unit(const nxc_settings *s) {
  size_t n;
  nxc_list(s, NX_SETTING_BATCH_GROWTH, &n);
  return n > 0 && nxc_is(s, NX_SETTING_SCHEDULE_CLOCK, "samples") ? nxc_int(s, NX_SETTING_BATCH_GLOBAL) : 1;
}

static schedule read_schedule(const nxc_settings *s, double peak, double least) {
  double unit = (double)nxc_learning_rate_unit(s),
         steps = nxc_number_or(s, NX_SETTING_SCHEDULE_WARMUP_STEPS, 0);
  double max_steps = (double)nxc_int_or(s, NX_SETTING_SCHEDULE_MAX_STEPS, 0);
  schedule of = {.row = rows, .peak = peak, .least = least, .warmup = steps * unit, .unit = unit,
                 .initial = nxc_number(s, NX_SETTING_SCHEDULE_INITIAL_LR),
                 .hold = nxc_number_or(s, NX_SETTING_SCHEDULE_HOLD_STEPS, 0) * unit,
                 .end = (max_steps - nxc_number_or(s, NX_SETTING_SCHEDULE_CONSTANT_STEPS, 0)) * unit,
                 .factor = nxc_number(s, NX_SETTING_SCHEDULE_FACTOR),
                 .power = nxc_number(s, NX_SETTING_SCHEDULE_POWER),
                 .second_again = nxc_is(s, NX_SETTING_SCHEDULE_RISE, "second_step"),
                 .logs = nxc_is(s, NX_SETTING_SCHEDULE_RISE, "logarithm")};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (nxc_is(s, NX_SETTING_SCHEDULE_NAME, rows[i].name)) of.row = &rows[i];
  of.first_learns = of.row->rise == RISE_FIRST ||
                    (of.row->rise == RISE_ASKED && nxc_is(s, NX_SETTING_SCHEDULE_RISE, "first_step"));
  of.sample = unit / (double)nxc_int_or(s, NX_SETTING_BATCH_GLOBAL, 1);
  if (nxc_has(s, NX_SETTING_SCHEDULE_WIDTH))
    of.peak /= sqrt(nxc_number(s, NX_SETTING_SCHEDULE_WIDTH) * fmax(steps, 1));
  of.period = nxc_number_or(s, NX_SETTING_SCHEDULE_PERIOD, (of.end - of.warmup - of.hold) / unit) * unit;
  of.fall = nxc_number_or(s, NX_SETTING_SCHEDULE_FALL_STEPS, of.period / unit) * unit;
  if (of.row->clock == STEPS) of.peak = 1 / sqrt(fmax(of.hold, 1));
  if (of.logs) of.warmup = fmax(of.warmup, 2 * unit);
  return of;
}

static void add(nxc_learning_rate *rate, nx_segment segment) {
  if (segment.every < 1) segment.every = 1;
  if (segment.span <= 0) segment.span = 1;
  rate->segments[rate->n_segments++] = segment;
}

static void add_constant(nxc_learning_rate *rate, int64_t first, double value) {
  add(rate, (nx_segment){.kind = NX_SEGMENT_CONSTANT, .first = first, .origin = (double)first, .from = value,
                         .to = value});
}

static int64_t step_behind(double steps) {
  return (int64_t)floor(steps) + 1;
}

/* Where the rise is a logarithm all is a step later: the first has nothing, and the second its share of 1. */
static double later_by(const schedule *of) {
  return of->logs ? of->unit : 0;
}

/* Where the first step learns already, it is as if the warm-up had begun a step before it. Returns the first
 * step behind the warm-up. */
static int64_t add_rise(nxc_learning_rate *rate, const schedule *of) {
  double origin = of->first_learns ? -of->unit : 0, span = of->warmup - origin;
  double from = of->first_learns ? 0 : of->initial;
  if (of->warmup <= 0) return 0;
  if (of->logs) {
    add_constant(rate, 0, of->initial);
    add(rate, (nx_segment){.kind = NX_SEGMENT_LOGARITHM, .first = 1, .span = of->warmup, .from = of->initial,
                           .to = of->peak});
    return step_behind(of->warmup);
  }
  nx_segment rise = {.kind = NX_SEGMENT_LINEAR, .origin = origin, .span = span, .from = from, .to = of->peak};
  if (of->second_again) add_constant(rate, 0, from + (of->peak - from) * of->unit / span), rise.first = 1;
  if (step_behind(of->warmup) > rise.first) add(rate, rise);
  return step_behind(of->warmup);
}

static void set_clock(nx_segment *fall, const schedule *of) {
  double held = of->warmup + of->hold;
  fall->origin = held + later_by(of), fall->span = of->end - held;
  switch (of->row->clock) {
  case START: fall->origin = 0; break;
  case TRAINING: fall->origin = 0, fall->span = of->end; break;
  case WARMUP: fall->origin = of->hold, fall->span = fmax(of->warmup, of->unit); break;
  case SAMPLES: fall->origin = of->hold, fall->span = fmax(of->warmup, of->sample); break;
  case RISE:
    fall->origin = of->hold - of->first_learns * of->unit;
    fall->span = fmax(of->warmup + of->first_learns * of->unit, of->unit);
    break;
  case PERIOD: fall->span = of->period; break;
  case PERIODS: fall->span = of->period, fall->every = (int64_t)of->period; break;
  case CYCLE: fall->span = of->period + of->fall, fall->exponent = of->period / fall->span; break;
  case REDUCTIONS: fall->origin = 0, fall->span = 1; break;
  case STEPS: fall->origin = 0, fall->span = fmax(of->hold, 1); break;
  }
}

static void set_target(nx_segment *fall, const schedule *of) {
  fall->from = of->peak, fall->to = of->least;
  switch (of->row->target) {
  case HALF: /* from the minimum there is nowhere to fall, and the share of that is 0 / 0 */
    if (of->peak <= of->least) fall->kind = NX_SEGMENT_CONSTANT;
    fall->towards = 2 * of->least - of->peak;
    return;
  case ZERO: fall->to = 0, fall->least = of->least; return;
  case FACTOR:
    fall->to = of->peak * of->factor;
    fall->least = of->row->clock == REDUCTIONS ? fmin(of->least, of->peak) : of->least;
    return;
  case CYCLES: fall->from = of->least, fall->to = of->peak, fall->towards = of->factor; return;
  }
}

static void add_fall(nxc_learning_rate *rate, const schedule *of, int64_t first) {
  nx_segment fall = {.kind = of->row->kind,
                     .exponent = of->row->exponent > 0 ? of->row->exponent : of->power};
  set_clock(&fall, of);
  set_target(&fall, of);
  fall.first = first;
  bool inverse = fall.kind == NX_SEGMENT_INVERSE;
  double begins = inverse ? fall.origin + fall.span : fall.origin;
  if (first <= begins) {
    bool falls_at_once = inverse && first == 0 && of->hold <= 0; /* and is not below the minimum */
    if (begins > (double)first || inverse)
      add_constant(rate, first, falls_at_once ? fmax(of->peak, fall.least) : of->peak);
    fall.first = inverse ? step_behind(begins) : (int64_t)ceil(begins);
  }
  add(rate, fall);
}

/* The first ones have what the first has. */
static void delay(nxc_learning_rate *rate, int64_t steps) {
  double begin = nxc_learning_rate_at(rate, 0);
  if (rate->by_samples) rate->samples_late = steps;
  if (rate->by_samples) return;
  if (steps <= 0 || rate->n_segments == 0) return;
  for (size_t i = rate->n_segments++; i > 0; i--) {
    rate->segments[i] = rate->segments[i - 1];
    rate->segments[i].first += steps, rate->segments[i].origin += (double)steps;
  }
  rate->segments[0] =
      (nx_segment){.kind = NX_SEGMENT_CONSTANT, .every = 1, .span = 1, .from = begin, .to = begin};
}

nxc_learning_rate nxc_learning_rate_between(const nxc_settings *s, double peak, double least) {
  nxc_learning_rate rate = {.max_steps = nxc_int_or(s, NX_SETTING_SCHEDULE_MAX_STEPS, 0),
                            .by_samples = nxc_learning_rate_unit(s) > 1};
  const schedule of = read_schedule(s, peak, least);
  rate.follows_loss = of.row->clock == REDUCTIONS;
  int64_t first = add_rise(&rate, &of), behind = step_behind(of.end + later_by(&of));
  bool falls = of.row->kind != NX_SEGMENT_CONSTANT, room = of.end > of.warmup + fmax(of.hold, 0);
  bool holds = !room && of.row->end == STOPS && of.hold > 0 && (double)first <= of.end; /* to the end */
  int64_t over = nxc_is(s, NX_SETTING_SCHEDULE_RISE, "open") ? (int64_t)ceil(of.warmup) : first;
  if (!falls || holds) add_constant(&rate, first, of.peak);
  else if (room || of.row->end == GOES) add_fall(&rate, &of, first);
  if (falls && of.row->end == STOPS) add_constant(&rate, room || holds ? behind : over, least);
  delay(&rate, nxc_int_or(s, NX_SETTING_SCHEDULE_LATE_STEPS, 0));
  return rate;
}

nxc_learning_rate nxc_learning_rate_read(const nxc_settings *s) {
  return nxc_learning_rate_between(s, nxc_number_or(s, NX_SETTING_OPTIMIZER_LR, 0),
                                   nxc_number(s, NX_SETTING_SCHEDULE_MIN_LR));
}

double nxc_learning_rate_at(const nxc_learning_rate *rate, int64_t step) {
  size_t i = rate->n_segments;
  while (i > 1 && rate->segments[i - 1].first > step) i--;
  return rate->n_segments > 0 ? nx_segment_at(&rate->segments[i - 1], step) : 0;
}
