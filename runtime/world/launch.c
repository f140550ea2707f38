/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/world/launch.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long launcher_number(const char *name, unsigned long otherwise) {
  const char *text = getenv(name);
  return text ? strtoul(text, NULL, 10) : otherwise;
}

uint32_t nxr_launch_ranks(void) {
  uint32_t n = (uint32_t)launcher_number("PMI_SIZE", 1);
  return n ? n : 1;
}

uint32_t nxr_launch_local_ranks(void) {
  uint32_t n = (uint32_t)launcher_number("MPI_LOCALNRANKS", 1);
  return n ? n : 1;
}

void nxr_launch_prepare(const nx_run *run, char **argv) {
  cpu_set_t cores;
  if (run->n_threads == 1 || getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return;
  if ((uint64_t)nxr_launch_local_ranks() * run->n_threads > (uint64_t)CPU_COUNT(&cores))
    setenv("OMP_WAIT_POLICY", "passive", 1);
  else
    setenv("GOMP_SPINCOUNT", "2000", 1); /* some 50 microseconds */
  execv("/proc/self/exe", argv);
}
