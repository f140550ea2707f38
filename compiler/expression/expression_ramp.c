/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/expression/expression_ramp.h"

#include <math.h>

enum { LEVELS_MAX = 1000000 };

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

/* ramped_steps(start, increment, samples of the growth, batch, samples in all): Megatron's steps with
 * rampup-batch-size. What is left over at the end makes no step. */
const nxc_value *nxc_call_ramped_steps(nxc_evaluation *e, const nxc_value *const *args, size_t n_args) {
  double numbers[5];
  for (size_t i = 0; i < n_args; i++) {
    if (args[i]->kind != NXC_INT || args[i]->digits != NULL || args[i]->integer < 1)
      return nxc_evaluation_fail(e, "a growing batch needs whole numbers above 0");
    numbers[i] = (double)args[i]->integer;
  }
  const ramp r = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  double n_levels = (r.batch - r.start) / r.increment, n_read;
  if (n_levels < 1 || n_levels > LEVELS_MAX || n_levels != floor(n_levels))
    return nxc_evaluation_fail(e, "the batch does not grow to its full size in whole increments");
  double steps = growing_steps(&r, n_levels, &n_read);
  if (r.samples > n_read) steps += floor((r.samples - n_read) / r.batch);
  nxc_value *value = nxc_arena_alloc(e->arena, sizeof *value);
  *value = (nxc_value){.kind = NXC_INT, .integer = (int64_t)steps};
  return value;
}
