/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit/emit_forecast.h"

#include "schema/plan_check.h"

#include <math.h>
#include <nettle/sha2.h>

double nxc_deadline_of(double step_s) {
  double seconds = ceil(NXC_DEADLINE_STEPS * step_s);
  return seconds > NXC_DEADLINE_LEAST_S ? seconds : NXC_DEADLINE_LEAST_S;
}

static nx_section *run_names_section(uint8_t *file) {
  nx_header *header = (nx_header *)(void *)file;
  nx_section *section = (nx_section *)(void *)(file + sizeof *header);
  while (section->type != NX_SECTION_RUN_NAMES) section++; /* every plan has it */
  return section;
}

void nxc_emit_forecast(const uint8_t *bytes, double deadline_s, double peak_flops) {
  uint8_t *file = (uint8_t *)(uintptr_t)bytes; /* they lie in an arena */
  nx_section *section = run_names_section(file);
  nx_run_names *names = (nx_run_names *)(void *)(file + section->offset);
  struct sha256_ctx state;
  if (deadline_s > 0) names->deadline_s = deadline_s;
  if (peak_flops > 0) names->peak_flops = peak_flops;
  sha256_init(&state);
  sha256_update(&state, section->bytes, file + section->offset);
  sha256_digest(&state, sizeof section->sha256, section->sha256);
  nx_plan_hash_root(file, ((nx_header *)(void *)file)->root);
}
