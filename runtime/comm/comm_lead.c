/* SPDX-License-Identifier: Apache-2.0 */
/* How far the host is ahead of its device.
 *
 * Kernels are only handed over, so a host that goes on says nothing of the device. Behind every so many of
 * them it sets a mark, an event; each mark that the device reaches is a sign of life, and where too many are
 * ahead the host waits. So a step that takes a device longer than the deadline is no silence, a device that
 * stands still is one, and no driver is handed more than it has room for. */
#include "runtime/comm/comm_transport.h"

#include "runtime/world/patience.h"
#include "runtime/world/pause.h"

enum { KERNELS_PER_MARK = 16, NAP_US = 20 };

bool nxr_lead_open(nxr_comm *comm, nxr_fault *fault) {
  nxk_fault why = {""};
  if (comm->backend->host_addressable) return true;
  for (uint32_t i = 0; i < NXR_LEAD_MARKS; i++)
    if (!(comm->lead.marks[i] = comm->backend->event_open(comm->device, &why)))
      return nxr_fault_set(fault, "no events of the device: %s", why.text);
  return true;
}

void nxr_lead_look(nxr_comm *comm) {
  nxr_lead *lead = &comm->lead;
  while (lead->n_reached < lead->n_set &&
         comm->backend->event_done(comm->device, lead->marks[lead->n_reached % NXR_LEAD_MARKS])) {
    lead->n_reached++;
    nxr_comm_live(comm);
  }
}

static void await(nxr_comm *comm, uint64_t n_reached) {
  nxr_pause pause = {.nap_us = NAP_US};
  nxr_patience patience = {.with = NX_NONE};
  for (nxr_lead_look(comm); comm->lead.n_reached < n_reached; nxr_lead_look(comm)) {
    double silent_s = nxr_patience_look(&patience, comm->world->rank, comm->lead.n_reached);
    if (silent_s > comm->deadline_s) nxr_comm_fail_device(comm);
    nxr_comm_progress(comm);
    nxr_pause_once(&pause);
  }
}

static void set_mark(nxr_comm *comm) {
  nxr_lead *lead = &comm->lead;
  if (lead->n_set - lead->n_reached == NXR_LEAD_MARKS) await(comm, lead->n_reached + 1);
  lead->n_unmarked = 0;
  comm->backend->event_record(comm->device, NXK_KERNELS, lead->marks[lead->n_set++ % NXR_LEAD_MARKS]);
}

void nxr_comm_enqueued(nxr_comm *comm) {
  if (comm->backend->host_addressable) return;
  if (++comm->lead.n_unmarked == KERNELS_PER_MARK) set_mark(comm);
}

void nxr_comm_finish(nxr_comm *comm) {
  if (comm->backend->host_addressable) return;
  if (comm->lead.n_unmarked > 0) set_mark(comm);
  await(comm, comm->lead.n_set);
  nxk_synchronize(comm->backend, comm->device);
}
