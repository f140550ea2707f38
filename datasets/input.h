/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs: files of several kinds, read as records.
 *
 * A kind is a table of functions. An input belongs to one thread; the records that it gives are the caller's.
 */
#ifndef NXD_INPUT_H
#define NXD_INPUT_H

#include "datasets/record.h"
#include "runtime/files/fault.h"

typedef struct nxd_input nxd_input;

typedef enum nxd_given { NXD_GIVEN, NXD_AT_END, NXD_FAILED } nxd_given;

typedef struct nxd_input_kind {
  const char *name;
  const char *endings; /* of file names, separated by blanks */
  bool (*open)(nxd_input *input, nxr_fault *fault);
  /* Adds a record to the batch; what is wrong with one record alone is for those who read its fields. */
  nxd_given (*next)(nxd_input *input, nxd_batch *batch, nxr_fault *fault);
  /* Before the first record: to the place where input->offset and input->line once stood. */
  bool (*seek)(nxd_input *input, uint64_t offset, uint64_t line, nxr_fault *fault);
  uint64_t (*used)(const nxd_input *input); /* bytes of the file that have been read */
  void (*close)(nxd_input *input);
} nxd_input_kind;

/* What is wanted of records. */
typedef struct nxd_wanted {
  const char *fields[NXD_MAX_FIELDS]; /* names, with . between those of objects within objects */
  uint32_t n_fields;
  uint32_t optional;              /* bit i: field i may be missing */
  bool pieces;                    /* a long text may come as several records */
  uint64_t made_up_tokens, vocab; /* of documents that are made up */
} nxd_wanted;

struct nxd_input {
  const nxd_input_kind *kind;
  const char *path;
  const nxd_wanted *wanted;
  uint64_t offset, line; /* behind the last record, as the kind counts */
  void *state;           /* the kind's */
};

/* By the name of the kind, or NULL: by the ending of the path. A fault, with what can be done, where the
 * path's ending says that nothing here reads it. */
const nxd_input_kind *nxd_input_kind_named(const char *name);
const nxd_input_kind *nxd_input_kind_of(const char *path, nxr_fault *fault);

bool nxd_input_open(nxd_input *input, const nxd_input_kind *kind, const char *path, const nxd_wanted *wanted,
                    nxr_fault *fault);
void nxd_input_close(nxd_input *input);

extern const nxd_input_kind nxd_input_text, nxd_input_lines, nxd_input_jsonl, nxd_input_json,
    nxd_input_counting, nxd_input_arrow, nxd_input_indexed;

#endif
