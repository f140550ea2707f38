/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/world/world.h"

#include "runtime/files/fault.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* srun with an MPICH that does not speak its protocol starts every task as a run of one rank. */
static bool is_singleton_of_many(const nxr_world *world) {
  const char *n_tasks = getenv("SLURM_NTASKS");
  return world->size == 1 && n_tasks && strtol(n_tasks, NULL, 10) > 1 && !getenv("PMI_RANK");
}

bool nxr_world_check_launch(nxr_world *world, const nx_plan *plan, const char *plan_path) {
  nxr_fault fault = {""};
  uint32_t n_ranks = plan->run->n_ranks;
  if (is_singleton_of_many(world)) {
    const char *task = getenv("SLURM_PROCID");
    if (!task || strtol(task, NULL, 10) == 0)
      nxr_print(stderr,
              "nxrun: srun started %s separate runs of one rank, because this MPI does not speak "
              "its protocol: start them with mpiexec -n %u nxrun %s\n",
              getenv("SLURM_NTASKS"), n_ranks, plan_path);
    return false;
  }
  if (world->rank == 0 && world->size != n_ranks)
    nxr_fault_set(&fault,
                  "%s is a plan for %u rank%s, and this is a run of %u: start it with\n"
                  "  mpiexec -n %u nxrun %s\nor make a plan for %u with\n"
                  "  nxcfg plan FILE --world-size %u -o %s",
                  plan_path, n_ranks, n_ranks == 1 ? "" : "s", world->size, n_ranks, plan_path, world->size,
                  world->size, plan_path);
  if (!nxr_world_agree(world, &fault)) return false;
  uint32_t per_host = n_ranks / plan->run->n_hosts;
  if (world->hosts[world->rank] != world->rank / per_host || world->n_hosts != plan->run->n_hosts)
    nxr_fault_set(&fault,
                  "the plan lays %u ranks on each of %u host%s in order, but rank %u is on host %u of %u: "
                  "start it with mpiexec -n %u -ppn %u nxrun %s, or set mesh.nodes to the number of hosts",
                  per_host, plan->run->n_hosts, plan->run->n_hosts == 1 ? "" : "s", world->rank,
                  world->hosts[world->rank] + 1, world->n_hosts, n_ranks, per_host, plan_path);
  return nxr_world_agree(world, &fault);
}

bool nxr_world_check_command(nxr_world *world, const char *command) {
  nxr_fault fault = {""};
  char first[2048] = "";
  strncpy(first, command, sizeof first - 1);
  nxr_world_broadcast(world, first, sizeof first);
  if (strcmp(first, command) != 0)
    nxr_fault_set(
        &fault,
        "rank %u (%s) was started as\n  %.400s\nand rank 0 (%s) as\n  %.400s\ngive all ranks the same "
        "program and options",
        world->rank, nxr_world_host(world, world->rank), command, nxr_world_host(world, 0), first);
  return nxr_world_agree(world, &fault);
}

bool nxr_world_check_same(nxr_world *world, const nx_plan *plan) {
  nxr_fault fault = {""};
  char own[65], first[65];
  nx_sha256_hex(plan->bytes, plan->n_bytes, own);
  memcpy(first, own, sizeof first);
  nxr_world_broadcast(world, first, sizeof first);
  if (strcmp(own, first) != 0)
    nxr_fault_set(&fault,
                  "the plan that rank %u reads (SHA-256 %.12s…) is not that of rank 0 (%.12s…): give every "
                  "host the same file",
                  world->rank, own, first);
  return nxr_world_agree(world, &fault);
}

static cpu_set_t roaming; /* where this rank's helpers may run once it is pinned; else nothing */

/* The cores from the `first`-th of those that this process may use. */
static void pin_to(uint32_t first, uint32_t n, const cpu_set_t *allowed) {
  cpu_set_t own;
  CPU_ZERO(&own);
  roaming = *allowed;
  for (uint32_t core = 0, seen = 0; core < CPU_SETSIZE; core++) {
    if (!CPU_ISSET(core, allowed)) continue;
    if (seen >= first && seen < first + n) CPU_SET(core, &own);
    seen++;
  }
  sched_setaffinity(0, sizeof own, &own);
}

/* NXRUN_CORES=shared: other programs run on this host, so no core is a rank's own. */
static bool shares_cores(void) {
  const char *asked = getenv("NXRUN_CORES");
  return asked && strcmp(asked, "shared") == 0;
}

void nxr_world_pin(nxr_world *world, const nx_plan *plan) {
  uint32_t n_threads = plan->run->n_threads, need = world->local_size * n_threads;
  cpu_set_t own, all;
  if (world->alone) return;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  all = own;
  nxr_world_host_union(world, &all, sizeof all);
  world->n_cores = (uint32_t)CPU_COUNT(&all);
  world->crowded = need > world->n_cores;
  if (world->crowded && world->rank == 0)
    nxr_print(stderr, "nxrun: %u rank%s of %u thread%s share %u core%s of a host: it runs, but slowly\n",
            world->local_size, world->local_size == 1 ? "" : "s", n_threads, n_threads == 1 ? "" : "s",
            world->n_cores, world->n_cores == 1 ? "" : "s");
  world->crowded |= shares_cores();
  /* Where a rank has fewer cores than its host, the launcher has given it its own. */
  bool bound = !CPU_EQUAL(&own, &all);
  if (!world->crowded && !bound) pin_to(world->local_rank * n_threads, n_threads, &all);
}

void nxr_world_roam(void) {
  if (CPU_COUNT(&roaming) > 0) sched_setaffinity(0, sizeof roaming, &roaming);
}
