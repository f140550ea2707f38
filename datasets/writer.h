/* SPDX-License-Identifier: Apache-2.0 */
/* An indexed dataset that is being written: PREFIX.bin, PREFIX.idx and, where tokens have weights,
 * PREFIX.weights, where documents have rewards PREFIX.rewards. Its parts grow in a work folder beside it,
 * PREFIX.building, and get their names together when all of them are on disk. Memory does not grow with the
 * dataset.
 *
 * Several may be written to one prefix at once, each in a folder of its own (PREFIX.building-2, ...): of
 * those that may replace a dataset the last counts, of the others the first. A writer with a key goes on
 * where one with the same key was cut off, from its last commit. */
#ifndef NXD_WRITER_H
#define NXD_WRITER_H

#include "datasets/journal.h"
#include "runtime/data/dataset.h"

#include <stdio.h>

typedef enum nxd_part { NXD_DATA, NXD_SIZES, NXD_BORDERS, NXD_WEIGHTS, NXD_REWARDS, NXD_N_PARTS } nxd_part;

typedef struct nxd_writer_options {
  const char *prefix;
  const char *key; /* of what is written; NULL: it cannot be gone on with */
  uint8_t type_code;
  bool weights; /* of each token */
  bool rewards; /* of each document */
  bool force;   /* replaces a dataset that is there */
} nxd_writer_options;

typedef struct nxd_writer {
  nxd_writer_options is;
  char folder[NXD_PATH_BYTES]; /* "" until it is ours */
  int lock;                    /* of the journal */
  FILE *parts[NXD_N_PARTS];    /* NULL: none */
  uint32_t token_bytes;
  nxd_standing standing; /* what has been written, and read for it */
  bool committed;        /* a later writer can go on with it */
  bool named;            /* it has its name */
} nxd_writer;

bool nxd_writer_open(nxd_writer *writer, const nxd_writer_options *options, nxr_fault *fault);
/* Tokens of the writer's type, and their weights (NULL: 1 each), for the sequence at hand. */
bool nxd_writer_tokens(nxd_writer *writer, const void *tokens, const float *weights, uint64_t n,
                       nxr_fault *fault);
bool nxd_writer_end_sequence(nxd_writer *writer, uint64_t n_tokens, nxr_fault *fault);
/* With its reward, where the writer has any. */
bool nxd_writer_end_document(nxd_writer *writer, float reward, nxr_fault *fault);
/* What was written until now, and standing.place with it, outlasts the process. Between documents. */
bool nxd_writer_commit(nxd_writer *writer, nxr_fault *fault);
bool nxd_writer_finish(nxd_writer *writer, nxr_fault *fault);
/* Always. What was neither finished nor committed is removed. */
void nxd_writer_close(nxd_writer *writer);

#endif
