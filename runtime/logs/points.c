/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void nxr_points_add(nxr_points *points, const char *part, const char *name, double value) {
  if (points->n == NXR_MOST_POINTS) return;
  snprintf(points->tags[points->n], NXR_TAG_BYTES, "%.60s/%s", part, name);
  points->values[points->n++] = value;
}

void nxr_number_print(char text[NXR_NUMBER_BYTES], double value) {
  bool whole = fabs(value) < 1e15 && value == floor(value) && !(value == 0 && signbit(value));
  if (isnan(value)) snprintf(text, NXR_NUMBER_BYTES, "NaN");
  else if (isinf(value)) snprintf(text, NXR_NUMBER_BYTES, value > 0 ? "Infinity" : "-Infinity");
  else if (whole) snprintf(text, NXR_NUMBER_BYTES, "%.0f", value);
  for (int digits = 6; !whole && isfinite(value) && digits <= 17; digits++) {
    snprintf(text, NXR_NUMBER_BYTES, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
}

double nxr_wall_clock_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
