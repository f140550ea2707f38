/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/rehearse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

bool nxr_rehearse_parse(const char *value, nxr_options *options) {
  char *end, *past;
  errno = 0;
  options->as_rank = strtoull(value, &end, 10);
  if (value[0] < '0' || value[0] > '9' || end[0] != '/' || end[1] < '0' || end[1] > '9') return false;
  options->as_ranks = strtoull(end + 1, &past, 10);
  return *past == '\0' && errno == 0 && options->as_rank < options->as_ranks;
}

int nxr_rehearse(nxr_world *world, const nx_plan *plan, const nxr_options *options) {
  nxr_fault fault = {""};
  if (world->size != 1)
    nxr_fault_set(&fault, "--as binds one rank, and %u were started: start it without mpiexec", world->size);
  else if (options->as_ranks != plan->run->n_ranks)
    nxr_fault_set(&fault, "%s is a plan for %u ranks, not for %" PRIu64 ": give --as RANK/%u",
                  options->plan_path, plan->run->n_ranks, options->as_ranks, plan->run->n_ranks);
  else
    nxr_world_imagine(world, plan, (uint32_t)options->as_rank, &fault);
  return nxr_world_agree(world, &fault) ? nxr_train(world, plan, options) : NXR_EXIT_FAILED;
}
