/* SPDX-License-Identifier: Apache-2.0 */
/* What `nxcfg tune` found: a table for people, JSON for programs. */
#ifndef NXC_COMMANDS_TUNE_REPORT_H
#define NXC_COMMANDS_TUNE_REPORT_H

#include "compiler/estimate/assume.h"
#include "compiler/tune/search.h"

#include <stdio.h>

typedef struct nxc_tune_report {
  nxc_arena *arena;
  const char *file;
  const nxc_assumed *assumed;
  const nxc_tune_request *request;
  const nxc_tune_result *result;
  const char *written; /* where the best was written; NULL: nowhere */
  const char *assuming; /* options with which a plan of that assumes what was assumed here; "": by itself */
} nxc_tune_report;

void nxc_tune_print(const nxc_tune_report *report, FILE *out);
void nxc_tune_print_json(const nxc_tune_report *report, FILE *out);
/* As JSON too: why there is nothing to tune. */
void nxc_tune_print_obstacles(const char *file, const nxc_sink *errors, const nxc_sink *obstacles, FILE *out);

#endif
