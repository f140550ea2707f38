/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/expression/expression_ramp.h"

#include <math.h>
#include <string.h>

enum { LEVELS_MAX = 1000000, SIZES_MAX = 65536 };

typedef struct ramp {
  double start, increment, over, batch, samples;
} ramp;

/* Steps while the batch grows by one increment each over / levels samples, and what they read. A step's batch
 * is that of the samples read before it, and the last step of the growth may read more than it grows over. */
static double growing_steps(const ramp *r, double n_levels, double *n_read) {
  double steps = 0, last = fmin(r->over, r->samples);
  *n_read = 0;
  for (double level = 0; level < n_levels && *n_read <= last; level++) {
    double size = r->start + level * r->increment, end = (level + 1) * r->over / n_levels;
    double n_steps = *n_read < end ? ceil((end - *n_read) / size) : 0;
    if (end > last) n_steps = fmin(n_steps, floor((last - *n_read) / size) + 1);
    steps += n_steps;
    *n_read += n_steps * size;
  }
  if (*n_read <= last) { /* exactly at the end of the growth */
    steps++;
    *n_read += r->batch;
  }
  return steps;
}

/* Numbers of both functions, as far as they go; false where they say no growth. */
static bool read_ramp(nxc_evaluation *e, const nxc_value *const *args, size_t n_args, ramp *r,
                      double *n_levels) {
  double numbers[5] = {0};
  for (size_t i = 0; i < n_args; i++) {
    if (args[i]->kind != NXC_INT || args[i]->digits != NULL || args[i]->integer < 1) {
      nxc_evaluation_fail(e, "a growing batch needs whole numbers above 0");
      return false;
    }
    numbers[i] = (double)args[i]->integer;
  }
  *r = (ramp){numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  *n_levels = (r->batch - r->start) / r->increment;
  bool whole = *n_levels >= 1 && *n_levels <= LEVELS_MAX && *n_levels == floor(*n_levels);
  if (!whole) nxc_evaluation_fail(e, "the batch does not grow to its full size in whole increments");
  return whole;
}

/* ramped_steps(start, increment, samples of the growth, batch, samples in all): Megatron's steps with
 * rampup-batch-size. What is left over at the end makes no step. */
const nxc_value *nxc_call_ramped_steps(nxc_evaluation *e, const nxc_value *const *args, size_t n_args) {
  ramp r;
  double n_levels, n_read;
  if (!read_ramp(e, args, n_args, &r, &n_levels)) return NULL;
  double steps = growing_steps(&r, n_levels, &n_read);
  if (r.samples > n_read) steps += floor((r.samples - n_read) / r.batch);
  nxc_value *value = nxc_arena_alloc(e->arena, sizeof *value);
  *value = (nxc_value){.kind = NXC_INT, .integer = (int64_t)steps};
  return value;
}

/* growth(start, increment, samples of the growth, batch): the same as a list of BATCH@SAMPLES. */
const nxc_value *nxc_call_growth(nxc_evaluation *e, const nxc_value *const *args, size_t n_args) {
  ramp r;
  double n_levels;
  if (!read_ramp(e, args, n_args, &r, &n_levels)) return NULL;
  if (n_levels > SIZES_MAX) return nxc_evaluation_fail(e, "the batch has more sizes than a plan can hold");
  nxc_value *items = nxc_arena_array(e->arena, (size_t)n_levels + 1, sizeof *items);
  for (size_t i = 0; i <= (size_t)n_levels; i++) {
    const char *text = nxc_arena_printf(e->arena, "%.0f@%.0f", r.start + (double)i * r.increment,
                                        ceil((double)i * r.over / n_levels));
    items[i] = (nxc_value){.kind = NXC_STRING, .text = text, .n_bytes = strlen(text)};
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = (size_t)n_levels + 1};
  return list;
}
