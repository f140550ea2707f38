/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Proportional set size: shared pages count for each of those who map them by their share. */
static double read_pss_bytes(void) {
  char line[256];
  double kilobytes = 0;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "Pss: %lf", &kilobytes) == 1) break;
  if (file) fclose(file);
  return kilobytes * 1024;
}

static uint64_t planned_bytes(const nxr_machine *machine, uint32_t kind) {
  return nx_plan_stage_bytes(machine->plan, machine->stage, kind);
}

/* Of the rank that has most. */
enum { WORKSPACE, STAGING, UNWANTED, COPY, N_FIGURES };

static void report_json(const nxr_machine *machine, const uint64_t most[N_FIGURES],
                        double pss) {
  char plan_id[65];
  nx_hex(machine->plan->header->plan_id, plan_id);
  printf("{\"plan_id\":\"%s\",\"ranks\":%u,\"backend\":\"%s\",\"threads\":%u,\"operators\":%u,"
         "\"operators_by_ref\":%u,\"arenas\":{",
         plan_id, machine->world->size, machine->backend->name, machine->plan->run->n_threads,
         machine->n_operators, machine->n_by_ref);
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++)
    printf("%s\"%s\":{\"planned_bytes\":%" PRIu64 ",\"mapped_bytes\":%" PRIu64 ",\"shared\":%s}",
           kind ? "," : "", nx_arena_name(kind), planned_bytes(machine, kind), machine->arenas->n_bytes[kind],
           machine->arenas->shared[kind] ? "true" : "false");
  printf("},\"mapped_bytes\":%" PRIu64 ",\"control_bytes\":%" PRIu64 ",\"workspace_bytes\":%" PRIu64
         ",\"workspace_ceiling_bytes\":%" PRIu64 ",\"staging_bytes\":%" PRIu64 ",\"unwanted_bytes\":%" PRIu64
         ",\"copy_bytes\":%" PRIu64 ",\"pss_bytes_all_ranks\":%.0f}\n",
         nxr_arenas_bytes(machine->arenas), machine->arenas->control_bytes, most[WORKSPACE],
         machine->plan->run->workspace_bytes, most[STAGING], most[UNWANTED], most[COPY], pss);
}

static void report_text(const nxr_machine *machine, const uint64_t most[N_FIGURES],
                        double pss) {
  printf("%u rank%s of %u thread%s, backend %s: %u operators bound, %u of them by ref\n",
         machine->world->size, machine->world->size == 1 ? "" : "s", machine->plan->run->n_threads,
         machine->plan->run->n_threads == 1 ? "" : "s", machine->backend->name, machine->n_operators,
         machine->n_by_ref);
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++)
    if (machine->arenas->n_bytes[kind])
      printf("  %-10s %14" PRIu64 " bytes%s  %s\n", nx_arena_name(kind), machine->arenas->n_bytes[kind],
             machine->arenas->shared[kind] ? ", shared" : "        ", nx_arena_meaning(kind));
  printf("  %-10s %14" PRIu64 " bytes on each rank%s, as planned\n", "arenas",
         nxr_arenas_bytes(machine->arenas),
         machine->backend->host_addressable ? "" : ", in its device's memory");
  printf("  %-10s %14" PRIu64 " bytes of at most %" PRIu64 "\n", "workspace", most[WORKSPACE],
         machine->plan->run->workspace_bytes);
  if (most[STAGING])
    printf("  %-10s %14" PRIu64 " bytes of the host for messages\n", "staging", most[STAGING]);
  if (most[UNWANTED])
    printf("  %-10s %14" PRIu64 " bytes at most, of messages for a rank that is late\n", "aside",
           most[UNWANTED]);
  if (most[COPY])
    printf("  %-10s %14" PRIu64 " bytes of a checkpoint, while it is written (checkpoint.async)\n", "copy",
           most[COPY]);
  printf("  %-10s %14.0f bytes (PSS, all ranks)\n", "resident", pss);
}

void nxr_report_memory(const nxr_machine *machine, uint64_t copy_bytes, nxr_log log) {
  uint64_t most[N_FIGURES] = {[WORKSPACE] = machine->backend->workspace_bytes(machine->device),
                              [STAGING] = nxr_comm_staging_bytes(machine->comm),
                              [UNWANTED] = nxr_comm_measure(machine->comm).unwanted_bytes,
                              [COPY] = copy_bytes};
  double pss = read_pss_bytes();
  nxr_world_max(machine->world, most, N_FIGURES);
  nxr_world_sum(machine->world, &pss, 1);
  if (machine->world->rank != 0 && !machine->world->alone) return;
  if (log == NXR_LOG_JSON)
    report_json(machine, most, pss);
  else
    report_text(machine, most, pss);
}
