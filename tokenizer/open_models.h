/* SPDX-License-Identifier: Apache-2.0 */
/* Models, as readers of several formats make them. */
#ifndef NXT_OPEN_MODELS_H
#define NXT_OPEN_MODELS_H

#include "tokenizer/open_steps.h"

/* {"text": id, ...} */
bool nxt_read_vocab(nxt_reading *reading, const json_t *vocab);
/* Pairs of tokens, the first to merge first; the vocabulary is there. */
bool nxt_read_merges(nxt_reading *reading, const json_t *merges);
/* Where the last split makes characters of bytes and the model is of pairs, the model takes the bytes themselves. */
void nxt_bpe_of_bytes(nxt_tokenizer *tokenizer);

#endif
