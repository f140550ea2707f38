/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank of the file's own system needs in memory, from its rows in schema/systems.
 *
 * A rank keeps the state of its stage, for each micro-batch in flight the activations of its layers, and for
 * a moment the largest of what is transient; what is in the host's memory is not counted. `stage` is the one
 * that needs most. Bytes are the system's own tensors; what the driver, communicators and the allocator add
 * stands in the machine (`reserved`). */
#ifndef NXC_ESTIMATE_MEMORY_H
#define NXC_ESTIMATE_MEMORY_H

#include "compiler/estimate/system.h"
#include "compiler/machine/machine.h"

typedef struct nxc_memory_line {
  const nxc_system_row *row;
  double bytes;
} nxc_memory_line;

typedef struct nxc_own_memory {
  uint32_t stage;
  double parts[NXC_N_MEMORY_PARTS];
  double total;
  nxc_memory_line *lines; /* of the stage, largest first */
  size_t n_lines;
} nxc_own_memory;

nxc_own_memory nxc_own_memory_of_stage(const nxc_system *system, const nxc_sizes *sizes,
                                       const nxc_training *training, uint32_t stage, nxc_arena *arena);
/* Of the stage that needs most. */
nxc_own_memory nxc_own_memory_of(const nxc_system *system, const nxc_sizes *sizes,
                                 const nxc_training *training, nxc_arena *arena);
/* What a rank takes of a device for such tensors: what its allocator holds more, the driver and
 * communicators, of which one rank alone has none. */
double nxc_own_taken(const nxc_device *device, double tensors, double ranks);
/* Bytes of a stage's activations that one micro-batch sends to the host's memory, and has back. */
double nxc_own_offloaded(const nxc_system *system, const nxc_sizes *of_stage, const nxc_training *training,
                         nxc_arena *arena);

#endif
