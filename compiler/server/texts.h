/* SPDX-License-Identifier: Apache-2.0 */
/* What an editor has open: texts by URI, changed piece by piece, and places in them as the protocol counts
 * them (lines from 0 that end in LF, CR or CRLF; characters as UTF-16 units). */
#ifndef NXC_SERVER_TEXTS_H
#define NXC_SERVER_TEXTS_H

#include "compiler/diagnostics/source.h"

#include <jansson.h>

typedef struct nxc_open_text {
  char *uri, *path; /* of no file: the URI itself */
  char *text;
  size_t n_bytes;
  json_int_t version;
} nxc_open_text;

typedef struct nxc_texts_open nxc_texts_open;

nxc_texts_open *nxc_texts_open_new(void);
void nxc_texts_open_free(nxc_texts_open *texts);
size_t nxc_texts_open_count(const nxc_texts_open *texts);
nxc_open_text *nxc_texts_open_at(const nxc_texts_open *texts, size_t index);
nxc_open_text *nxc_texts_open_find(const nxc_texts_open *texts, const char *uri);
/* Opens it, or replaces what is open; NULL where the URI says nothing. */
nxc_open_text *nxc_texts_open_put(nxc_texts_open *texts, const char *uri, const char *text,
                                  json_int_t version);
void nxc_texts_open_close(nxc_texts_open *texts, const char *uri);
/* One of the protocol's changes: a range and what stands there then, or the whole text. False where it makes
 * no sense; the text is as it was. */
bool nxc_open_text_change(nxc_open_text *open, const json_t *change);

/* The byte that a position stands before; at most the end of its line. */
size_t nxc_text_offset_json(const char *text, size_t n_bytes, const json_t *position);
json_t *nxc_text_range(const char *text, size_t n_bytes, size_t begin, size_t end);
/* The URI of a path; the caller frees it. */
char *nxc_uri_of_path(const char *path);

#endif
