/* SPDX-License-Identifier: Apache-2.0 */
/* What NxDT's launcher and its search for keys make of a text, beyond what its values say. */
#ifndef NXC_CONFIG_FRONT_NXDT_H
#define NXC_CONFIG_FRONT_NXDT_H

#include "compiler/config/binding/dialect.h"

extern const char *const nxc_nxdt_strict_sections[];

void nxc_nxdt_prepare(nxc_binding *binding);

#endif
