/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/activation.h"

nxc_id nxc_activation_append(nxc_graph *graph, const nxc_activation *activation, bool in_turn,
                             const char *name, nxc_id x) {
  nxc_op_request request = {.op = NX_OP_activation,
                            .name = name,
                            .in = {x},
                            .attrs = {[NX_activation_function] = nxc_integer(activation->function)}};
  if (activation->gated) {
    request.op = NX_OP_gated;
    request.attrs[NX_gated_limit] = nxc_real(activation->limit);
    request.attrs[NX_gated_offset] = nxc_real(activation->offset);
    request.attrs[NX_gated_interleaved] = nxc_integer(in_turn);
  }
  return nxc_append(graph, &request);
}
