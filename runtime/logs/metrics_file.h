/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics file: one JSON object a line, one line a step, on disk when the step is over.
 *
 *   {"step":1,"loss":5.5,"lr":0.001,"grad_norm":0.95,"tokens_per_s":8743.1,"memory_bytes":4194304}
 *
 * Steps ascend, and every line is whole: a line that can not be written in full is taken back. Numbers are
 * written so that they are read back exactly; NaN and infinity are null. */
#ifndef NXR_METRICS_FILE_H
#define NXR_METRICS_FILE_H

#include "runtime/files/fault.h"

#include <stddef.h>
#include <stdint.h>

enum { NXR_METRICS_LINE_BYTES = 16384 }; /* of a line at most */

typedef struct nxr_metrics_file {
  char *path; /* NULL: there is none */
  int file;
  bool failed;  /* the last line was not written; it has been said */
} nxr_metrics_file;

/* A new run (`n_steps` 0) sets a file that exists aside as PATH.1, PATH.2, …; a run that goes on after
 * `n_steps` steps continues the file, and drops lines of later steps and half a line, which a killed run may
 * have left. A file that holds something else, or what is no regular
 * file, is refused. */
bool nxr_metrics_file_open(nxr_metrics_file *metrics, const char *path, uint64_t n_steps, nxr_fault *fault);
void nxr_metrics_file_close(nxr_metrics_file *metrics);
/* Appends a line; to a file that was removed, in a new one. Where that fails, a warning is printed once, and
 * the training goes on. */
void nxr_metrics_file_write(nxr_metrics_file *metrics, const char *line, size_t n_bytes);

#endif
