/* SPDX-License-Identifier: Apache-2.0 */
/* Named numbers of a step, on their way to a file of curves (events_file.h, wandb_file.h). */
#ifndef NXR_POINTS_H
#define NXR_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NXR_MOST_POINTS = 64, NXR_TAG_BYTES = 96, NXR_NUMBER_BYTES = 40 };

typedef struct nxr_points {
  uint32_t n;
  char tags[NXR_MOST_POINTS][NXR_TAG_BYTES];
  double values[NXR_MOST_POINTS];
} nxr_points;

/* Its tag is PART/NAME; what is beyond the most is left out. */
void nxr_points_add(nxr_points *points, const char *part, const char *name, double value);

/* The shortest of the usual forms that is read back exactly; NaN and infinity as Python's JSON has them. */
void nxr_number_print(char text[NXR_NUMBER_BYTES], double value);
/* Seconds since 1970. */
double nxr_wall_clock_s(void);

#endif
