/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's own normalizer: its map of characters, blanks as U+2581, and one blank before the text. */
#ifndef NXT_NORMALIZE_SENTENCEPIECE_H
#define NXT_NORMALIZE_SENTENCEPIECE_H

#include "tokenizer/encoder.h"

#define NXT_BLANK "\xe2\x96\x81" /* U+2581 */

enum {
  NXT_DUMMY_PREFIX = 1,  /* a blank before the text, or behind it */
  NXT_ONE_BLANK = 2,     /* of several blanks one is left, at the ends none */
  NXT_ESCAPE_BLANKS = 4, /* they are U+2581 */
  NXT_BLANKS_BEHIND = 8
};

/* What the step's trie finds stays as it is. */
bool nxt_normalize_sentencepiece(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                                 nxt_text *to);

#endif
