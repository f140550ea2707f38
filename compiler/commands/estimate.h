/* SPDX-License-Identifier: Apache-2.0 */
/* --memory and --machine: whether ranks fit, and what a step would take, on the file's own system and in
 * nxrun; for people and as JSON.
 *
 * Nothing of it goes into a plan. A memory that is given on the command line counts more than
 * the machine's. */
#ifndef NXC_COMMANDS_ESTIMATE_H
#define NXC_COMMANDS_ESTIMATE_H

#include "compiler/estimate/assume.h"
#include "compiler/estimate/memory.h"
#include "compiler/estimate/time.h"
#include "compiler/estimate/advice.h"
#include "compiler/program/forecast/cost.h"

#include <jansson.h>

/* What is asked for; all zero: nothing. */
typedef struct nxc_estimate_request {
  const char *system; /* whose memory and time; NULL: the file's own */
  bool nxrun_alone;   /* a plan is written, or the file judged for one: nothing else is judged */
  bool assumes_nothing;
  const nxc_assumption *assumptions; /* the user's own */
  size_t n_assumptions;
  uint64_t memory_bytes;
  const nxc_machine *machine;
} nxc_estimate_request;

/* Of the file's own system. */
typedef struct nxc_own_estimate {
  const char *system; /* NULL: none is known */
  const char *lacks;  /* what would have to be told, or NULL */
  const char *remedy; /* how, or NULL */
  nxc_assumed assumed;
  nxc_compiled compiled; /* with what is assumed */
  nxc_sink *findings;    /* about it */
  nxc_training training; /* where nothing lacks */
  nxc_sizes sizes;
  nxc_own_memory memory;
  double held_bytes;   /* by its allocator, on the machine's devices */
  double device_bytes; /* and with what driver and communicators take */
  double *stage_bytes; /* what a rank of each stage needs, as nxc_own_bytes of the one that needs most */
  bool timed;
  nxc_own_time time;
} nxc_own_estimate;

typedef struct nxc_estimate {
  nxc_own_estimate own;
  const nxc_machine *machine;
  uint64_t limit_bytes;     /* of a rank's memory; 0: none is given */
  const char *limit_source; /* "--memory", the name of the machine */
  bool memory_judged;
  bool forecast_made;
  nxc_forecast forecast;
} nxc_estimate;

/* What either system needs, in the same parts. */
typedef struct nxc_column {
  const char *whose; /* NULL: not known */
  uint32_t stage;    /* the one that needs most */
  double parts[NXC_N_MEMORY_PARTS];
  double beside; /* allocator, driver, communicators */
  double held;   /* of it what the allocator can do without */
  double total;
  bool timed;
  double step_s, tokens_per_s, utilisation;
  double flops_per_s; /* of a rank: those of the model */
} nxc_column;

/* From the options' texts, either of which may be NULL. False, with a message on stderr, where they are
 * wrong. */
bool nxc_estimate_read(nxc_arena *arena, const char *command, const char *memory, const char *machine,
                       nxc_estimate_request *out);
/* --assume, each KEY=VALUE of a setting, or none. */
bool nxc_estimate_assume(nxc_arena *arena, const char *command, const nxc_texts *texts,
                         nxc_estimate_request *out);
/* The configuration with what is assumed for it, as was asked. False where it cannot be read. */
bool nxc_estimate_compile(const nxc_estimate_request *asked, const nxc_request *request, nxc_arena *arena,
                          nxc_sink *sink, nxc_compiled *compiled, nxc_assumed *assumed);
/* Of the configuration that `request` names, which has no error, and whose settings these are. Memory is
 * judged by the plan where nxrun would run on the machine, else by the file's own system; findings go to the
 * sink. `plan` is NULL where there is none, for the `obstacles`. */
nxc_estimate nxc_estimate_make(const nxc_estimate_request *asked, const nxc_request *request,
                               const nxc_settings *settings, const nx_plan *plan, const nxc_sink *obstacles,
                               nxc_arena *arena, nxc_sink *sink);
nxc_own_estimate nxc_own_estimate_make(const nxc_estimate_request *asked, const nxc_request *request,
                                       nxc_arena *arena);
/* Sizes, memory and time of a system and a training that are known. */
void nxc_own_estimate_sizes(nxc_own_estimate *own, const nxc_estimate_request *asked, nxc_arena *arena);
/* What a rank needs, with what the machine adds where it is one of accelerators. */
uint64_t nxc_own_bytes(const nxc_own_estimate *own);
/* Lets the plan say what follows from the forecast: how long a rank waits, unless the settings tell it, and
 * what the machine could do. */
void nxc_estimate_apply(const nxc_estimate *estimate, const nxc_settings *settings, nxc_plan_bytes *plan);
/* Of a plan alone. */
nxc_estimate nxc_estimate_of_plan(const nxc_estimate_request *asked, const nx_plan *plan, nxc_arena *arena,
                                  nxc_sink *sink);
nxc_column nxc_own_column(const nxc_own_estimate *own);
nxc_column nxc_nxrun_column(const nxc_estimate *estimate, const nx_plan *plan);

/* What was measured with other threads, or laid out otherwise, is not what would run. */
void nxc_forecast_print_cautions(const nxc_estimate *estimate, const nx_plan *plan, FILE *out);
/* Nothing where there are none. */
void nxc_forecast_print_evaluations(const nxc_forecast *forecast, const nx_plan *plan, FILE *out);
void nxc_own_print_evaluations(const nxc_own_estimate *own, FILE *out);
/* How long a rank waits for another, and why. */
void nxc_deadline_print(const nx_plan *plan, const nxc_settings *settings, FILE *out);
void nxc_forecast_print(const nxc_estimate *estimate, const nx_plan *plan, FILE *out);
json_t *nxc_assumed_json(const nxc_assumed *assumed);
json_t *nxc_own_estimate_json(const nxc_own_estimate *own);
/* null of what is not known */
json_t *nxc_column_json(const nxc_column *column);
/* null where there is no forecast */
json_t *nxc_forecast_json(const nxc_estimate *estimate, const nx_plan *plan);

#endif
