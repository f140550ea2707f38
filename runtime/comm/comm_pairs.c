/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in pairs over the ranks that share a batch (nx_run.pair_atoms): of n summands those of the greatest
 * power of two below n, and the rest, each in pairs. Every addition is rounded to the type of the operands.
 */
#include "runtime/comm/comm_pairs.h"

#include <stdlib.h>

enum { RUN = 256, MOST_LEVELS = 20 };

bool nxr_pairs_open(const nx_plan *plan, uint32_t index, nxr_comm_group *group) {
  if (index >= plan->n[NX_SECTION_GROUPS]) return true;
  uint32_t atoms = plan->groups[index].atoms, paired = atoms & plan->run->pair_atoms;
  if (paired == 0) return true;
  group->n_paired = (uint32_t)nx_set_size(plan, paired);
  group->in_pairs = calloc(group->size, sizeof *group->in_pairs);
  if (group->in_pairs == NULL || group->size % group->n_paired != 0) return false;
  for (uint32_t i = 0; i < group->size; i++) {
    uint32_t rank = group->members[i], rest = i / group->n_paired;
    if (paired != atoms) rest = nx_set_coordinate(plan, rank, atoms & ~paired);
    uint32_t at = rest * group->n_paired + nx_set_coordinate(plan, rank, paired);
    if (at >= group->size) return false;
    group->in_pairs[at] = i;
  }
  return true;
}

static void load(const void *x, nx_dtype dtype, uint64_t first, uint32_t n, double *to) {
  if (dtype == NX_f64)
    for (uint32_t i = 0; i < n; i++) to[i] = ((const double *)x)[first + i];
  else
    for (uint32_t i = 0; i < n; i++) to[i] = ((const float *)x)[first + i];
}

static void add(double *to, const double *other, nx_dtype dtype, uint32_t n) {
  if (dtype == NX_f64)
    for (uint32_t i = 0; i < n; i++) to[i] += other[i];
  else
    for (uint32_t i = 0; i < n; i++) to[i] = (float)(to[i] + other[i]);
}

/* What the elements [first, first + n) of a collective are summed in. */
typedef struct run {
  const nxr_collective *collective;
  uint64_t first;
  uint32_t n;
  double levels[MOST_LEVELS][RUN];
} run;

/* Into levels[level], of the members from `at` on, in the order of their pairs; those above it are free. */
static void sum_pairs(run *r, uint32_t at, uint32_t count, uint32_t level) {
  const nxr_collective *of = r->collective;
  if (count == 1) {
    load(of->sources[of->group->in_pairs[at]], of->spec.x_dtype, r->first, r->n, r->levels[level]);
    return;
  }
  uint32_t left = 1;
  while (2 * left < count) left *= 2;
  sum_pairs(r, at, left, level);
  sum_pairs(r, at + left, count - left, level + 1);
  add(r->levels[level], r->levels[level + 1], of->spec.x_dtype, r->n);
}

void nxr_pairs_sum(const nxr_collective *collective, void *y, uint64_t n) {
  const nxr_comm_group *group = collective->group;
  run r = {.collective = collective};
  for (; r.first < n; r.first += RUN) {
    r.n = n - r.first < RUN ? (uint32_t)(n - r.first) : RUN;
    sum_pairs(&r, 0, group->n_paired, 0);
    for (uint32_t at = group->n_paired; at < group->size; at += group->n_paired) {
      sum_pairs(&r, at, group->n_paired, 1);
      add(r.levels[0], r.levels[1], collective->spec.x_dtype, r.n);
    }
    if (collective->spec.y_dtype == NX_f64)
      for (uint32_t i = 0; i < r.n; i++) ((double *)y)[r.first + i] = r.levels[0][i];
    else
      for (uint32_t i = 0; i < r.n; i++) ((float *)y)[r.first + i] = (float)r.levels[0][i];
  }
}

bool nxr_pairs_can_sum(const nxr_collective_spec *spec) {
  return spec->x_dtype == spec->y_dtype && (spec->x_dtype == NX_f32 || spec->x_dtype == NX_f64);
}
