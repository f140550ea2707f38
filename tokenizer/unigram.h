/* SPDX-License-Identifier: Apache-2.0 */
/* The unigram model: of all ways to cut a text into pieces the one whose scores add up to most. */
#ifndef NXT_UNIGRAM_H
#define NXT_UNIGRAM_H

#include "tokenizer/parts.h"

/* The model's function, see parts.h. */
bool nxt_unigram_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids);

#endif
