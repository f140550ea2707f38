/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a dataset: one thread reads records and writes documents, in order, and others make documents of
 * records. What is written depends on the inputs and the recipe alone, not on the number of threads. Memory
 * does not grow with the inputs, but with their longest record. */
#ifndef NXD_BUILD_H
#define NXD_BUILD_H

#include "datasets/files.h"
#include "datasets/maker.h"
#include "datasets/pieces.h"
#include "datasets/writer.h"

typedef struct nxd_build {
  const nxd_files *files;
  const nxd_recipe *recipe;
  const char *prefix;
  const char *tokenizer; /* the recipe's file or folder; NULL or "": none */
  const char *key;       /* of inputs and recipe: an unfinished build of the same key is gone on with */
  nxd_piece piece;       /* of all records */
  uint64_t most_records; /* that are read, from the first; 0: all */
  uint32_t n_workers;    /* 0: one for each core */
  bool skip;             /* malformed records are left out; else the first ends the build */
  bool force, watched;   /* watched: progress is shown on standard error */
} nxd_build;

/* `standing` receives what was read and written. */
bool nxd_build_run(const nxd_build *build, nxd_standing *standing, nxr_fault *fault);

#endif
