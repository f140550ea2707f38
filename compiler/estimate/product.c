/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/product.h"

#include <math.h>

double nxc_moved_s(const nxc_device *device, double bytes) {
  return bytes > 0 ? bytes / device->memory_bandwidth : 0;
}

/* The whole tile, half of it, a quarter: smaller ones fill the units better and reach less of the peak, since
 * they read their operands more often. */
static const struct {
  double rows, columns, speed;
} cuts[] = {{1, 1, 1}, {1, 0.5, 0.95}, {0.5, 0.5, 0.8}};

/* To fill the pipeline takes as long in fp8, in which sums go twice as fast. */
static double tiled_s(const nxc_device *device, double reached, bool narrow, const nxc_product *p) {
  double best = INFINITY, depth = device->depth * (narrow ? 2 : 1);
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    double rows = device->tile_rows * cuts[i].rows, columns = device->tile_columns * cuts[i].columns;
    double rounds = ceil(p->count * ceil(p->m / rows) * ceil(p->n / columns) / device->units);
    double rate = reached / device->units * cuts[i].speed;
    best = fmin(best, rounds * 2 * rows * columns * (p->k + depth) / rate);
  }
  return best;
}

/* Rows that do not begin at multiples of 16 bytes are read element by element. */
static double aligned(const nxc_product *p, double element_bytes) {
  double other = p->over_rows ? p->m : p->k;
  return fmod(p->n * element_bytes, 16) == 0 && fmod(other * element_bytes, 16) == 0 ? 1 : 0.25;
}

/* Of the shorter of work and moves, what a kernel of many products does not hide beneath the longer. */
static const double unhidden = 0.7;

double nxc_product_s(const nxc_device *device, const nxc_product *p) {
  if (p->m <= 0 || p->n <= 0 || p->k <= 0 || p->count <= 0) return 0;
  bool narrow = p->fp8 && device->peak_fp8 > 0;
  double element_bytes = narrow ? 1 : 2;
  double bytes = element_bytes * (p->m * p->k + p->n * p->k) + p->out_bytes * p->m * p->n;
  double reached = narrow ? device->peak_fp8 * device->efficiency_fp8 : device->peak * device->efficiency;
  double work = tiled_s(device, reached * aligned(p, element_bytes), narrow, p),
         moves = nxc_moved_s(device, p->count * bytes);
  return fmax(work, moves) + (p->count > 1 ? unhidden * fmin(work, moves) : 0);
}
