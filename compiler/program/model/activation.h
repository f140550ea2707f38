/* SPDX-License-Identifier: Apache-2.0 */
/* The operator between the products of a feed-forward network, by its row in the table of activations. */
#ifndef NXC_ACTIVATION_H
#define NXC_ACTIVATION_H

#include "compiler/program/graph/graph.h"
#include "compiler/program/records/model.h"

/* in_turn: gate and up stand in turn in x, else one behind the other. */
nxc_id nxc_activation_append(nxc_graph *graph, const nxc_activation *activation, bool in_turn,
                             const char *name, nxc_id x);

#endif
