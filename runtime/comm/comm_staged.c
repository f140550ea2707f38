/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over a device's memory: their operands are copied to the host and back, beside the kernels.
 *
 * What is copied out waits for the kernels that were enqueued before the start, and the transport for the
 * copy. What comes is copied in when the transport is done; only the kernels behind the collective's wait
 * wait for that, the host does not. */
#include "runtime/comm/comm_transport.h"

static bool is_transfer(const nxr_collective *collective) {
  return (int)collective->spec.op == NXR_TRANSFER;
}

/* Of a transfer the first member has the one end, the second the other. */
static bool sends(const nxr_collective *collective) {
  return !is_transfer(collective) || collective->group->position == 0;
}

static bool receives(const nxr_collective *collective) {
  return !is_transfer(collective) || collective->group->position == 1;
}

static void *host_memory(nxr_comm *comm, uint64_t n_bytes, nxk_fault *why) {
  comm->copied_bytes += n_bytes;
  return comm->backend->host_open(comm->device, n_bytes, why);
}

bool nxr_staged_open(nxr_comm *comm, nxr_collective *collective, nxr_fault *fault) {
  nxr_collective_spec *spec = &collective->spec;
  nxr_staging *staging = &collective->staging;
  nxk_fault why = {""};
  if (comm->backend->host_addressable || spec->on_host) return true;
  *staging = (nxr_staging){.used = true, .x = spec->x, .y = spec->y};
  spec->on_host = true;
  bool in_place = staging->x == staging->y && nxr_comm_x_bytes(collective) == nxr_comm_y_bytes(collective);
  spec->x = host_memory(comm, nxr_comm_x_bytes(collective), &why);
  spec->y = in_place ? spec->x : host_memory(comm, nxr_comm_y_bytes(collective), &why);
  staging->ready = comm->backend->event_open(comm->device, &why);
  staging->left = comm->backend->event_open(comm->device, &why);
  staging->arrived = comm->backend->event_open(comm->device, &why);
  if (spec->x && spec->y && staging->ready && staging->left && staging->arrived) return true;
  return nxr_fault_set(fault, "no memory for a copy of %llu bytes of the device: %s",
                       (unsigned long long)(nxr_comm_x_bytes(collective) + nxr_comm_y_bytes(collective)),
                       why.text);
}

void nxr_staged_begin(const nxr_comm *comm, nxr_collective *collective) {
  const nxk_backend *backend = comm->backend;
  const nxr_staging *staging = &collective->staging;
  if (!staging->used) return;
  backend->event_record(comm->device, NXK_KERNELS, staging->ready);
  if (!sends(collective)) return;
  backend->event_wait(comm->device, NXK_COPIES_OUT, staging->ready);
  backend->start_copy_out(comm->device, collective->spec.x, staging->x, nxr_comm_x_bytes(collective),
                          collective->spec.operator);
  backend->event_record(comm->device, NXK_COPIES_OUT, staging->left);
}

bool nxr_staged_left(const nxr_comm *comm, const nxr_collective *collective) {
  const nxr_staging *staging = &collective->staging;
  return !staging->used || (comm->backend->event_done(comm->device, staging->left) &&
                            comm->backend->event_done(comm->device, staging->arrived));
}

void nxr_staged_end(const nxr_comm *comm, nxr_collective *collective) {
  const nxk_backend *backend = comm->backend;
  nxr_staging *staging = &collective->staging;
  if (!staging->used || !receives(collective)) return;
  backend->event_wait(comm->device, NXK_COPIES_IN, staging->ready);
  backend->start_copy_in(comm->device, staging->y, collective->spec.y, nxr_comm_y_bytes(collective),
                         collective->spec.operator);
  backend->event_record(comm->device, NXK_COPIES_IN, staging->arrived);
  staging->arrives = true;
}

void nxr_staged_join(const nxr_comm *comm, nxr_collective *collective) {
  nxr_staging *staging = &collective->staging;
  if (staging->arrives) comm->backend->event_wait(comm->device, NXK_KERNELS, staging->arrived);
  staging->arrives = false;
}
