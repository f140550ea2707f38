/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check.h"
#include "tokenizer/added.h"
#include "tokenizer/memory.h"
#include "tokenizer/normalize.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

nxt_encoder *nxt_encoder_open(const nxt_tokenizer *tokenizer) {
  nxt_encoder *encoder = nxt_new(1, sizeof *encoder);
  encoder->tokenizer = tokenizer;
  encoder->matcher = nxt_matcher_open();
  encoder->scratch = nxt_new(tokenizer->n_scratch, sizeof *encoder->scratch);
  return encoder;
}

void nxt_encoder_close(nxt_encoder *encoder) {
  if (encoder == NULL) return;
  nxt_matcher_close(encoder->matcher);
  for (uint32_t i = 0; i < encoder->tokenizer->n_scratch; i++) free(encoder->scratch[i].items);
  free(encoder->scratch);
  free(encoder->repaired.items);
  free(encoder->part.items);
  for (int i = 0; i < 2; i++) {
    free(encoder->forms[i].items);
    free(encoder->pieces[i].text.items);
    free(encoder->pieces[i].ends.items);
  }
  nxt_cache_close(&encoder->cache);
  free(encoder->word.items);
  free(encoder->symbols);
  free(encoder->heap);
  free(encoder->best);
  free(encoder->decoded.items);
  free(encoder->chars);
  free(encoder);
}

static bool split_part(nxt_encoder *encoder, const char *text, size_t n_bytes, bool first) {
  const nxt_split *step = encoder->tokenizer->splits;
  return step->run(encoder, step, text, n_bytes, first);
}

/* What lies between the added tokens of the text itself. */
static bool encode_part(nxt_encoder *encoder, const char *text, size_t n_bytes, bool first) {
  const nxt_text plain = {(char *)text, n_bytes, n_bytes}, *form;
  if (!nxt_normalize(encoder, &plain, &form)) return false;
  if (form->n == 0) return true;
  return nxt_added_cut(encoder, &encoder->tokenizer->added.normalized, form->items, form->n,
                       first && !encoder->start_removed, split_part);
}

static void add_all(nxt_ids *to, const nxt_ids *ids) {
  if (ids->n > 0) memcpy(nxt_ids_reserve(to, ids->n), ids->items, ids->n * sizeof *ids->items);
  to->n += ids->n;
}

bool nxt_encode(nxt_encoder *encoder, const char *text, size_t n_bytes, unsigned flags, nxt_ids *ids,
                nx_fault *fault) {
  const nxt_tokenizer *tokenizer = encoder->tokenizer;
  size_t n_before = ids->n;
  if (n_bytes > INT32_MAX / 4)
    return nx_fault_set(fault, 0, "a text of %zu bytes is too long to be encoded at once", n_bytes);
  encoder->ids = ids;
  encoder->fault = fault;
  encoder->flags = flags;
  if (n_bytes > 0 && nxt_valid_bytes(text, n_bytes) < n_bytes) {
    encoder->repaired.n = 0;
    nxt_add_repaired(&encoder->repaired, text, n_bytes);
    text = encoder->repaired.items;
    n_bytes = encoder->repaired.n;
  }
  if (flags & NXT_ADD_SPECIAL) add_all(ids, &tokenizer->before);
  if (n_bytes > 0 && !nxt_added_cut(encoder, &tokenizer->added.raw, text, n_bytes, true, encode_part)) {
    ids->n = n_before;
    return false;
  }
  if (flags & NXT_ADD_SPECIAL) add_all(ids, &tokenizer->after);
  return true;
}
