/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/activation.h"

nxc_id nxc_activation_append(nxc_graph *graph, const nxc_activation *activation, const char *name, nxc_id x) {
  nxc_op_request request = {.op = activation->op, .name = name, .in = {x}};
  if (activation->op == NX_OP_gelu) request.attrs[NX_gelu_tanh] = nxc_integer(activation->tanh);
  return nxc_append(graph, &request);
}
