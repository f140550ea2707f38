/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/rehearse.h"

#include "runtime/world/clock.h"

#include <inttypes.h>
#include <stdio.h>

/* Of this process, from a line of /proc/self/status. */
static uint64_t memory_bytes(const char *pattern) {
  char line[256];
  uint64_t kibibytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, pattern, &kibibytes) == 1) break;
  if (file) fclose(file);
  return kibibytes * 1024;
}

void nxr_rehearse_report(const nxr_machine *machine, const nxr_options *options, double bind_s) {
  const nxr_world *world = machine->world;
  const nxr_comm_size size = nxr_comm_measure(machine->comm);
  uint64_t resident = memory_bytes("VmHWM: %" SCNu64), files = memory_bytes("RssFile: %" SCNu64);
  double now_s = nxr_clock_s(), plan_s = options->opened_s - options->begun_s,
         start_s = now_s - bind_s - options->opened_s;
  if (options->log == NXR_LOG_JSON) {
    printf("{\"rank\":%u,\"ranks\":%u,\"stage\":%u,\"host\":%u,\"hosts\":%u,\"collectives\":%" PRIu64
           ",\"peers\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"requests\":%" PRIu64
           ",\"unwanted_bytes\":%" PRIu64 ",\"resident_bytes\":%" PRIu64 ",\"of_files_bytes\":%" PRIu64
           ",\"plan_s\":%.4f,\"mpi_s\":%.4f,\"bind_s\":%.4f}\n",
           world->rank, world->size, machine->stage, world->hosts[world->rank], world->n_hosts,
           size.n_collectives, size.n_peers, size.n_messages, size.n_requests, size.unwanted_bytes, resident,
           files, plan_s, start_s, bind_s);
    return;
  }
  printf("rank %u of %u alone: stage %u of %u, host %u of %u with %u ranks\n", world->rank, world->size,
         machine->stage, nx_plan_n_stages(machine->plan), world->hosts[world->rank], world->n_hosts,
         world->local_size);
  printf("  %-10s %14" PRIu64 " by messages with %" PRIu64 " ranks, %" PRIu64 " in the host's memory\n",
         "bound", size.n_by_messages, size.n_peers, size.n_collectives - size.n_by_messages);
  printf("  %-10s %14" PRIu64 " messages of all of them, in %" PRIu64 " requests\n", "messages",
         size.n_messages, size.n_requests);
  printf("  %-10s %14" PRIu64 " bytes at most, of messages that come while this rank is late\n", "aside",
         size.unwanted_bytes);
  printf("  %-10s %14" PRIu64 " bytes without memory for arenas and staging; %" PRIu64
         " are pages of files\n",
         "resident", resident, files);
  printf("  %-10s %14.3f s: %.3f for the plan, %.3f for MPI, %.3f to bind\n", "start",
         plan_s + start_s + bind_s, plan_s, start_s, bind_s);
}
