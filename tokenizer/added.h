/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens: cut out of a text before anything else sees it, or out of its normal form. */
#ifndef NXT_ADDED_H
#define NXT_ADDED_H

#include "tokenizer/encoder.h"

/* A token that is there already gets what `token` says. */
void nxt_added_put(nxt_added_set *set, const char *text, size_t n_bytes, nxt_added token);
/* When all are there: `encoder` makes normal forms, with the tokenizer's normalizers. */
bool nxt_added_ready(nxt_added_set *set, nxt_encoder *encoder);
void nxt_added_close(nxt_added_set *set);
/* NULL: no added token has the id. */
const nxt_added *nxt_added_find(const nxt_added_set *set, uint32_t id);

/* What lies between added tokens. */
typedef bool (*nxt_between)(nxt_encoder *encoder, const char *text, size_t n_bytes, bool first);
/* Adds the ids of the tokens that `trie` finds, and calls `between` for the rest, in order. */
bool nxt_added_cut(nxt_encoder *encoder, const nxt_trie *trie, const char *text, size_t n_bytes, bool first,
                   nxt_between between);

#endif
