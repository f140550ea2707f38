/* SPDX-License-Identifier: Apache-2.0 */
/* What `nxcfg plan` tells about a configuration, for people and as one JSON object. Whatever is unknown is left out:
 * without a plan there is no plan_id and no memory, without sizes there are no parameters. */
#ifndef NXC_COMMANDS_PLAN_REPORT_H
#define NXC_COMMANDS_PLAN_REPORT_H

#include "compiler/commands/estimate.h"
#include "compiler/commands/options.h"
#include "compiler/program/program.h"

typedef struct nxc_plan_report {
  nxc_arena *arena;
  const char *file;
  const nxc_compiled *compiled;
  const nxc_training *training; /* NULL where its sizes are unknown */
  const nxc_plan_bytes *plan;   /* NULL where there is none */
  const nxc_sink *sink;         /* what was found in the configuration */
  const nxc_sink *obstacles;    /* why there is no plan */
  const nxc_estimate *estimate; /* what --memory and --machine ask for */
  const char *written;          /* the plan's file, or NULL */
} nxc_plan_report;

void nxc_plan_print(const nxc_plan_report *report, FILE *out);
void nxc_plan_print_json(const nxc_plan_report *report, FILE *out);

#endif
