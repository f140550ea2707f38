/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers: steps that each make another text of a text. */
#ifndef NXT_NORMALIZE_H
#define NXT_NORMALIZE_H

#include "tokenizer/encoder.h"

/* The normal form: `text` itself, or a buffer of the encoder's that the next call overwrites. */
bool nxt_normalize(nxt_encoder *encoder, const nxt_text *text, const nxt_text **form);

#endif
