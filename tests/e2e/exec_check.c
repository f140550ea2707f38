/* SPDX-License-Identifier: Apache-2.0 */
/* The step loop by itself: exec_check PLAN BACKEND STEPS [p2p].
 *
 * Runs the plan's steps twice from the same initial weights. After the first step nothing may be allocated by
 * nxrun's own code, and with ref through the window by no library either (oneDNN and MPI's messages make and
 * free small things); the second time every loss and gradient norm must have the same bits. The bytes mapped
 * are the plan's. */
#include "runtime/step/exec.h"
#include "runtime/files/file.h"
#include "runtime/state/init.h"
#include "tests/e2e/count_allocations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 64 };

typedef struct check {
  nxr_world world;
  nxr_file file;
  nxr_arenas arenas;
  nxr_comm *comm;
  nxr_machine machine;
  nxr_data *data;
  nxr_exec exec;
  nxr_fault fault;
  bool use_window;
  bool count_libraries;
} check;

static bool open_check(check *at, const char *path, const char *backend) {
  nxk_fault why = {""};
  nxr_machine *machine = &at->machine;
  if (!nxr_file_open(path, NULL, &at->file, &at->fault)) return false;
  const nx_plan *plan = &at->file.plan;
  const nxk_device_options options = {.n_threads = plan->run->n_threads, .target = plan->run->target,
                                      .workspace_bytes = plan->run->workspace_bytes};
  machine->plan = plan, machine->world = &at->world, machine->arenas = &at->arenas;
  machine->backend = nxk_backend_find(backend);
  if (!machine->backend || !machine->backend->open(&options, &machine->device, &why))
    return nxr_fault_set(&at->fault, "backend: %s", why.text);
  if (!nxr_arenas_open(&at->world, plan, machine->backend, machine->device, nxr_comm_control_bytes(plan),
                       at->use_window, &at->arenas, &at->fault))
    return false;
  nxr_world_barrier(&at->world);
  if (!nxr_comm_open(&at->world, plan, machine->backend, machine->device, &at->arenas, 60, &at->comm,
                     &at->fault))
    return false;
  machine->comm = at->comm;
  return nxr_machine_open(machine, &at->fault) &&
         nxr_data_open(plan, at->world.rank, NXR_READS_ALL, &at->data, &at->fault) &&
         nxr_exec_open(&at->exec, machine, at->data, &at->fault);
}

/* Arenas as they are when a run begins. */
static bool begin(check *at) {
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++)
    if (at->arenas.base[kind]) memset(at->arenas.base[kind], 0, at->arenas.n_bytes[kind]);
  nxr_pieces pieces = {.plan = &at->file.plan, .rank = at->world.rank, .backend = at->machine.backend,
                       .device = at->machine.device};
  pieces.stage = at->machine.stage;
  memcpy(pieces.base, at->arenas.base, sizeof pieces.base);
  bool well = nxr_init_weights(&pieces, &at->fault);
  nxr_world_barrier(&at->world);
  return well;
}

static bool run_steps(check *at, uint32_t n_steps, nxr_numbers *numbers, uint64_t *n_allocated) {
  const nxr_loss_scale scale = nxr_loss_scale_begin(at->file.plan.run);
  uint64_t before = 0;
  for (uint32_t step = 0; step < n_steps; step++) {
    if (!nxr_exec_step(&at->exec, step, &scale, NULL, &numbers[step], &at->fault)) return false;
    nxr_comm_vote(at->comm, false);
    if (step == 0) before = count_allocations(at->count_libraries);
  }
  *n_allocated += count_allocations(at->count_libraries) - before;
  return true;
}

static bool bytes_as_planned(const check *at) {
  uint64_t n_bytes = 0;
  for (uint32_t i = 0; i < at->file.plan.n[NX_SECTION_ARENAS]; i++) n_bytes += at->file.plan.arenas[i].bytes;
  return n_bytes == nxr_arenas_bytes(&at->arenas);
}

int main(int argc, char **argv) {
  static check at;
  static nxr_numbers numbers[2][MAX_STEPS];
  uint64_t n_allocated = 0;
  if (argc < 4) return 2;
  uint32_t n_steps = (uint32_t)strtoul(argv[3], NULL, 10);
  if (n_steps < 2 || n_steps > MAX_STEPS || !nxr_world_open(&at.world, 60, &at.fault)) return 2;
  at.use_window = at.world.size > 1 && argc == 4;
  at.count_libraries = (at.use_window || at.world.size == 1) && strcmp(argv[2], "ref") == 0;
  bool well = open_check(&at, argv[1], argv[2]);
  well = nxr_world_agree(&at.world, &at.fault) && well;
  for (int round = 0; round < 2 && well; round++)
    well = begin(&at) && run_steps(&at, n_steps, numbers[round], &n_allocated);
  if (at.fault.text[0]) fprintf(stderr, "rank %u: %s\n", at.world.rank, at.fault.text);
  bool same = memcmp(numbers[0], numbers[1], n_steps * sizeof numbers[0][0]) == 0;
  if (well)
    printf("rank %u: %u steps, loss %.17g to %.17g, %llu allocations, %s bits, %s bytes\n", at.world.rank,
           n_steps, numbers[0][0].loss, numbers[0][n_steps - 1].loss, (unsigned long long)n_allocated,
           same ? "same" : "OTHER", bytes_as_planned(&at) ? "planned" : "OTHER");
  well = well && same && n_allocated == 0 && bytes_as_planned(&at);
  if (!well) nxr_world_abort(1);
  nxr_exec_close(&at.exec);
  nxr_data_close(at.data);
  nxr_machine_close(&at.machine);
  nxr_comm_close(at.comm);
  nxr_arenas_close(&at.arenas);
  at.machine.backend->close(at.machine.device);
  nxr_world_close(&at.world);
  nxr_file_close(&at.file);
  return 0;
}
