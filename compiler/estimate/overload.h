/* SPDX-License-Identifier: Apache-2.0 */
/* How many rows the rank has whose experts get most, for each one of balanced experts. */
#ifndef NXC_OVERLOAD_H
#define NXC_OVERLOAD_H

#include "compiler/estimate/sizes.h"

/* Of `z` the experts' part, which layout, model and batch have filled. */
void nxc_overload_read(const nxc_settings *settings, nxc_sizes *z);

#endif
