/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of all files as one document: json (our own array), sarif (SARIF 2.1.0), gitlab (Code Quality),
 * junit (a test for each file, as continuous integration shows them).
 *
 * A document is begun once, takes each file's findings in order, and is printed at the end. Columns count
 * Unicode characters. SARIF has what was suppressed too, with the reason given; the others do not. Notes are
 * in json and sarif where the sink has them, in gitlab and junit never. */
#ifndef NXC_RENDER_DOCUMENT_H
#define NXC_RENDER_DOCUMENT_H

#include "compiler/diagnostics/diagnostics.h"

typedef struct nxc_document_format nxc_document_format;
struct json_t;

/* NULL where findings of this format are printed one by one (render.h). */
const nxc_document_format *nxc_document_format_of(nxc_format format);
/* Released with json_decref by whoever does not print it. */
struct json_t *nxc_findings_begin(const nxc_document_format *format);
/* Findings without a place belong to `file`. */
void nxc_findings_add(const nxc_document_format *format, struct json_t *document, const nxc_sink *sink,
                      const char *file);
/* Prints and releases. */
void nxc_findings_end(const nxc_document_format *format, struct json_t *document, FILE *out);

/* The formats' own parts. */
struct json_t *nxc_sarif_begin(void);
void nxc_sarif_add(struct json_t *document, const nxc_sink *sink, const char *file);
/* A list of files with the texts of their findings; as XML in the end. */
void nxc_junit_add(struct json_t *document, const nxc_sink *sink, const char *file);
void nxc_junit_print(const struct json_t *document, FILE *out);
/* A text that stays the same when lines move: SHA-256 of file, id, message and how many the same came
 * before. */
void nxc_finding_fingerprint(const nxc_finding *finding, const char *file, unsigned n_same, char hex[65]);

#endif
