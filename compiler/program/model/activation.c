/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/activation.h"

nxc_id nxc_activation_append(nxc_graph *graph, const nxc_activation *activation, const char *name, nxc_id x) {
  return nxc_append(
      graph, &(nxc_op_request){.op = activation->gated ? NX_OP_gated : NX_OP_activation,
                               .name = name,
                               .in = {x},
                               .attrs = {[NX_activation_function] = nxc_integer(activation->function)}});
}
