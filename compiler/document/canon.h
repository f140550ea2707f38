/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text for programs: canon (one typed line) and JSON.
 *
 * Canon: i<dec>, f<repr>, s<json string>, true, false, null, b<base64>, [..,..], {k:v,...} in order, made for
 * strcmp. JSON has no word for infinities, not-a-number and bytes: they are {"$float": "inf"} and {"$bytes":
 * base64}; keys that are not strings become their text. */
#ifndef NXC_CONFIG_CANON_H
#define NXC_CONFIG_CANON_H

#include "compiler/document/buffer.h"

void nxc_write_canon(nxc_buffer *text, const nxc_value *value);
void nxc_write_json(nxc_buffer *text, const nxc_value *value);
/* A JSON string with its quotes; non-ASCII characters stay as they are unless `ascii`. */
void nxc_write_json_string(nxc_buffer *text, const char *bytes, size_t n_bytes, bool ascii);
void nxc_write_base64(nxc_buffer *text, const char *bytes, size_t n_bytes);

#endif
