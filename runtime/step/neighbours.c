/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/step/neighbours.h"

#include <stdlib.h>
#include <string.h>

/* One for each boundary and direction; the sending end is number 0. */
typedef struct channel {
  void *ends[2][NX_MAX_TRANSFERS]; /* the last ones, by start */
  uint64_t n_started[2];
} channel;

struct nxr_neighbours {
  const nx_plan *plan;
  const nxk_backend *backend;
  nxk_device *device;
  channel *channels; /* [boundaries][directions] */
  void *room;        /* of the host, where a copy goes through it */
};

bool nxr_neighbours_are(const nx_plan *plan, uint32_t chunk, nx_port port) {
  if (plan->chunks[chunk].ports[port] == NX_NONE) return false;
  return plan->chunks[nx_port_peer(chunk, port)].stage == plan->chunks[chunk].stage;
}

static uint64_t port_bytes(const nx_plan *plan, uint32_t chunk, nx_port port) {
  return plan->values[plan->chunks[chunk].ports[port]].bytes;
}

bool nxr_neighbours_open(const nx_plan *plan, uint32_t stage, const nxk_backend *backend, nxk_device *device,
                         nxr_neighbours **out, nxr_fault *fault) {
  uint64_t most = 0;
  *out = NULL;
  for (uint32_t chunk = 0; chunk < plan->n[NX_SECTION_CHUNKS]; chunk++)
    for (nx_port port = 0; plan->chunks[chunk].stage == stage && port < NX_N_PORTS; port++)
      if (nxr_neighbours_are(plan, chunk, port) && port_bytes(plan, chunk, port) > most)
        most = port_bytes(plan, chunk, port);
  if (most == 0) return true;
  nxr_neighbours *n = *out = calloc(1, sizeof *n);
  if (n) {
    *n = (nxr_neighbours){.plan = plan, .backend = backend, .device = device};
    n->channels = calloc(2 * (size_t)plan->n[NX_SECTION_CHUNKS], sizeof *n->channels);
    if (!backend->host_addressable) n->room = malloc(most);
  }
  return (n && n->channels && (backend->host_addressable || n->room)) ||
         nxr_fault_set(fault, "out of memory");
}

void nxr_neighbours_close(nxr_neighbours *n) {
  if (!n) return;
  free(n->channels);
  free(n->room);
  free(n);
}

static void copy(const nxr_neighbours *n, void *to, const void *from, uint64_t n_bytes) {
  if (n->backend->host_addressable) {
    memcpy(to, from, n_bytes);
    return;
  }
  n->backend->copy_out(n->device, n->room, from, n_bytes);
  n->backend->copy_in(n->device, to, n->room, n_bytes);
}

void nxr_neighbours_start(nxr_neighbours *n, uint32_t chunk, nx_port port, void *bytes) {
  bool back = port == NX_PORT_OUTPUT_GRADIENT || port == NX_PORT_INPUT_GRADIENT;
  bool towards_start = port == NX_PORT_INPUT || port == NX_PORT_INPUT_GRADIENT;
  bool receives = port == NX_PORT_INPUT || port == NX_PORT_OUTPUT_GRADIENT;
  channel *of = &n->channels[2 * (towards_start ? chunk - 1 : chunk) + back];
  uint64_t number = of->n_started[receives]++, at = number % NX_MAX_TRANSFERS;
  of->ends[receives][at] = bytes;
  if (of->n_started[!receives] > number)
    copy(n, of->ends[1][at], of->ends[0][at], port_bytes(n->plan, chunk, port));
}
