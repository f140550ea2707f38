/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate of a training, step by step, as text and as a picture. */
#ifndef NXC_PLAN_RATE_H
#define NXC_PLAN_RATE_H

#include "compiler/program/records/training.h"

#include <stdbool.h>
#include <stdio.h>

/* A line for each of some steps, among them the first, the last and those at which the shape changes. */
void nxc_rate_print(const nxc_training *training, FILE *out);
/* The curve as SVG; false where it could not be written. */
bool nxc_rate_draw(const nxc_training *training, FILE *out);

#endif
