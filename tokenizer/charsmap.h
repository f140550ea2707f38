/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's compiled normalizer: a double array of what is replaced, and what by. */
#ifndef NXT_CHARSMAP_H
#define NXT_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxt_charsmap nxt_charsmap;

/* NULL: the bytes are no map. */
nxt_charsmap *nxt_charsmap_open(const char *bytes, size_t n_bytes);
void nxt_charsmap_close(nxt_charsmap *map);

/* How many bytes at `at` are replaced, and what by: the shortest, or the longest, that it knows; 0: none. */
size_t nxt_charsmap_shortest(const nxt_charsmap *map, const char *at, const char *end, const char **form,
                             size_t *n_form);
size_t nxt_charsmap_longest(const nxt_charsmap *map, const char *at, const char *end, const char **form,
                            size_t *n_form);

#endif
