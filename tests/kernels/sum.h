/* SPDX-License-Identifier: Apache-2.0 */
/* The sum that collectives make: every pair of types, one to five sources, y apart and on each of the
 * sources. */
#ifndef TESTS_KERNELS_SUM_H
#define TESTS_KERNELS_SUM_H

#include "kernels/backend.h"

#include <stdbool.h>

/* Says on standard error where bits differ. */
bool sum_test(const nxk_backend *backend);

#endif
