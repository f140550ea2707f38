/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention, whatever the form: a unit is a key head of a sequence. Where there are fewer
 * units than threads, several threads share one: each takes some of its query tiles, with its own dk and dv,
 * which are summed when all are through. */
#ifndef CPU_ATTENTION_BACKWARD_H
#define CPU_ATTENTION_BACKWARD_H

#include "kernels/cpu/attention_space.h"

typedef struct attention_part {
  int64_t unit, index, n_parts;
} attention_part;

typedef struct attention_work {
  int64_t thread, part, n_parts; /* n_parts > 1: one unit at most */
  cpu_span units;
} attention_work;

static attention_work attention_work_of(const attention_shape *s, int64_t thread, int64_t n_threads) {
  int64_t n_units = s->n_batch * s->n_kv, n_parts = n_threads / n_units;
  if (n_parts <= 1) return (attention_work){thread, 0, 1, cpu_share(n_units, 1, thread, n_threads)};
  int64_t unit = thread / n_parts;
  return (attention_work){thread, thread % n_parts, n_parts, {unit, unit < n_units ? unit + 1 : unit}};
}

/* The form's: a part of one key head's query tiles; its dk and dv stay in the thread's memory. */
static void backward_part(const attention_shape *s, const attention_args *a, attention_space *space,
                          attention_part part);
/* The same: n query tiles of a head, each `step` behind the one before. */
static void backward_tiles(const attention_shape *s, const attention_args *a, const attention_space *space,
                           int64_t unit, int64_t head, int64_t tile, int64_t step, int64_t n);
/* The same: rows of dk and dv, as sums of a unit, to the results. */
static void rows_finish(const attention_shape *s, const attention_args *a, const attention_space *space,
                        int64_t unit, cpu_span rows);

/* The part's tiles of a head. */
static void backward_head(const attention_shape *s, const attention_args *a, const attention_space *space,
                          attention_part part, int64_t head) {
  int64_t step = part.n_parts, first = ((part.index - head) % step + step) % step;
  for (int64_t tile = first; tile < s->n_tiles; tile += TOGETHER * step) {
    int64_t left = (s->n_tiles - tile + step - 1) / step;
    backward_tiles(s, a, space, part.unit, head, tile, step, left < TOGETHER ? left : TOGETHER);
  }
}

static void rows_add(float *sum, const float *more, cpu_span rows, int64_t width) {
#pragma omp simd
  for (int64_t i = rows.begin * width; i < rows.end * width; i++) sum[i] += more[i];
}

/* The part's share of the rows of dk and dv, summed over the parts in order. `others` begins the parts'
 * memory. */
static void backward_finish(const attention_shape *s, const attention_args *a, attention_part part,
                            char *others) {
  cpu_span rows = cpu_share(s->n_keys, 1, part.index, part.n_parts);
  attention_space first = space_at(s, others, 0);
  for (int64_t p = 1; p < part.n_parts; p++) {
    attention_space other = space_at(s, others, p);
    rows_add(first.dk, other.dk, rows, s->width);
    rows_add(first.dv, other.dv, rows, s->e_width);
  }
  rows_finish(s, a, &first, part.unit, rows);
}

static void attention_backward(const nxk_kernel *kernel, const attention_shape *s, const attention_args *a) {
  int64_t n_threads = kernel->device->n_threads;
  char *scratch = kernel->device->scratch;
#pragma omp parallel num_threads(n_threads)
  {
    attention_work work = attention_work_of(s, omp_get_thread_num(), n_threads);
    attention_space space = space_at(s, scratch, work.thread);
    share_begin(s, &space);
    for (int64_t unit = work.units.begin; unit < work.units.end; unit++) {
      attention_part part = {unit, work.part, work.n_parts};
      backward_part(s, a, &space, part);
      if (work.n_parts == 1) backward_finish(s, a, part, space_start(s, scratch, work.thread));
    }
    share_end();
#pragma omp barrier
    if (work.n_parts > 1 && work.units.begin < work.units.end)
      backward_finish(s, a, (attention_part){work.units.begin, work.part, work.n_parts},
                      space_start(s, scratch, work.thread - work.part));
  }
}

#endif
