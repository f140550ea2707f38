/* SPDX-License-Identifier: Apache-2.0 */
/* The type of each class of values, and the factor that gradients in fp16 carry. */
#ifndef NXC_RECORDS_PRECISION_H
#define NXC_RECORDS_PRECISION_H

#include "compiler/settings/settings.h"
#include "schema/plan.h"

typedef struct nxc_loss_scale { /* as in nx_run */
  bool used, dynamic, renews, ends;
  double initial, least;
  uint32_t window, hysteresis;
} nxc_loss_scale;

typedef struct nxc_precision {
  nx_dtype param, activation, residual, partial, grad, state;
  bool master; /* fp32 copies of the parameters */
  bool stochastic; /* updates round to bf16 stochastically */
  nxc_loss_scale loss_scale;
} nxc_precision;

nxc_precision nxc_precision_read(const nxc_settings *settings);

#endif
