/* SPDX-License-Identifier: Apache-2.0 */
/* A plan bound to this rank: every operator has its kernel or its collective, every constant its value.
 *
 * Kernels are bound once per operator of the plan and serve every chunk and slot; a *frame* gives them the
 * addresses and constants of one. Collectives are bound per operator, chunk and slot (one for all slots where
 * no operand lies in a slot), transfers per port, chunk and slot. A wait names the collectives that write its
 * value. After nxr_machine_open nothing allocates. */
#ifndef NXR_BIND_H
#define NXR_BIND_H

#include "runtime/comm/comm.h"
#include "runtime/step/neighbours.h"

typedef struct nxr_kernel {
  const nxk_backend *backend; /* NULL for collectives and waits */
  nxk_device *device;
  nxk_kernel *kernel;
} nxr_kernel;

typedef struct nxr_machine {
  const nx_plan *plan;
  nxr_world *world;
  const nxr_arenas *arenas;
  nxr_comm *comm;
  const nxk_backend *backend;
  nxk_device *device;
  nxk_device *ref_device;       /* takes what the backend declines; NULL where it took all */
  uint32_t stage;               /* of this rank */
  uint32_t n_chunks, n_slots, n_operators;
  nxr_kernel *kernels;          /* [operators] */
  nxr_collective **collectives; /* [chunks][slots][operators] */
  nxr_collective **transfers;   /* [chunks][slots][ports]; NULL between chunks of this stage */
  nxr_neighbours *neighbours;   /* which exchange here; NULL where there are none */
  uint32_t *awaited;            /* the operators that waits wait for */
  uint32_t *first_awaited;      /* [operators + 1] */
  nxk_frame *frames;            /* [chunks][slots] */
  int64_t *constants;           /* [chunks][constants] */
  uint32_t n_by_ref;            /* operators that the backend declined */
  uint32_t running;             /* the operator that was enqueued last */
  struct nxr_finite *finite;    /* looks at what kernels make; NULL: nobody does */
  bool generates;               /* set before opening: texts are continued */
  nxk_alarm alarm;              /* set before opening, or left empty: kernels then abort */
} nxr_machine;

/* Binds what this rank's stage runs. The machine is to be closed whatever the result. */
bool nxr_machine_open(nxr_machine *machine, nxr_fault *fault);
void nxr_machine_close(nxr_machine *machine);

/* The address of a value in the backend's memory, for a frame. */
void *nxr_value_address(const nx_plan *plan, uint32_t value, const nxk_frame *frame);

static inline const nxk_frame *nxr_machine_frame(const nxr_machine *machine, uint32_t chunk, uint32_t slot) {
  return &machine->frames[(size_t)chunk * machine->n_slots + slot];
}

static inline nxr_collective *nxr_machine_collective(const nxr_machine *machine, uint32_t chunk,
                                                     uint32_t slot, uint32_t operator) {
  return machine->collectives[((size_t)chunk * machine->n_slots + slot) * machine->n_operators + operator];
}

#endif
