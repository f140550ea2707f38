/* SPDX-License-Identifier: Apache-2.0 */
/* The type of each class of values. */
#ifndef NXC_RECORDS_PRECISION_H
#define NXC_RECORDS_PRECISION_H

#include "compiler/settings/settings.h"
#include "schema/plan.h"

typedef struct nxc_precision {
  nx_dtype param, activation, residual, partial, grad, state;
  bool master; /* fp32 copies of the parameters */
} nxc_precision;

nxc_precision nxc_precision_read(const nxc_settings *settings);

#endif
