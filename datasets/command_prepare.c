/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata prepare: makes the datasets that a plan's recipes describe. */
#include "datasets/command.h"
#include "datasets/prepare.h"
#include "runtime/files/mapping.h"

#include <stdio.h>
#include <unistd.h>

static int prepare_all(const nx_plan *plan, uint32_t n_workers) {
  nxr_fault fault = {""};
  if (plan->n[NX_SECTION_RECIPES] == 0) printf("nothing to prepare: the plan reads indexed datasets\n");
  for (int merges = 0; merges < 2; merges++) /* behind all that they read */
    for (uint32_t i = 0; i < plan->n[NX_SECTION_RECIPES]; i++)
      if ((plan->recipes[i].kind == NX_RECIPE_MERGE) == merges &&
          !nxd_prepare(plan, &plan->recipes[i], n_workers, isatty(STDERR_FILENO), &fault))
        return nxd_damaged(&fault);
  return STATUS_DONE;
}

int nxd_command_prepare(int n, char **arguments) {
  uint32_t n_workers = 0;
  const nxd_option options[] = {{"--workers", NXD_COUNT, &n_workers, "a number of threads"}};
  if (!nxd_options_read(&n, arguments, options, 1)) return STATUS_USAGE;
  if (n != 1) return nxd_usage("prepare takes one PLAN, as nxcfg plan writes it", "");
  nxr_mapping file;
  nx_plan plan;
  nx_fault wrong;
  nxr_fault fault = {""};
  if (!nxr_mapping_open(arguments[0], &file, &fault)) return nxd_damaged(&fault);
  int status;
  if (nx_plan_check(file.bytes, file.n_bytes, &plan, &wrong)) {
    status = prepare_all(&plan, n_workers);
  } else {
    nxr_fault_set(&fault, "%s is no plan that can be read: %s", arguments[0], wrong.text);
    status = nxd_damaged(&fault);
  }
  nxr_mapping_close(&file);
  return status;
}
