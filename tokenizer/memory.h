/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is there, or the process ends; and growing buffers, which are structs of items, n and room. */
#ifndef NXT_MEMORY_H
#define NXT_MEMORY_H

#include "tokenizer/tokenizer.h"

/* Zeroed. */
void *nxt_new(size_t n, size_t item_bytes);
/* As realloc; what is new is not zeroed. */
void *nxt_resize(void *items, size_t n, size_t item_bytes);
char *nxt_copy(const char *bytes, size_t n_bytes); /* with a NUL behind */

/* Room for n more; the address of the first of them, never NULL. */
char *nxt_text_reserve(nxt_text *text, size_t n);
void nxt_text_add(nxt_text *text, const char *bytes, size_t n);
uint32_t *nxt_ids_reserve(nxt_ids *ids, size_t n);
void nxt_ids_add(nxt_ids *ids, uint32_t id);

#endif
