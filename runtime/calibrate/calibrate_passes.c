/* SPDX-License-Identifier: Apache-2.0 */
/* What several passes of measurements say together. */
#include "runtime/calibrate/calibrate.h"

#include <stddef.h>

enum { MOST_PASSES = 8 };

/* Of the numbers that lie so many bytes behind the beginning of each pass. */
static double median_at(const nxr_measured *passes, int n, size_t offset) {
  double sorted[MOST_PASSES] = {0};
  for (int i = 0; i < n; i++) {
    double value = *(const double *)((const char *)&passes[i] + offset);
    int at = i;
    for (; at > 0 && sorted[at - 1] > value; at--) sorted[at] = sorted[at - 1];
    sorted[at] = value;
  }
  return sorted[n / 2];
}

static void take_median(nxr_measured *m, const nxr_measured *passes, int n, double *number) {
  *number = median_at(passes, n, (size_t)((char *)number - (char *)m));
}

/* Points that every pass has: one that found a product slow has not tried larger ones. */
static int points_of_all(const nxr_measured *passes, int n, size_t offset) {
  int least = NXR_CALIBRATE_POINTS;
  for (int i = 0; i < n; i++) {
    const nxr_curve *curve = (const nxr_curve *)((const char *)&passes[i] + offset);
    if (curve->n < least) least = curve->n;
  }
  return least;
}

static void take_curve(nxr_measured *m, const nxr_measured *passes, int n, nxr_curve *curve) {
  curve->n = points_of_all(passes, n, (size_t)((char *)curve - (char *)m));
  for (int i = 0; i < curve->n; i++) take_median(m, passes, n, &curve->rate[i]);
}

static void take_link(nxr_measured *m, const nxr_measured *passes, int n, nxr_measured_link *link) {
  take_median(m, passes, n, &link->latency_s);
  take_median(m, passes, n, &link->taken);
  take_curve(m, passes, n, &link->bandwidth);
}

static void take_rates(nxr_measured *m, const nxr_measured *passes, int n, nxr_rates *rates) {
  for (int i = 0; i < rates->n; i++) take_curve(m, passes, n, &rates->of[i].curve);
}

/* A large product can be computed as many small ones, so it is no slower: where it seems to be, the machine
 * was disturbed. */
static void take_ascending(nxr_curve *curve) {
  for (int i = 1; i < curve->n; i++)
    if (curve->rate[i] < curve->rate[i - 1]) curve->rate[i] = curve->rate[i - 1];
}

nxr_measured nxr_measured_median(const nxr_measured *passes, int n) {
  nxr_measured m = passes[0];
  take_median(&m, passes, n, &m.operator_s);
  for (int type = 0; type < NXR_CALIBRATE_TYPES; type++) {
    take_curve(&m, passes, n, &m.products[type]);
    take_ascending(&m.products[type]);
  }
  for (int type = 0; type < NXR_CALIBRATE_TYPES; type++) take_rates(&m, passes, n, &m.operators[type]);
  take_curve(&m, passes, n, &m.memory);
  take_link(&m, passes, n, &m.inside);
  take_link(&m, passes, n, &m.between);
  return m;
}

static double swing_of(const nxr_measured *passes, int n, int type, int point) {
  double least = passes[0].products[type].rate[point], most = least;
  for (int i = 1; i < n; i++) {
    double rate = passes[i].products[type].rate[point];
    least = rate < least ? rate : least;
    most = rate > most ? rate : most;
  }
  return most / least;
}

double nxr_measured_swing(const nxr_measured *passes, int n) {
  double most = 1;
  for (int type = 0; type < NXR_CALIBRATE_TYPES; type++)
    for (int point = 0; point < points_of_all(passes, n, offsetof(nxr_measured, products[type])); point++) {
      double swing = swing_of(passes, n, type, point);
      most = swing > most ? swing : most;
    }
  return most;
}
