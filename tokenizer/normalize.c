/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize.h"

bool nxt_normalize(nxt_encoder *encoder, const nxt_text *text, const nxt_text **form) {
  const nxt_tokenizer *tokenizer = encoder->tokenizer;
  *form = text;
  for (uint32_t i = 0; i < tokenizer->n_normalizers; i++) {
    const nxt_normalizer *step = &tokenizer->normalizers[i];
    nxt_text *to = &encoder->forms[i % 2];
    to->n = 0;
    if (!step->run(encoder, step, *form, to)) return false;
    *form = to;
  }
  return true;
}
