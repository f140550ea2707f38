/* SPDX-License-Identifier: Apache-2.0 */
/* Which experts the tokens of a mixture go to, with which weights; and what the router adds to the loss, for
 * which it knows the loads of a micro-batch, of a step, or of all layers. */
#ifndef NXC_MOE_ROUTE_H
#define NXC_MOE_ROUTE_H

#include "compiler/program/model/decoder.h"

/* Of the layer that the decoder is at; x as it is between tensor-parallel regions. */
void nxc_moe_route(const nxc_decoder *d, nxc_id x, nxc_id *experts, nxc_id *weights);
/* Of the counts that chunks exchange, where the layers of several share a load-balancing loss; else NULL. */
const nxc_shape *nxc_moe_port_counts(nxc_graph *graph, const nxc_training *training);
/* After the last layer: what a load-balancing loss over all layers reads. */
void nxc_moe_load_of_model(nxc_graph *graph, const nxc_training *training);
/* In the step that is built: corrections that follow quantiles, by what its passes have noted. */
void nxc_moe_settle(nxc_graph *graph, const nxc_training *training);

#endif
