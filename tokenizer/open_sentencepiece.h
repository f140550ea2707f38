/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's models: a message of protocol buffers. */
#ifndef NXT_OPEN_SENTENCEPIECE_H
#define NXT_OPEN_SENTENCEPIECE_H

#include "tokenizer/open.h"

bool nxt_open_sentencepiece(nxt_reading *reading, const nxt_text *text);

#endif
