/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard's event files: scalars by tag and step.
 *
 * A file is records of u64 length, u32 masked CRC-32C of the length, the bytes of an Event (events.proto),
 * u32 masked CRC-32C of these; a CRC is masked as TFRecord has it: rotated right by 15 bits, plus 0xa282ead8.
 * Each run of nxrun writes a file of its own, DIR/events.out.tfevents.SECONDS.HOST.PID; one that resumes
 * begins with a session's start, at which TensorBoard forgets what earlier files say of later steps. */
#ifndef NXR_EVENTS_FILE_H
#define NXR_EVENTS_FILE_H

#include "runtime/files/fault.h"
#include "runtime/logs/points.h"

#include <stdio.h>

enum { NXR_EVENTS_PATH_BYTES = 4096 };

typedef struct nxr_events_file {
  char *path; /* NULL: there is none */
  FILE *file;
  bool failed; /* the last record was not written; it has been said */
  nxr_points points; /* of the record that is being made */
} nxr_events_file;

/* Makes the folder where it is missing. `n_steps` are behind the run. */
bool nxr_events_open(nxr_events_file *events, const char *directory, uint64_t n_steps, nxr_fault *fault);
void nxr_events_close(nxr_events_file *events);
/* Writes what was added. Where that fails, a warning is printed once, and the training goes on. */
void nxr_events_write(nxr_events_file *events, uint64_t step);

#endif
