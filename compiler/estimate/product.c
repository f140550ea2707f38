/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/product.h"

#include <math.h>

double nxc_moved_s(const nxc_device *device, double bytes) {
  return bytes > 0 ? bytes / device->memory_bandwidth : 0;
}

/* The whole tile, half of it, a quarter: smaller ones fill the units better and reach less of the peak, since they
 * read their operands more often. */
static const struct {
  double rows, columns, speed;
} cuts[] = {{1, 1, 1}, {1, 0.5, 0.95}, {0.5, 0.5, 0.8}};

static double tiled_s(const nxc_device *device, double peak, double m, double n, double k) {
  double best = INFINITY;
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    double rows = device->tile_rows * cuts[i].rows, columns = device->tile_columns * cuts[i].columns;
    double rounds = ceil(ceil(m / rows) * ceil(n / columns) / device->units);
    double one_s = 2 * rows * columns * (k + device->depth) / (peak / device->units * device->efficiency * cuts[i].speed);
    best = fmin(best, rounds * one_s);
  }
  return best;
}

/* Rows that do not begin at multiples of 16 bytes are read element by element. */
static double aligned(double n, double k, double element_bytes) {
  return fmod(n * element_bytes, 16) == 0 && fmod(k * element_bytes, 16) == 0 ? 1 : 0.25;
}

double nxc_product_s(const nxc_device *device, bool fp8, double m, double n, double k) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  bool narrow = fp8 && device->peak_fp8 > 0;
  double element_bytes = narrow ? 1 : 2, moved = element_bytes * (m * k + n * k) + 2 * m * n;
  double peak = (narrow ? device->peak_fp8 : device->peak) * aligned(n, k, element_bytes);
  return fmax(tiled_s(device, peak, m, n, k), nxc_moved_s(device, moved));
}
