/* SPDX-License-Identifier: Apache-2.0 */
/* What neighbouring chunks exchange: the residual stream, or its gradient. Where the layers of all chunks
 * share a load-balancing loss the counts of their experts go beside it: those so far go forward, and those of
 * all layers come back, as each layer's backward pass needs them. A port is one value either way. */
#ifndef NXC_PORTS_H
#define NXC_PORTS_H

#include "compiler/program/graph/graph.h"

/* Makes what is received by the port; the counts, if there are any, are the graph's mixture_counts then.
 * Returns the residuals in it. */
nxc_id nxc_port_receive(nxc_graph *graph, nx_port port, const nxc_shape *residuals);
/* Sends the residuals, and beside them the graph's mixture_counts. */
void nxc_port_send(nxc_graph *graph, nx_port port, nxc_id residuals);

#endif
