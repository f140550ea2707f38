/* SPDX-License-Identifier: Apache-2.0 */
/* The forms in which findings go out one by one; nxc_sink_print chooses one. */
#ifndef NXC_RENDER_H
#define NXC_RENDER_H

#include "compiler/diagnostics/diagnostics.h"

void nxc_render_text(const nxc_finding *finding, bool colour, FILE *out);

struct json_t;
/* All findings as one array, a Jansson value of its own. */
struct json_t *nxc_findings_to_json(const nxc_sink *sink);
/* Text that is not UTF-8 loses its other bytes: JSON cannot hold them. NULL becomes null. */
struct json_t *nxc_json_text(const char *text);

#endif
