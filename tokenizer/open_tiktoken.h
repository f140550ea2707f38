/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tiktoken: lines of a token's bytes in base64 and its rank; and Mistral's tekken.json, which says
 * the pattern and the special tokens too; and Megatron's list, which says neither. */
#ifndef NXT_OPEN_TIKTOKEN_H
#define NXT_OPEN_TIKTOKEN_H

#include "tokenizer/open.h"

/* Whether the first line is a token and a rank. */
bool nxt_is_tiktoken(const nxt_text *text);
bool nxt_open_tiktoken(nxt_reading *reading, const nxt_text *text);
bool nxt_open_tekken(nxt_reading *reading, const json_t *root);
/* Megatron's list. */
bool nxt_open_rank_list(nxt_reading *reading, const json_t *list);

#endif
