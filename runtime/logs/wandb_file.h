/* SPDX-License-Identifier: Apache-2.0 */
/* An offline run for Weights & Biases, which its client uploads (`wandb sync`).
 *
 * It is a file DIR/wandb/offline-run-DATE_TIME-ID/run-ID.wandb: ":W&B", u16 0xbee1, u8 0, and records in
 * LevelDB's log format: blocks of 32 KiB; in them pieces of u32 CRC-32 over type and bytes, u16 length, u8
 * type (1 whole, 2 first, 3 middle, 4 last); fewer than 7 bytes at the end of a block are zeros. A record is
 * a protobuf Record (wandb.proto): a header, the run with its settings, a history and a summary for each
 * step, an exit. A file without an exit is that of a run which was killed; so the client takes it.
 *
 * The ID is drawn at the beginning of a run and kept in its folder, in wandb-resume.json: what a run that
 * resumes writes belongs to the same run there. */
#ifndef NXR_WANDB_FILE_H
#define NXR_WANDB_FILE_H

#include "runtime/files/fault.h"
#include "runtime/logs/points.h"
#include "schema/plan.h"

#include <stdio.h>

typedef struct nxr_wandb_file {
  char *path; /* NULL: there is none */
  FILE *file;
  bool failed;       /* a record was not written, and none is behind it; it has been said */
  uint64_t n_bytes;  /* of the file */
  int64_t n_records;
  double begun_s;    /* since 1970 */
  uint64_t step;     /* that is being made, */
  nxr_points points; /* and its numbers */
} nxr_wandb_file;

/* Of a plan that asks for one. `directory` is the run's; `n_steps` are behind it. */
bool nxr_wandb_open(nxr_wandb_file *wandb, const nx_plan *plan, const char *directory, uint64_t n_steps,
                    nxr_fault *fault);
/* What is added to its points from here on is of this step. Those of the step before are written, as one
 * row: there is one a step. Where that fails, a warning is printed once, and the training goes on. */
void nxr_wandb_step(nxr_wandb_file *wandb, uint64_t step);
/* Writes the last step, and the run's exit status. */
void nxr_wandb_close(nxr_wandb_file *wandb, int status);

#endif
