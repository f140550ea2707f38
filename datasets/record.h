/* SPDX-License-Identifier: Apache-2.0 */
/* Records: what inputs are read as, one for each document, in batches that threads work on.
 *
 * A record is a text (a file, or a line of one), a line that is a JSON object, or a row of a table, of which
 * it holds the fields that were asked for. */
#ifndef NXD_RECORD_H
#define NXD_RECORD_H

#include "datasets/buffer.h"

enum { NXD_MAX_FIELDS = 4 };
/* Stands where a list of ids has nothing: no token has this id. */
static const int64_t NXD_NO_ID = INT64_MIN;

typedef enum nxd_form {
  NXD_NOTHING, /* null */
  NXD_STRING,  /* bytes of a text */
  NXD_IDS,     /* int64 token ids */
  NXD_VALUE    /* the text of a JSON value */
} nxd_form;

/* In the batch's bytes; `n` counts bytes, or ids. */
typedef struct nxd_field {
  nxd_form form;
  size_t at, n;
} nxd_field;

typedef struct nxd_record {
  uint64_t line; /* of its file, from 1; 0: the file is the record */
  uint32_t file; /* among the inputs */
  bool is_object; /* fields[0] is a JSON object, whose fields are meant */
  bool goes_on, goes_back; /* the next record, the one before, is of the same document */
  nxd_field fields[NXD_MAX_FIELDS];
} nxd_record;

typedef struct nxd_batch {
  nxd_record *records;
  size_t n, room;
  nxd_buffer bytes;
} nxd_batch;

/* A new record at the end, all fields nothing; NULL where there is no memory. */
nxd_record *nxd_batch_add(nxd_batch *batch);
/* Gives a record of the batch a field of `n` bytes or ids, which the caller fills in; NULL: no memory. */
void *nxd_batch_field(nxd_batch *batch, nxd_record *record, uint32_t which, nxd_form form, size_t n);
void nxd_batch_empty(nxd_batch *batch);
void nxd_batch_free(nxd_batch *batch);

#endif
