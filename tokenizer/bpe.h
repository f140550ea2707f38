/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-pair encoding: symbols, of which the neighbours that merge first are merged until none do.
 *
 * What merges, and in which order, is a table of pairs of ids. Files that say it otherwise (ranks of tokens,
 * scores of pieces) become such a table: a token merges of every two tokens that it can be cut into. */
#ifndef NXT_BPE_H
#define NXT_BPE_H

#include "tokenizer/parts.h"

/* Room for as many pairs. */
void nxt_bpe_begin(nxt_bpe *bpe, size_t n_pairs);
/* A pair that is there already gets the new rank. */
void nxt_bpe_add(nxt_bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t id);
void nxt_bpe_close(nxt_bpe *bpe);

/* The model's function, see parts.h. */
bool nxt_bpe_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids);

/* The character that stands for a byte in byte-level vocabularies. */
uint32_t nxt_byte_char(uint8_t byte);
/* The bytes that a token's characters stand for; false: one of them stands for none. */
bool nxt_bytes_of(const char *token, size_t n_bytes, nxt_text *bytes);
/* Ids of the tokens <0x00> to <0xFF>; false where one is missing (NXT_NONE). */
bool nxt_fallback_ids(const nxt_vocabulary *vocabulary, uint32_t ids[256]);

#endif
