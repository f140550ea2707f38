/* SPDX-License-Identifier: Apache-2.0 */
/* Dialogues by a chat template, and prompts with their completions: what was answered weighs in the loss,
 * what was asked does not, unless the recipe counts it too. */
#include "datasets/maker.h"

#include <stdlib.h>
#include <string.h>

static bool encode(nxd_maker *maker, const char *text, size_t n_bytes, unsigned flags, nxr_fault *fault) {
  nx_fault wrong = {.text = ""};
  return nxt_encode(maker->encoder, text, n_bytes, flags, &maker->ids, &wrong) ||
         nxr_fault_set(fault, "%s", wrong.text);
}

/* The maker's ids as a document. Of the weights, where everything counts, none is asked. */
static bool add(nxd_maker *maker, const float *weights, nxd_made *made, nxr_fault *fault) {
  maker->tokens.n = 0;
  int64_t *tokens = nxd_buffer_extend(&maker->tokens, maker->ids.n * sizeof *tokens);
  if (tokens == NULL) return nxr_fault_set(fault, "out of memory");
  for (size_t i = 0; i < maker->ids.n; i++) tokens[i] = maker->ids.items[i];
  return nxd_add_document(maker, tokens, maker->recipe->all_tokens ? NULL : weights, maker->ids.n, made,
                          fault);
}

/* Room for the weights of the maker's ids, 0 each; NULL: no memory. */
static float *no_weights(nxd_maker *maker) {
  maker->weights.n = 0;
  float *weights = nxd_buffer_extend(&maker->weights, (maker->ids.n + 1) * sizeof *weights);
  if (weights) memset(weights, 0, (maker->ids.n + 1) * sizeof *weights);
  return weights;
}

static void weigh(float *weights, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) weights[i] = 1;
}

static bool is_text(const nxd_maker *maker, const nxd_value *values, uint32_t which, nxr_fault *fault) {
  return values[which].form == NXD_STRING ||
         nxr_fault_set(fault, "its %s is no text", maker->recipe->wanted.fields[which]);
}

/* -- prompts and completions ----------------------------------------------------------------------------- */

static bool add_role(nxd_maker *maker, nxt_role role, nxr_fault *fault) {
  uint32_t id;
  if (!nxt_role_id(maker->recipe->tokenizer, role, &id)) return true;
  nxt_ids *ids = &maker->ids;
  if (ids->n == ids->room) {
    uint32_t *items = reallocarray(ids->items, 2 * ids->room + 16, sizeof *items);
    if (items == NULL) return nxr_fault_set(fault, "out of memory");
    ids->items = items, ids->room = 2 * ids->room + 16;
  }
  ids->items[ids->n++] = id;
  return true;
}

/* The tokenizer's beginning, the prompt, the completion, and the tokenizer's end. */
static bool make_completion(nxd_maker *maker, const nxd_value *values, nxd_made *made, nxr_fault *fault) {
  if (!is_text(maker, values, 0, fault) || !is_text(maker, values, 1, fault)) return false;
  maker->ids.n = 0;
  if (!add_role(maker, NXT_BOS, fault) || !encode(maker, values[0].text, values[0].n, 0, fault)) return false;
  size_t asked = maker->ids.n;
  if (!encode(maker, values[1].text, values[1].n, 0, fault) || !add_role(maker, NXT_EOS, fault)) return false;
  float *weights = no_weights(maker);
  if (weights == NULL) return nxr_fault_set(fault, "out of memory");
  weigh(weights, asked, maker->ids.n);
  return add(maker, weights, made, fault);
}

const nxd_maker_kind nxd_make_completions = {"completions", true, make_completion, .end_weight = 0};

/* -- dialogues ------------------------------------------------------------------------------------------- */

/* How many tokens of the text's ids are those of its first bytes. Where a token lies across, `across` says
 * so: it is the one behind them. */
static bool count_tokens(nxd_maker *maker, const char *text, size_t n_bytes, size_t *n, bool *across,
                         nxr_fault *fault) {
  size_t all = maker->ids.n;
  if (!encode(maker, text, n_bytes, 0, fault)) return false;
  size_t n_here = maker->ids.n - all;
  const uint32_t *ids = maker->ids.items;
  for (*n = 0; *n < n_here && *n < all && ids[*n] == ids[all + *n];) ++*n;
  *across = *n < n_here;
  maker->ids.n = all;
  return true;
}

/* A token that a span touches is of the span. */
static bool weigh_span(nxd_maker *maker, const char *text, nxj_span span, float *weights, nxr_fault *fault) {
  size_t begin, end;
  bool begins_within, ends_within;
  if (!count_tokens(maker, text, span.begin, &begin, &begins_within, fault) ||
      !count_tokens(maker, text, span.end, &end, &ends_within, fault))
    return false;
  if (span.end > span.begin) weigh(weights, begin, end + (ends_within && end < maker->ids.n));
  return true;
}

static bool weigh_text(nxd_maker *maker, const nxj_text *text, nxd_made *made, nxr_fault *fault) {
  maker->ids.n = 0;
  if (!encode(maker, text->text, text->n_bytes, 0, fault)) return false;
  float *weights = no_weights(maker);
  if (weights == NULL) return nxr_fault_set(fault, "out of memory");
  for (size_t i = 0; i < text->n_spans && !maker->recipe->all_tokens; i++)
    if (!weigh_span(maker, text->text, text->spans[i], weights, fault)) return false;
  return add(maker, weights, made, fault);
}

static bool make_dialogue(nxd_maker *maker, const nxd_value *values, nxd_made *made, nxr_fault *fault) {
  nxj_text text;
  json_t *messages = values[0].form == NXD_VALUE ? (json_t *)values[0].json : NULL; /* this thread's own */
  json_t *tools = values[1].form == NXD_VALUE ? (json_t *)values[1].json : NULL;
  if (messages == NULL)
    return nxr_fault_set(fault, "its %s is no list of messages", maker->recipe->wanted.fields[0]);
  if (!nxj_dialogue_render(maker->recipe->style, messages, tools, !maker->recipe->all_tokens, &text, fault))
    return false;
  bool good = weigh_text(maker, &text, made, fault);
  nxj_text_free(&text);
  return good;
}

const nxd_maker_kind nxd_make_dialogues = {"dialogues", true, make_dialogue, .end_weight = 0};
