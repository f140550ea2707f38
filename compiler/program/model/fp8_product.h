/* SPDX-License-Identifier: Apache-2.0 */
/* Where a matrix of the model multiplies in fp8. Inside this room alone. */
#ifndef NXC_FP8_PRODUCT_H
#define NXC_FP8_PRODUCT_H

#include "compiler/program/graph/fp8.h"
#include "compiler/program/records/training.h"

/* Puts rounded operands in the place of both where products of this layer are in fp8, which it tells; `part`:
 * the first of the matrix. The caller adds `product` when its y is known. */
bool nxc_fp8_operands(nxc_graph *graph, const nxc_training *training, nxc_part part, nxc_id *x,
                      nxc_id *weight, nxc_fp8_product *product);

#endif
