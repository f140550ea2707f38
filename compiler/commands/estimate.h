/* SPDX-License-Identifier: Apache-2.0 */
/* --memory and --machine: whether a plan's ranks fit, and what a step would take; for people and as JSON.
 *
 * Nothing of it goes into a plan. A memory that is given on the command line counts more than
 * the machine's. */
#ifndef NXC_COMMANDS_ESTIMATE_H
#define NXC_COMMANDS_ESTIMATE_H

#include "compiler/program/forecast/advice.h"
#include "compiler/program/forecast/cost.h"

#include <jansson.h>

/* What is asked for; all zero: nothing. */
typedef struct nxc_estimate_request {
  uint64_t memory_bytes;
  const nxc_machine *machine;
} nxc_estimate_request;

typedef struct nxc_estimate {
  const nxc_machine *machine;
  const char *memory_skipped; /* why the memory is not judged, or NULL */
  bool forecast_made;
  nxc_forecast forecast;
} nxc_estimate;

/* From the options' texts, either of which may be NULL. False, with a message on stderr, where they are
 * wrong. */
bool nxc_estimate_read(nxc_arena *arena, const char *command, const char *memory, const char *machine,
                       nxc_estimate_request *out);
/* Findings go to the sink. `plan` is NULL where there is none, for the `obstacles`. */
nxc_estimate nxc_estimate_make(const nxc_estimate_request *request, const nxc_settings *settings,
                               const nx_plan *plan, const nxc_sink *obstacles, nxc_arena *arena,
                               nxc_sink *sink);
void nxc_forecast_print(const nxc_estimate *estimate, const nx_plan *plan, FILE *out);
/* null where there is no forecast */
json_t *nxc_forecast_json(const nxc_estimate *estimate, const nx_plan *plan);

#endif
