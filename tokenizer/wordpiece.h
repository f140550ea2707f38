/* SPDX-License-Identifier: Apache-2.0 */
/* Models that look words up: WordPiece, the longest piece first, and whole words. */
#ifndef NXT_WORDPIECE_H
#define NXT_WORDPIECE_H

#include "tokenizer/parts.h"

/* The models' functions, see parts.h. */
bool nxt_wordpiece_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids);
bool nxt_wordlevel_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids);

#endif
