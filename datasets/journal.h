/* SPDX-License-Identifier: Apache-2.0 */
/* How far a dataset that is being written has come: a small JSON file, replaced as a whole. */
#ifndef NXD_JOURNAL_H
#define NXD_JOURNAL_H

#include "runtime/files/fault.h"

#include <stddef.h>
#include <stdint.h>

enum { NXD_PATH_BYTES = 4096 };

/* Where the next record is read: in which of the inputs, how many bytes (or rows) and lines into it. */
typedef struct nxd_place {
  uint64_t file, offset, line;
} nxd_place;

typedef struct nxd_standing {
  uint64_t n_tokens, n_sequences, n_documents; /* written */
  nxd_place place;
  uint64_t n_records;          /* read */
  uint64_t n_skipped, n_empty; /* of them, not written: malformed; without a token */
  uint64_t n_long;             /* left out as too long */
  uint64_t n_text_bytes, n_text_tokens; /* of texts that were written whole, and what became of them */
  bool complete;               /* nothing is missing but the names */
  char first_skipped[512];     /* what was wrong with it */
} nxd_standing;

typedef enum nxd_journal_found { NXD_JOURNAL_NONE, NXD_JOURNAL_OURS, NXD_JOURNAL_OTHERS } nxd_journal_found;

/* `folder`/journal; of a journal of another key nothing is read. A damaged one is none. */
nxd_journal_found nxd_journal_read(const char *folder, const char *key, nxd_standing *standing);
bool nxd_journal_write(const char *folder, const char *key, const nxd_standing *standing, nxr_fault *fault);

#endif
