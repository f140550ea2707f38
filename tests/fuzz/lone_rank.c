/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a run without the others: the world and the collectives as nxrun has them
 * (runtime/world/world.h, runtime/comm/comm.h), where every other rank holds what this one does. Takes their
 * place in the test that trains changed plans: it needs no MPI and ends at once. Every byte that a collective
 * may touch is looked at, so that AddressSanitizer sees one outside its arena. */
#include "runtime/comm/comm.h"
#include "tests/fuzz/lone_rank.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf *ended;

int lone_rank_train(const nx_plan *plan, uint32_t rank, const nxr_options *options) {
  static uint32_t zero;
  jmp_buf here;
  nxr_world world = {
      .rank = rank, .size = plan->run->n_ranks, .local_size = 1, .n_hosts = 1, .deadline_s = 300};
  world.hosts = world.local_ranks = &zero;
  ended = &here;
  int status = setjmp(here);
  return status ? status : nxr_train(&world, plan, options);
}

bool nxr_world_imagine(nxr_world *world, const nx_plan *plan, uint32_t rank, nxr_fault *fault) {
  (void)world, (void)plan, (void)rank;
  return nxr_fault_set(fault, "this rank has no others");
}

nxr_comm_size nxr_comm_measure(const nxr_comm *comm) {
  (void)comm;
  return (nxr_comm_size){0};
}

void nxr_world_abort(int status) {
  longjmp(*ended, status ? status : NXR_EXIT_FAILED);
}

bool nxr_world_agree(nxr_world *world, const nxr_fault *fault) {
  (void)world;
  return fault->text[0] == '\0';
}

void nxr_world_barrier(nxr_world *world) {
  (void)world;
}

void nxr_world_sum(nxr_world *world, double *values, size_t n) {
  (void)world, (void)values, (void)n;
}

void nxr_world_max(nxr_world *world, uint64_t *values, size_t n) {
  (void)world, (void)values, (void)n;
}

void nxr_world_host_union(nxr_world *world, void *bits, size_t n_bytes) {
  (void)world, (void)bits, (void)n_bytes;
}

void nxr_world_broadcast(nxr_world *world, void *bytes, size_t n_bytes) {
  (void)world, (void)bytes, (void)n_bytes;
}

bool nxr_world_window(nxr_world *world, uint64_t n_bytes, void **peers, nxr_fault *fault) {
  (void)world, (void)n_bytes, (void)peers;
  return nxr_fault_set(fault, "one rank shares no memory");
}

void nxr_world_pin(nxr_world *world, const nx_plan *plan) {
  (void)world, (void)plan;
}

void nxr_world_roam(void) {
}

struct nxr_comm {
  const nx_plan *plan;
  const nxk_backend *backend;
  nxk_device *device;
  nxr_collective *bound;
};

struct nxr_collective {
  nxr_collective_spec spec;
  uint64_t x_bytes, y_bytes;
  nxr_collective *next;
};

uint64_t nxr_comm_control_bytes(const nx_plan *plan) {
  (void)plan;
  return 64;
}

bool nxr_comm_open(nxr_world *world, const nx_plan *plan, const nxk_backend *backend, nxk_device *device,
                   const nxr_arenas *arenas, double deadline_s, nxr_comm **comm, nxr_fault *fault) {
  (void)world, (void)arenas, (void)deadline_s;
  *comm = calloc(1, sizeof **comm);
  if (*comm == NULL) return nxr_fault_set(fault, "out of memory");
  (*comm)->plan = plan, (*comm)->backend = backend, (*comm)->device = device;
  return true;
}

void nxr_comm_tells(nxr_comm *comm, nxr_comm_teller *tell, void *told) {
  (void)comm, (void)tell, (void)told; /* it waits for nobody */
}

void nxr_comm_close(nxr_comm *comm) {
  while (comm && comm->bound) {
    nxr_collective *first = comm->bound;
    comm->bound = first->next;
    free(first);
  }
  free(comm);
}

static nxr_collective *bind(nxr_comm *comm, const nxr_collective_spec *spec, uint64_t x_bytes,
                            uint64_t y_bytes) {
  nxr_collective *made = malloc(sizeof *made);
  if (made == NULL) abort();
  *made = (nxr_collective){*spec, x_bytes, y_bytes, comm->bound};
  return comm->bound = made;
}

nxr_collective *nxr_comm_bind(nxr_comm *comm, const nxr_collective_spec *spec, nxr_fault *fault) {
  uint64_t size = comm->plan->groups[spec->group].size, n = spec->outer * spec->axis * spec->inner;
  uint64_t n_y = spec->op == NX_OP_all_gather ? n * size : spec->op == NX_OP_reduce_scatter ? n / size : n;
  (void)fault;
  return bind(comm, spec, n * nx_dtype_bits(spec->x_dtype) / 8, n_y * nx_dtype_bits(spec->y_dtype) / 8);
}

nxr_collective *nxr_comm_bind_transfer(nxr_comm *comm, uint32_t chunk, nx_port port, void *bytes,
                                       uint64_t n_bytes, nxr_fault *fault) {
  bool sends = port == NX_PORT_OUTPUT || port == NX_PORT_INPUT_GRADIENT;
  const nxr_collective_spec spec = {.op = (nx_op)NXR_TRANSFER, .x = bytes, .y = bytes};
  (void)chunk, (void)fault;
  return bind(comm, &spec, sends ? n_bytes : 0, sends ? 0 : n_bytes);
}

void nxr_comm_name_transfer(const nxr_comm *comm, nxr_collective *collective, uint32_t item) {
  (void)comm, (void)collective, (void)item;
}

/* y is filled with what x has, again and again; on a device by copies, as there. */
void nxr_comm_start(nxr_comm *comm, nxr_collective *collective) {
  uint64_t n = collective->x_bytes;
  bool here = comm->backend->host_addressable;
  uint8_t *held = malloc(n + 1), *y = here ? collective->spec.y : malloc(collective->y_bytes + 1);
  if (held == NULL || y == NULL) abort();
  if (here) memcpy(held, collective->spec.x, n);
  else comm->backend->copy_out(comm->device, held, collective->spec.x, n);
  for (uint64_t at = 0; at < collective->y_bytes; at++) y[at] = n ? held[at % n] : 0;
  if (!here) {
    comm->backend->copy_in(comm->device, collective->spec.y, y, collective->y_bytes);
    free(y);
  }
  free(held);
}

void nxr_comm_enqueued(nxr_comm *comm) {
  (void)comm;
}

void nxr_comm_finish(nxr_comm *comm) {
  nxk_synchronize(comm->backend, comm->device);
}

void nxr_comm_wait(nxr_comm *comm, nxr_collective *collective) {
  (void)comm, (void)collective;
}

void nxr_comm_progress(nxr_comm *comm) {
  (void)comm;
}

void nxr_comm_votes(nxr_comm *comm, bool votes[], uint32_t n) {
  (void)comm, (void)votes, (void)n;
}

bool nxr_comm_vote(nxr_comm *comm, bool own) {
  (void)comm;
  return own;
}

void nxr_comm_beat(nxr_comm *comm, uint64_t step, uint32_t operator) {
  (void)comm, (void)step, (void)operator;
}

uint64_t nxr_comm_staging_bytes(const nxr_comm *comm) {
  (void)comm;
  return 0;
}

uint64_t nxr_comm_copied_bytes(const nxr_comm *comm) {
  (void)comm;
  return 0;
}
