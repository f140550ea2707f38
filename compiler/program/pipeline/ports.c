/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/pipeline/ports.h"

static const char *const names[NX_N_PORTS] = {"chunk.input", "chunk.output", "chunk.output.grad",
                                              "chunk.input.grad"};

typedef struct parts {
  nxc_id residuals, counts;
} parts;

/* One value, of which both are views. */
static parts make(nxc_graph *graph, nx_port port, const nxc_shape *residuals) {
  const nxc_shape *counts = graph->port_counts;
  const int64_t element = nx_dtype_bits(residuals->dtype) / 8;
  const uint64_t offset = (nxc_shape_bytes(residuals) + NX_VALUE_ALIGNMENT - 1) / NX_VALUE_ALIGNMENT *
                          NX_VALUE_ALIGNMENT;
  const int64_t n_elements = ((int64_t)(offset + nxc_shape_bytes(counts)) + element - 1) / element;
  nxc_shape both = nxc_shape_of(residuals->dtype, 1, &n_elements);
  graph->ports[port] = nxc_value_new(graph, names[port], NXC_ROLE_ACTIVATION, &both);
  return (parts){nxc_view_new(graph, nxc_arena_printf(graph->arena, "%s.residuals", names[port]),
                              graph->ports[port], 0, residuals),
                 nxc_view_new(graph, nxc_arena_printf(graph->arena, "%s.counts", names[port]),
                              graph->ports[port], offset, counts)};
}

nxc_id nxc_port_receive(nxc_graph *graph, nx_port port, const nxc_shape *residuals) {
  if (graph->port_counts == NULL)
    return graph->ports[port] = nxc_value_new(graph, names[port], NXC_ROLE_ACTIVATION, residuals);
  const parts received = make(graph, port, residuals);
  graph->mixture_counts = received.counts;
  return received.residuals;
}

static void copy(nxc_graph *graph, const char *name, nxc_id x, nxc_id to) {
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_cast, .name = name, .in = {x}, .out = {to}});
}

void nxc_port_send(nxc_graph *graph, nx_port port, nxc_id residuals) {
  if (graph->port_counts == NULL) {
    graph->ports[port] = residuals;
    return;
  }
  const nxc_shape shape = graph->values[residuals].shape;
  const parts sent = make(graph, port, &shape);
  graph->origin = "pipeline";
  graph->layer = -1;
  copy(graph, "residuals_sent", residuals, sent.residuals);
  if (graph->mixture_counts) copy(graph, "counts_sent", graph->mixture_counts, sent.counts);
  else /* no layer so far has experts */
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_fill, .out = {sent.counts}, .attrs = {nxc_real(0)}});
}
