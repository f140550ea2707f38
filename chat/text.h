/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a template: code points, space, cases, and values written as Python's str, repr and json.dumps do.
 */
#ifndef NXJ_TEXT_H
#define NXJ_TEXT_H

#include "chat/value.h"

/* A text that grows. */
typedef struct nxj_buffer {
  char *text;
  size_t n, room;
} nxj_buffer;

void nxj_put(nxj_pool *pool, nxj_buffer *buffer, const char *text, size_t n_bytes);
void nxj_put_text(nxj_pool *pool, nxj_buffer *buffer, const char *text);
nxj_value nxj_buffer_value(nxj_pool *pool, nxj_buffer *buffer);

/* Of the first code point; a byte that begins none counts as one. */
size_t nxj_code_point_bytes(const char *text, size_t n_bytes);
size_t nxj_code_points(const char *text, size_t n_bytes);
/* Where code point `index` begins; n_bytes where there are no more than that. */
size_t nxj_code_point_at(const char *text, size_t n_bytes, size_t index);
/* The value of the first code point, and its bytes. */
uint32_t nxj_decode(const char *text, size_t n_bytes, size_t *n_used);
size_t nxj_encode(uint32_t code_point, char bytes[4]);
bool nxj_is_space(uint32_t code_point);
bool nxj_is_line_end(uint32_t code_point);

/* Without the space (or the code points of `which`) before it, behind it. */
nxj_value nxj_strip(nxj_value text, const nxj_value *which, bool before, bool behind);
/* With other letters. `title`: the first of each run of letters is upper. */
typedef enum nxj_case { NXJ_LOWER, NXJ_UPPER, NXJ_TITLE, NXJ_CAPITALIZED } nxj_case;
nxj_value nxj_cased(nxj_pool *pool, nxj_value text, nxj_case form);
bool nxj_is_ascii(nxj_value text);
/* Items [start, stop) of a list or text by `step`, as Python's slices; absent or none: from end to end. */
nxj_value nxj_slice(nxj_pool *pool, nxj_value value, nxj_value start, nxj_value stop, nxj_value step);

/* str(value). A text is itself. */
nxj_value nxj_str(nxj_pool *pool, nxj_value value);

typedef struct nxj_json_form {
  bool ascii, sorted;
  nxj_value indent; /* none, or an int, or a text */
  nxj_value item_separator, key_separator;
} nxj_json_form;

/* json.dumps(value). */
nxj_value nxj_json(nxj_pool *pool, nxj_value value, const nxj_json_form *form);

#endif
