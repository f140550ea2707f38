/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a layer, with the casts that those in fp8 need. */
#ifndef NXC_LAYER_PRODUCTS_H
#define NXC_LAYER_PRODUCTS_H

#include "compiler/estimate/layer_time.h"
#include "compiler/estimate/product.h"

/* Bytes that an element of a weight's gradient moves. */
double nxc_gradient_bytes(const nxc_clock *clock);
/* The product that gives the gradient of a weight, and its sum. */
void nxc_add_weights(const nxc_clock *clock, nxc_passes *passes, const nxc_product *weight);
/* y[m, n] = x[m, k] w: forward, then the gradients of x and of w; `count` of them in one kernel. */
void nxc_add_product(const nxc_clock *clock, nxc_passes *passes, double m, double n, double k, double count);
void nxc_add_network(const nxc_clock *clock, nxc_passes *passes, double rows, double width, double count);
/* `rows` through each of `count` experts. */
void nxc_add_experts(const nxc_clock *clock, nxc_passes *passes, double rows, double width, double count);
/* Rows through adapters of so many weights, beside `adapted` frozen ones to whose results theirs go. */
void nxc_add_adapters(const nxc_clock *clock, nxc_passes *passes, double rows, double weights, double adapted,
                      double count);

#endif
