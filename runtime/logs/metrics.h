/* SPDX-License-Identifier: Apache-2.0 */
/* What is reported: named numbers, to three places. A line for people, or of JSON, on standard output; the
 * metrics file (metrics_file.h); TensorBoard's event files (events_file.h); Weights & Biases (wandb_file.h).
 *
 * A row is a training step's, or what an evaluation found of one set. Only rank 0 reports. Steps count from
 * 1: step n has n steps of training behind it. `loss` is the mean over the tokens of the step on all ranks,
 * before its update; `memory_bytes` is what rank 0 holds resident, with its own part of the memory that ranks
 * share. */
#ifndef NXR_METRICS_H
#define NXR_METRICS_H

#include "runtime/logs/events_file.h"
#include "runtime/logs/metrics_file.h"
#include "runtime/logs/wandb_file.h"
#include "schema/objective.h"
#include "schema/plan.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum nxr_log { NXR_LOG_AS_PLANNED, NXR_LOG_TEXT, NXR_LOG_JSON } nxr_log;

/* With their names of at most 24 letters they fit in a line of the file. */
enum { NXR_MOST_METRICS = NX_MAX_MEASURES + 32 };

typedef struct nxr_metric {
  const char *name; /* of static life, as the field of a JSON object */
  double value;
} nxr_metric;

typedef struct nxr_metrics_row {
  uint64_t step;
  const char *set; /* that was evaluated; NULL: this is a training step */
  double seconds;  /* that it took */
  uint32_t n;
  nxr_metric items[NXR_MOST_METRICS];
} nxr_metrics_row;

typedef struct nxr_metrics {
  nxr_log log;
  uint32_t log_every;
  uint64_t n_steps;
  bool terminal; /* the line is rewritten in place */
  bool line_open;
  nxr_metrics_file file;
  nxr_events_file events;
  nxr_wandb_file wandb;
  uint32_t events_every, events_show, wandb_every; /* nx_run_names' */
  int memory;                         /* descriptor of /proc/self/statm */
  uint64_t window_bytes;              /* own part of the shared window */
  double train_s;                     /* of the steps reported so far */
  uint64_t n_reported;
  double line_s, line_tokens; /* since the last line for people */
} nxr_metrics;

/* Opens `path` (NULL: no file) for a run that has `n_steps` steps behind it (see metrics_file.h). */
bool nxr_metrics_open(nxr_metrics *metrics, const char *path, uint64_t n_steps, nxr_fault *fault);
/* With the run's exit status. */
void nxr_metrics_close(nxr_metrics *metrics, int status);
uint64_t nxr_metrics_memory(const nxr_metrics *metrics);
void nxr_metrics_add(nxr_metrics_row *row, const char *name, double value);
/* What is counted where answers are compared, as means over the samples that so many sequences make
 * (metrics_answers.c); nothing of another objective. */
void nxr_metrics_add_answers(nxr_metrics_row *row, uint32_t objective, const double *sums,
                             uint64_t n_sequences);
void nxr_metrics_report(nxr_metrics *metrics, const nxr_metrics_row *row);
/* Ends a line that is being rewritten, so that other text can follow. */
void nxr_metrics_end_line(nxr_metrics *metrics);

#endif
