/* SPDX-License-Identifier: Apache-2.0 */
/* Reads inputs one after another, as batches of records. */
#ifndef NXD_READER_H
#define NXD_READER_H

#include "datasets/files.h"
#include "datasets/journal.h"
#include "datasets/pieces.h"

typedef struct nxd_reader {
  const nxd_files *files;
  const nxd_wanted *wanted;
  nxd_input input;  /* kind NULL: none is open */
  nxd_place place;  /* behind the last record */
  uint64_t n_left;  /* records that may still be read */
  uint64_t n_used;  /* bytes of the inputs that are done */
  uint8_t *chosen;  /* a byte for each record, 0 of those that are left out; NULL: none is */
  uint64_t n_read;  /* of those, from the first */
} nxd_reader;

/* From a place on. On failure nothing stays open. */
bool nxd_reader_open(nxd_reader *reader, const nxd_files *files, const nxd_wanted *wanted,
                     const nxd_place *place, uint64_t most_records, nxr_fault *fault);
/* Of a piece of all records: they are counted first. */
bool nxd_reader_open_piece(nxd_reader *reader, const nxd_files *files, const nxd_wanted *wanted,
                           const nxd_place *place, const nxd_piece *piece, nxr_fault *fault);
/* What comes next; a batch that stays empty is the end. */
bool nxd_reader_fill(nxd_reader *reader, nxd_batch *batch, nxr_fault *fault);
/* Bytes of the files. */
uint64_t nxd_reader_used(const nxd_reader *reader);
void nxd_reader_close(nxd_reader *reader);

#endif
