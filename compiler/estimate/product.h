/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds of matrix products on a device.
 *
 * A product [m, k] x [k, n] is cut into tiles of the result; the device's units work on as many tiles at a
 * time, so the last round is often part empty, and a short sum does not fill the pipeline. It takes at least
 * what moving its operands takes. The share of the peak that a large product reaches, the tile, and the length
 * of a sum that reaches half of it stand in the machine's file with their sources. */
#ifndef NXC_PRODUCT_H
#define NXC_PRODUCT_H

#include "compiler/program/forecast/machine.h"

double nxc_product_s(const nxc_device *device, bool fp8, double m, double n, double k);
/* What memory bounds. */
double nxc_moved_s(const nxc_device *device, double bytes);

#endif
