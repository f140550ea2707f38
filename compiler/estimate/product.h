/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds of matrix products on a device.
 *
 * A product [m, k] x [k, n] is cut into tiles of the result; the device's units work on as many tiles at a
 * time, so the last round is often part empty, and a short sum does not fill the pipeline. It takes at least
 * what moving its operands takes; many small products in one kernel hide little of that, since each begins
 * with operands of its own (measured shapes of SimuMax: A100, 12 of them, and B200, 108). The share of the
 * peak that a large product reaches, the tile, and the length of a sum that reaches half of it stand in the
 * machine's file with their sources. */
#ifndef NXC_PRODUCT_H
#define NXC_PRODUCT_H

#include "compiler/machine/machine.h"

typedef struct nxc_product {
  double m, n, k;
  double count;     /* of such products in one kernel; each has its own matrices */
  double out_bytes; /* that an element of the result moves: 2, more where it is added to what is there */
  bool fp8;
  bool over_rows; /* sums go over rows of both operands, which are m and n long; else over columns */
} nxc_product;

double nxc_product_s(const nxc_device *device, const nxc_product *product);
/* What memory bounds. */
double nxc_moved_s(const nxc_device *device, double bytes);

#endif
