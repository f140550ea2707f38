/* SPDX-License-Identifier: Apache-2.0 */
/* Models, as readers of several formats make them. */
#ifndef NXT_OPEN_MODELS_H
#define NXT_OPEN_MODELS_H

#include "tokenizer/open_steps.h"

/* {"text": id, ...} */
bool nxt_read_vocab(nxt_reading *reading, const json_t *vocab);
/* The model's unk_token. */
bool nxt_read_unknown(nxt_reading *reading, const json_t *model);
bool nxt_read_bpe(nxt_reading *reading, const json_t *model);
/* GPT-2's vocab.json, with merges.txt beside it. */
bool nxt_open_vocab_json(nxt_reading *reading, const json_t *vocab);
/* Where the last split makes characters of bytes and the model is of pairs, the model takes the bytes
 * themselves. */
void nxt_bpe_of_bytes(nxt_tokenizer *tokenizer);
/* Pairs from the tokens' ranks by id (NXT_NONE: it neither merges nor is merged): a token merges of every two
 * tokens that it can be cut into. */
bool nxt_bpe_of_tokens(nxt_reading *reading, const uint32_t *ranks);
/* Where no pair merges across the begin of a blank, words end there: they are short then, and come again. */
void nxt_add_blank_split(nxt_tokenizer *tokenizer);

#endif
