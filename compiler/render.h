/* SPDX-License-Identifier: Apache-2.0 */
/* The three forms in which findings go out; nxc_sink_print chooses one. */
#ifndef NXC_RENDER_H
#define NXC_RENDER_H

#include "compiler/diagnostics.h"

const char *nxc_severity_name(nxc_severity severity); /* "error", "warning", "note" */
void nxc_render_text(const nxc_finding *finding, bool colour, FILE *out);
void nxc_render_github(const nxc_finding *finding, FILE *out);
/* The whole list, as one array. */
void nxc_render_json(const nxc_sink *sink, FILE *out);

struct json_t;
/* The same array as a Jansson value of its own, for larger objects that hold it. */
struct json_t *nxc_findings_to_json(const nxc_sink *sink);

#endif
