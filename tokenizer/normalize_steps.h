/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers that are not Unicode's forms. */
#ifndef NXT_NORMALIZE_STEPS_H
#define NXT_NORMALIZE_STEPS_H

#include "tokenizer/encoder.h"

enum { NXT_STRIP_LEFT = 1, NXT_STRIP_RIGHT = 2 };

/* Each character as the step's `map` says. */
bool nxt_normalize_chars(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                         nxt_text *to);
/* What maps a character; NXT_NONE: it is left out. */
uint32_t nxt_map_clean(uint32_t c);     /* BERT's: no controls, any blank is a blank */
uint32_t nxt_map_nmt(uint32_t c);       /* the same of neural machine translation's rules */
uint32_t nxt_map_no_marks(uint32_t c);
uint32_t nxt_map_no_accents(uint32_t c); /* marks that take no room */

bool nxt_normalize_lowercase(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                             nxt_text *to);
/* Blanks around each Chinese character. */
bool nxt_normalize_chinese(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                           nxt_text *to);
/* Without blanks at the ends that the options name. */
bool nxt_normalize_strip(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                         nxt_text *to);
bool nxt_normalize_replace(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                           nxt_text *to);
bool nxt_normalize_prepend(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                           nxt_text *to);
/* Characters for bytes. */
bool nxt_normalize_bytes(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                         nxt_text *to);
/* SentencePiece's map, as tokenizer.json's Precompiled takes it: of a short grapheme the shortest match
 * stands for all of it. */
bool nxt_normalize_precompiled(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                               nxt_text *to);

#endif
