/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of a text or of token ids, and of token ids with labels. */
#include "datasets/maker.h"

#include "runtime/data/dataset.h"

/* Room for the tokens of a document; NULL: no memory. */
static int64_t *make_room(nxd_maker *maker, size_t n) {
  maker->tokens.n = 0;
  return nxd_buffer_extend(&maker->tokens, n * sizeof(int64_t));
}

static bool make_text(nxd_maker *maker, const nxd_value *value, nxd_made *made, nxr_fault *fault) {
  const nxd_recipe *recipe = maker->recipe;
  nx_fault wrong = {.text = ""};
  maker->ids.n = 0;
  if (maker->encoder &&
      !nxt_encode(maker->encoder, value->text, value->n, recipe->encoding, &maker->ids, &wrong))
    return nxr_fault_set(fault, "%s", wrong.text);
  size_t n = maker->encoder ? maker->ids.n : value->n;
  int64_t *tokens = make_room(maker, n);
  if (tokens == NULL) return nxr_fault_set(fault, "out of memory");
  for (size_t i = 0; i < n; i++)
    tokens[i] = maker->encoder ? (int64_t)maker->ids.items[i] : (uint8_t)value->text[i];
  size_t n_before = made->tokens.n, token_bytes = nxr_token_type_of(recipe->type_code)->bytes;
  if (!nxd_add_document(maker, tokens, NULL, n, made, fault)) return false;
  size_t n_added = (made->tokens.n - n_before) / token_bytes;
  if (n_added < n) return true; /* left out, or cut */
  made->n_text_bytes += value->n, made->n_text_tokens += n_added;
  return true;
}

static bool make_document(nxd_maker *maker, const nxd_value *values, nxd_made *made, nxr_fault *fault) {
  switch (values[0].form) {
  case NXD_STRING: return make_text(maker, &values[0], made, fault);
  case NXD_IDS: return nxd_add_document(maker, values[0].ids, NULL, values[0].n, made, fault);
  case NXD_NOTHING: return nxr_fault_set(fault, "its %s is null", maker->recipe->wanted.fields[0]);
  default:
    return nxr_fault_set(fault, "its %s is neither a text nor a list of token ids",
                         maker->recipe->wanted.fields[0]);
  }
}

const nxd_maker_kind nxd_make_documents = {"documents", false, make_document, 1};

/* -- labels
 * --------------------------------------------------------------------------------------------------- */

enum { NO_LABEL = -100 };

/* Labels stand beside the tokens that they are, or, shifted, beside those before: the first label tells
 * that stands between two tokens which are not the same. */
static bool are_shifted(const int64_t *tokens, const int64_t *labels, size_t n) {
  for (size_t i = 0; i + 1 < n; i++)
    if (labels[i] != NO_LABEL && tokens[i] != tokens[i + 1]) return labels[i] == tokens[i + 1];
  return false;
}

static bool weigh(const nxd_value *values, bool shifted, const int64_t *tokens, size_t n, float *weights,
                  nxr_fault *fault) {
  const int64_t *labels = values[1].ids;
  for (size_t i = 0; i < n; i++) {
    int64_t label = !shifted ? labels[i] : i > 0 ? labels[i - 1] : NO_LABEL;
    weights[i] = label == NO_LABEL ? 0.0F : 1.0F;
    if (label == NXD_NO_ID)
      return nxr_fault_set(fault, "label %zu is null: %d says that a token does not count", i, NO_LABEL);
    if (label != NO_LABEL && label != tokens[i])
      return nxr_fault_set(fault, "label %zu is %lld, and neither its token nor the next one", i,
                           (long long)label);
  }
  return true;
}

/* Shifted labels have the last token alone, behind all others. */
static bool make_labelled(nxd_maker *maker, const nxd_value *values, nxd_made *made, nxr_fault *fault) {
  size_t n = values[0].n;
  if (values[0].form != NXD_IDS || values[1].form != NXD_IDS || values[1].n != n)
    return nxr_fault_set(fault, "its %s and %s are not two lists of token ids, of one length",
                         maker->recipe->wanted.fields[0], maker->recipe->wanted.fields[1]);
  bool shifted = n > 1 && are_shifted(values[0].ids, values[1].ids, n), last = false;
  if (shifted) last = values[1].ids[n - 1] != NO_LABEL;
  int64_t *tokens = make_room(maker, n + last);
  maker->weights.n = 0;
  float *weights = nxd_buffer_extend(&maker->weights, (n + last) * sizeof *weights);
  if (tokens == NULL || weights == NULL) return nxr_fault_set(fault, "out of memory");
  for (size_t i = 0; i < n; i++) tokens[i] = values[0].ids[i];
  if (last) tokens[n] = values[1].ids[n - 1];
  return weigh(values, shifted, tokens, n + last, weights, fault) &&
         nxd_add_document(maker, tokens, weights, n + last, made, fault);
}

const nxd_maker_kind nxd_make_labelled = {"labelled", true, make_labelled, 1};
