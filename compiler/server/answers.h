/* SPDX-License-Identifier: Apache-2.0 */
/* What the server answers, one function for each request of the protocol: an analysis and the request's
 * parameters in, a Jansson value out, which the caller releases; NULL is null. */
#ifndef NXC_SERVER_ANSWERS_H
#define NXC_SERVER_ANSWERS_H

#include "compiler/server/analysis.h"

typedef json_t *nxc_answer(const nxc_analysis *analysis, const json_t *params);

nxc_answer nxc_answer_hover, nxc_answer_completion, nxc_answer_definition, nxc_answer_references,
    nxc_answer_symbols, nxc_answer_actions, nxc_answer_hints, nxc_answer_rename, nxc_answer_prepare_rename;

/* The findings of the text, as textDocument/publishDiagnostics takes them. */
json_t *nxc_answer_diagnostics(const nxc_analysis *analysis);
/* The byte that the request's position stands before. */
size_t nxc_answer_offset(const nxc_analysis *analysis, const json_t *params);

#endif
