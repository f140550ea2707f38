/* SPDX-License-Identifier: Apache-2.0 */
/* Base64, as tokenizers' files write bytes. */
#ifndef NXT_BASE64_H
#define NXT_BASE64_H

#include "tokenizer/tokenizer.h"

/* Adds the bytes; false: the text is no base64. */
bool nxt_base64(const char *text, size_t n_chars, nxt_text *bytes);

#endif
