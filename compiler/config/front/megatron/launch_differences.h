/* SPDX-License-Identifier: Apache-2.0 */
/* What tells the programs apart that a script starts. */
#ifndef NXC_CONFIG_FRONT_LAUNCH_DIFFERENCES_H
#define NXC_CONFIG_FRONT_LAUNCH_DIFFERENCES_H

#include "compiler/config/front/shell/script.h"

/* Of each launch its options that not all of them have, as they are written: "--lr 1e-3 --seed 2, and 3
 * more". */
const char *const *nxc_launch_differences(nxc_arena *arena, const nxc_script *script);

#endif
