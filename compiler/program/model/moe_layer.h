/* SPDX-License-Identifier: Apache-2.0 */
/* The feed-forward part of a layer that is a mixture of experts.
 *
 * x, as it is between tensor-parallel regions, is routed where it lies; tokens are gathered over the ranks
 * that share an expert's matrices, sent to their experts, multiplied, sent back, weighted and summed: x -
 * route - gather over expert_tensor - permute - all_to_all - products - all_to_all - combine - scatter or,
 * where ranks gather all tokens instead of exchanging them, without the all_to_alls and with gather and
 * scatter over expert_tensor and expert. What every token goes through (shared experts) is not here. */
#ifndef NXC_MOE_LAYER_H
#define NXC_MOE_LAYER_H

#include "compiler/program/model/decoder.h"

/* The output of the layer's mixture, placed as x is; the router reads `routed`, which may be x. */
nxc_id nxc_moe_layer(const nxc_decoder *decoder, nxc_id x, nxc_id routed);

#endif
