/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode's normal forms. */
#ifndef NXT_NORMALIZE_FORMS_H
#define NXT_NORMALIZE_FORMS_H

#include "tokenizer/encoder.h"

enum { NXT_COMPOSE = 1, NXT_COMPATIBILITY = 2 };

/* A normalizer, whose options say which: none NFD, compose NFC, compatibility NFKD, both NFKC. Most text is
 * in normal form: only the places that are not are made anew. */
bool nxt_normalize_form(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from, nxt_text *to);

#endif
