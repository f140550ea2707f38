/* SPDX-License-Identifier: Apache-2.0 */
/* Which special tokens begin and end texts, pad them, and stand for what is unknown; and tokens that are said
 * beside the tokenizer's file alone. */
#ifndef NXT_OPEN_ROLES_H
#define NXT_OPEN_ROLES_H

#include "tokenizer/open.h"

/* Reads tokenizer_config.json and special_tokens_map.json beside the tokenizer's file, where they are. What
 * they say counts more than what the tokenizer's own file said. Tokens that tokenizer_config.json names, and
 * that are no added ones yet, are added to those of a tokenizer.json or vocab.json, as transformers does. */
bool nxt_read_roles(nxt_reading *reading);

#endif
