/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate of a training, step by step, as text and as a picture. */
#ifndef NXC_PLAN_RATE_H
#define NXC_PLAN_RATE_H

#include "compiler/settings/settings.h"

#include <stdbool.h>

/* Prints a line for each of some steps, among them the first, the last and those at which the shape changes;
 * draws the curve where `svg` (NULL: nowhere) says. Of a model that is not known, too. False, with why on
 * stderr, where the rate is not known or the picture could not be written. */
bool nxc_rate_show(nxc_arena *arena, const nxc_settings *settings, bool prints, const char *svg);

#endif
