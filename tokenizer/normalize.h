/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers: steps that each make another text of a text. */
#ifndef NXT_NORMALIZE_H
#define NXT_NORMALIZE_H

#include "tokenizer/encoder.h"

/* A normal form is at most so many times as long as its text, and a little. */
enum { NXT_GROWTH = 64, NXT_GROWTH_FREE = 1 << 16 };

/* The normal form: `text` itself, or a buffer of the encoder's that the next call overwrites. Of nothing
 * it is nothing: steps see texts that have characters. */
bool nxt_normalize(nxt_encoder *encoder, const nxt_text *text, const nxt_text **form);

#endif
