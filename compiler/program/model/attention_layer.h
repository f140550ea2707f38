/* SPDX-License-Identifier: Apache-2.0 */
/* The attention of a layer: projections, norms of queries and keys, rotation, and the product of heads. */
#ifndef NXC_ATTENTION_LAYER_H
#define NXC_ATTENTION_LAYER_H

#include "compiler/program/model/decoder.h"

/* x and the result lie between tensor-parallel regions. */
nxc_id nxc_attention_layer(const nxc_decoder *decoder, nxc_id x);

#endif
