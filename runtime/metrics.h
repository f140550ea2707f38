/* SPDX-License-Identifier: Apache-2.0 */
/* What a step is reported as: a line for people, a line of JSON, and the metrics file (JSON, one object a
 * step).
 *
 * Only rank 0 reports. Steps count from 1: step n has n steps of training behind it. `loss` is the mean over
 * the tokens of the step on all ranks, before its update; `memory_bytes` is what rank 0 holds resident, with
 * its own part of the memory that ranks share. */
#ifndef NXR_METRICS_H
#define NXR_METRICS_H

#include "runtime/metrics_file.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum nxr_log { NXR_LOG_TEXT, NXR_LOG_JSON } nxr_log;

typedef struct nxr_metrics_row {
  uint64_t step;
  double loss, lr, grad_norm, tokens_per_s, seconds;
  uint64_t memory_bytes;
  double loss_scale;  /* 0: none */
  uint64_t n_skipped; /* steps of the run, where there is one */
} nxr_metrics_row;

typedef struct nxr_metrics {
  nxr_log log;
  uint32_t log_every;
  uint64_t n_steps;
  bool terminal;       /* the line is rewritten in place */
  bool line_open;
  nxr_metrics_file file;
  int memory;          /* descriptor of /proc/self/statm */
  uint64_t window_bytes; /* own part of the shared window */
  double train_s;      /* of the steps reported so far */
  uint64_t n_reported;
  double line_s, line_tokens; /* since the last line for people */
} nxr_metrics;

/* Opens `path` (NULL: no file) for a run that has `n_steps` steps behind it (see metrics_file.h). */
bool nxr_metrics_open(nxr_metrics *metrics, const char *path, uint64_t n_steps, nxr_fault *fault);
void nxr_metrics_close(nxr_metrics *metrics);
uint64_t nxr_metrics_memory(const nxr_metrics *metrics);
void nxr_metrics_report(nxr_metrics *metrics, const nxr_metrics_row *row);
/* Ends a line that is being rewritten, so that other text can follow. */
void nxr_metrics_end_line(nxr_metrics *metrics);

#endif
