/* SPDX-License-Identifier: Apache-2.0 */
/* Low-rank adapters beside products: y + scale B A dropout(x), each where t->lora.of has one.
 *
 * Nothing of it is said of meshes: A is divided as the product's inputs are and B as its outputs, so that the
 * gradient of the other one is summed over the same ranks as the product's. */
#ifndef NXC_ADAPTERS_H
#define NXC_ADAPTERS_H

#include "compiler/program/model/decoder.h"

/* y is the product of x with boxes one below the other, whose rows are divided over `atoms`. */
nxc_id nxc_adapters_of_columns(const nxc_decoder *decoder, nxc_id x, nxc_id y, const nxc_box *boxes,
                               uint32_t n_boxes, uint32_t atoms);
/* The product with a box whose columns are divided over tensor ranks: summands. */
nxc_id nxc_adapters_of_row(const nxc_decoder *decoder, nxc_id x, nxc_id y, const nxc_box *box);
/* y + scale z, where z stands beside its columns from `first` on. */
nxc_id nxc_adapter_append(nxc_graph *graph, const nxc_training *training, const char *name, nxc_id y,
                          nxc_id z, int64_t first);

#endif
