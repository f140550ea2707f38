/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize.h"

#include "schema/plan_check.h"

bool nxt_normalize(nxt_encoder *encoder, const nxt_text *text, const nxt_text **form) {
  const nxt_tokenizer *tokenizer = encoder->tokenizer;
  *form = text;
  encoder->start_removed = false;
  for (uint32_t i = 0; i < tokenizer->n_normalizers && (*form)->n > 0; i++) {
    const nxt_normalizer *step = &tokenizer->normalizers[i];
    nxt_text *to = &encoder->forms[i % 2];
    to->n = 0;
    encoder->most_form = NXT_GROWTH * text->n + NXT_GROWTH_FREE;
    if (!step->run(encoder, step, *form, to)) return false;
    if (to->n > encoder->most_form)
      return nx_fault_set(encoder->fault, 0, "the normal form of a text is too long");
    *form = to;
  }
  return true;
}
