/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a wait that is long, or given up: who waits where, and who holds up all. */
#include "runtime/comm/comm_transport.h"

#include "runtime/files/fault.h"

#include <stdio.h>

static void describe(const nxr_comm *comm, uint32_t operator, char *text, size_t room) {
  if (operator == NX_NONE) {
    snprintf(text, room, "between two steps");
    return;
  }
  uint32_t n_operators = comm->plan->n[NX_SECTION_OPERATORS];
  if (operator >= n_operators) {
    char item[96];
    nx_item_describe(comm->plan, &comm->plan->items[operator - n_operators], item, sizeof item);
    snprintf(text, room, "at item %u, %s", operator - n_operators, item);
    return;
  }
  const nx_operator *op = &comm->plan->operators[operator];
  snprintf(text, room, "at operator %u, %s of %s", operator, nx_op_find(op->op)->name,
           nx_plan_string(comm->plan, op->origin));
}

/* Waiting is catching: the rank that holds up all is at the end of the chain. */
static uint32_t last_of_chain(const nxr_comm *comm, uint32_t rank) {
  for (uint32_t hops = 0; hops < comm->world->size; hops++) {
    nxr_pulse *pulse = (nxr_pulse *)nxr_comm_control(comm, rank);
    uint32_t next = pulse ? atomic_load(&pulse->waits_for) : 0;
    if (next == 0 || next - 1 == comm->world->rank) return rank;
    rank = next - 1;
  }
  return rank;
}

static void describe_rank(const nxr_comm *comm, uint32_t rank, char *text, size_t room) {
  nxr_pulse *pulse = (nxr_pulse *)nxr_comm_control(comm, rank);
  char place[192];
  if (!pulse) {
    snprintf(text, room, "where rank %u is can not be seen from here", rank);
    return;
  }
  describe(comm, atomic_load(&pulse->operator), place, sizeof place);
  snprintf(text, room, "rank %u was last seen in step %llu %s", rank,
           (unsigned long long)atomic_load(&pulse->step), place);
}

enum { WAIT_BYTES = 1024 };

/* Where this rank waits, for which rank, and who holds up all. */
static void describe_wait(const nxr_comm *comm, const nxr_collective *collective, uint32_t peer,
                          const char *what, char text[WAIT_BYTES]) {
  char here[192], there[320], chain[64] = "";
  const nxr_collective_spec *spec = &collective->spec;
  uint64_t n_bytes = spec->outer * spec->axis * spec->inner * nx_dtype_bits(spec->x_dtype) / 8;
  uint32_t last = last_of_chain(comm, peer);
  describe(comm, collective->spec.operator, here, sizeof here);
  describe_rank(comm, last, there, sizeof there);
  if (last != peer) snprintf(chain, sizeof chain, ", held up in the end by rank %u", last);
  snprintf(text, WAIT_BYTES, "in step %llu %s, group %s, %llu bytes: rank %u (%s) %s%s; %s",
           (unsigned long long)atomic_load(&comm->pulse->step), here, collective->group->name,
           (unsigned long long)n_bytes, peer, nxr_world_host(comm->world, peer), what, chain, there);
}

void nxr_comm_fail(nxr_comm *comm, const nxr_collective *collective, uint32_t peer, const char *what) {
  char wait[WAIT_BYTES], limited[96];
  const nxr_world *world = comm->world;
  snprintf(limited, sizeof limited, "%s (run.deadline_s %g)", what, comm->deadline_s);
  describe_wait(comm, collective, peer, limited, wait);
  nxr_print(stderr, "nxrun: rank %u (%s) waits %s\n", world->rank, nxr_world_host(world, world->rank), wait);
  nxr_world_abort(1);
}

void nxr_comm_tell(nxr_comm *comm, const nxr_collective *collective, uint32_t peer, double silent_s) {
  char wait[WAIT_BYTES], silent[64];
  if (comm->tell == NULL || silent_s < comm->told_s + NXR_TELLS_EVERY_S) return;
  comm->told_s = silent_s;
  snprintf(silent, sizeof silent, "has shown no sign of life for %.0f s", silent_s);
  describe_wait(comm, collective, peer, silent, wait);
  comm->tell(comm->told, wait);
}

void nxr_comm_fail_device(nxr_comm *comm) {
  char there[320];
  describe_rank(comm, comm->world->rank, there, sizeof there);
  const nxr_world *world = comm->world;
  nxr_print(stderr,
          "nxrun: rank %u (%s) waits for its device, which has done nothing for run.deadline_s %g; %s\n",
          world->rank, nxr_world_host(world, world->rank), comm->deadline_s, there);
  nxr_world_abort(1);
}
