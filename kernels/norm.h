/* SPDX-License-Identifier: Apache-2.0 */
/* What norms of every backend divide by. */
#ifndef NXK_NORM_H
#define NXK_NORM_H

#include <float.h>
#include <math.h>

/* 1 / sqrt(variance + epsilon). Numbers whose squares' sum is beyond fp32 have run away; 1 / infinity would
 * make zeros of them, which look like an untrained model: they are no numbers instead. */
static inline double nxk_rstd(double sum_of_squares, double variance, double epsilon) {
  return sum_of_squares > (double)FLT_MAX ? (double)NAN : 1 / sqrt(variance + epsilon);
}

#endif
