/* SPDX-License-Identifier: Apache-2.0 */
/* What `nxcfg plan` tells about a configuration, for people and as one JSON object. Whatever is unknown is
 * left out: without a plan there is no plan_id and no memory, without sizes there are no parameters. */
#ifndef NXC_COMMANDS_PLAN_REPORT_H
#define NXC_COMMANDS_PLAN_REPORT_H

#include "compiler/commands/estimate.h"
#include "compiler/commands/options.h"

typedef struct nxc_plan_report {
  nxc_arena *arena;
  const char *file;
  bool sound; /* the configuration has no errors; that a rank does not fit is none of its own */
  const nxc_compiled *compiled;
  const nxc_training *training; /* NULL where its sizes are unknown */
  const nxc_plan_bytes *plan;   /* NULL where there is none */
  const nxc_sink *sink;         /* what was found in the configuration */
  const nxc_sink *obstacles;    /* why there is no plan */
  const nxc_estimate *estimate; /* what --memory and --machine ask for */
  const char *written;          /* the plan's file, or NULL */
} nxc_plan_report;

/* A number that follows from the settings. */
typedef struct nxc_derived {
  const char *name, *words, *unit;
  bool known;
  double value; /* exact below 2^53 */
} nxc_derived;

enum { NXC_N_DERIVED = 5 };

void nxc_plan_derive(const nxc_plan_report *report, nxc_derived rows[NXC_N_DERIVED]);
/* The bytes of the rank that needs most, by arena, and beside them those of a checkpoint's copy; returns the
 * sum of the arenas. */
uint64_t nxc_plan_memory(const nxc_plan_report *report, uint64_t bytes[NX_N_ARENAS], uint64_t *copy_bytes);

/* The training, and its settings, as they are or as they are assumed; NULL where its sizes are unknown. */
const nxc_training *nxc_plan_training(const nxc_plan_report *report);
const nxc_settings *nxc_plan_settings(const nxc_plan_report *report);
/* "model: ...", "layout: ...", "batch: ...", "assumed: ..."; empty where there is nothing to say. */
enum { NXC_N_SUMMARY = 4 };
void nxc_plan_summary(const nxc_plan_report *report, const char *lines[NXC_N_SUMMARY]);
/* One screen: the model, its layout, memory, time, what is assumed, what nxrun refuses, what is set. */
void nxc_plan_print_screen(const nxc_plan_report *report, FILE *out);
/* Its parts: what either system needs and takes; what nxrun says of it, and what was written. */
void nxc_plan_print_estimate(const nxc_plan_report *report, FILE *out);
void nxc_plan_print_end(const nxc_plan_report *report, FILE *out);
/* Everything. */
void nxc_plan_print(const nxc_plan_report *report, FILE *out);
json_t *nxc_plan_json(const nxc_plan_report *report);
/* Of several programs the first, as of a file with one; the others beside it. */
json_t *nxc_plan_first_of(json_t *programs);
void nxc_plan_print_each(json_t *reports);
void nxc_plan_print_json(const nxc_plan_report *report, FILE *out);

#endif
