/* SPDX-License-Identifier: Apache-2.0 */
/* The type of each class of values, the factor that gradients in fp16 carry, and products in fp8. */
#ifndef NXC_RECORDS_PRECISION_H
#define NXC_RECORDS_PRECISION_H

#include "compiler/settings/settings.h"
#include "schema/fp8.h"
#include "schema/plan.h"

typedef struct nxc_loss_scale { /* as in nx_run */
  bool used, dynamic, renews, ends, plain;
  double initial, least;
  uint32_t window, hysteresis;
} nxc_loss_scale;

/* How operands of products are rounded to fp8. */
typedef struct nxc_fp8_recipe {
  const char *name;
  nx_fp8_scaling scaling;
  enum { NXC_FP8_REMEMBERED, NXC_FP8_MEASURED, NXC_FP8_BLOCKS } maxima;
  int64_t block;       /* elements, of those that a product sums over, that share a scale */
  int64_t weight_rows; /* of a weight, rows that share one; 1, or as many as a block has elements */
} nxc_fp8_recipe;

typedef struct nxc_fp8 {
  bool used;
  nxc_fp8_recipe recipe;
  nx_fp8_format gradients; /* their format; that of all else is e4m3 */
  int64_t history;         /* maxima that are remembered */
  bool newest;             /* the newest of them counts alone */
  int margin;
  bool input_gradients, weight_gradients; /* products that make them are in fp8 too */
  bool output;                            /* the output matrix as well */
  int64_t first_layers, last_layers;      /* that are not */
} nxc_fp8;

typedef struct nxc_precision {
  nx_dtype param, activation, residual, partial, grad;
  nx_dtype state, second_moment; /* of what an optimizer keeps, and of what is called moment2 */
  bool master; /* fp32 copies of the parameters */
  bool stochastic; /* updates round to bf16 stochastically */
  nxc_loss_scale loss_scale;
  nxc_fp8 fp8;
} nxc_precision;

nxc_precision nxc_precision_read(const nxc_settings *settings);

#endif
