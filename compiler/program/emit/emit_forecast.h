/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of the machine that it is for: nothing of it changes a number of the training. */
#ifndef NXC_EMIT_FORECAST_H
#define NXC_EMIT_FORECAST_H

#include "schema/plan.h"

/* Seconds without a sign of life after which a rank is given up, where the configuration does not say. A rank
 * gives several signs in each step, so this is long; but reading a file gives few. */
enum { NXC_DEADLINE_LEAST_S = 30, NXC_DEADLINE_STEPS = 20, NXC_DEADLINE_UNKNOWN_S = 300 };

/* Of a step that takes `step_s`. */
double nxc_deadline_of(double step_s);
/* Puts them into the run's names of a plan's file that nxc_emit has made, and makes the hashes right again.
 * 0: that one stays as it is. */
void nxc_emit_forecast(const uint8_t *bytes, double deadline_s, double peak_flops);

#endif
