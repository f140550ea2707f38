/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/maker.h"

#include "runtime/data/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool nxd_maker_open(nxd_maker *maker, const nxd_recipe *recipe, nxr_fault *fault) {
  *maker = (nxd_maker){.recipe = recipe};
  maker->encoder = recipe->tokenizer ? nxt_encoder_open(recipe->tokenizer) : NULL;
  return recipe->tokenizer == NULL || maker->encoder || nxr_fault_set(fault, "out of memory");
}

void nxd_maker_close(nxd_maker *maker) {
  if (maker->encoder) nxt_encoder_close(maker->encoder);
  free(maker->ids.items);
  nxd_buffer_free(&maker->tokens);
  nxd_buffer_free(&maker->weights);
  nxd_buffer_free(&maker->text);
  nxd_parser_free(&maker->parser);
}

static void make_empty(nxd_made *made) {
  made->tokens.n = made->weights.n = made->rewards.n = made->documents.n = 0;
  made->n_skipped = made->n_empty = made->n_long = made->n_text_bytes = made->n_text_tokens = 0;
  made->first_skipped[0] = '\0';
}

void nxd_made_free(nxd_made *made) {
  nxd_buffer_free(&made->tokens);
  nxd_buffer_free(&made->weights);
  nxd_buffer_free(&made->rewards);
  nxd_buffer_free(&made->documents);
}

/* -- documents
 * ------------------------------------------------------------------------------------------------ */

static bool check_ids(const nxd_recipe *recipe, const int64_t *tokens, size_t n, nxr_fault *fault) {
  int64_t bound = recipe->vocab ? (int64_t)recipe->vocab : INT64_C(1) << 31;
  for (size_t i = 0; i < n; i++) {
    if (tokens[i] == NXD_NO_ID) return nxr_fault_set(fault, "its token %zu is null, and no id", i);
    if (tokens[i] < 0 || tokens[i] >= bound)
      return nxr_fault_set(fault, "its token %zu is %lld, and ids are from 0 to %lld", i,
                           (long long)tokens[i], (long long)bound - 1);
  }
  return true;
}

static void store_ids(uint32_t token_bytes, const int64_t *tokens, size_t n, void *to) {
  if (token_bytes == 2)
    for (size_t i = 0; i < n; i++) ((uint16_t *)to)[i] = (uint16_t)tokens[i];
  else
    for (size_t i = 0; i < n; i++) ((int32_t *)to)[i] = (int32_t)tokens[i];
}

/* Tokens in the type of the dataset; types of 2 and of 4 bytes. */
static bool add_tokens(const nxd_recipe *recipe, const int64_t *tokens, const float *weights, size_t n,
                       nxd_made *made, nxr_fault *fault) {
  uint32_t token_bytes = nxr_token_type_of(recipe->type_code)->bytes;
  void *to = nxd_buffer_extend(&made->tokens, n * token_bytes);
  float *weights_to =
      recipe->maker->weights ? nxd_buffer_extend(&made->weights, n * sizeof *weights_to) : NULL;
  if (to == NULL || (recipe->maker->weights && weights_to == NULL))
    return nxr_fault_set(fault, "out of memory");
  store_ids(token_bytes, tokens, n, to);
  for (size_t i = 0; weights_to && i < n; i++) weights_to[i] = weights ? weights[i] : 1.0F;
  return true;
}

static bool weighs_nothing(const float *weights, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (weights[i] != 0) return false;
  return true;
}

static bool add_reward(const nxd_maker *maker, nxd_made *made) {
  return !maker->recipe->rewarded ||
         nxd_buffer_append(&made->rewards, &maker->reward, sizeof maker->reward);
}

bool nxd_add_document(nxd_maker *maker, const int64_t *tokens, const float *weights, size_t n, nxd_made *made,
                      nxr_fault *fault) {
  const nxd_recipe *recipe = maker->recipe;
  const size_t n_end = recipe->end >= 0 && !maker->goes_on;
  const bool too_long = recipe->most_tokens > 0 && n + n_end > recipe->most_tokens;
  if (!check_ids(recipe, tokens, n, fault)) return false;
  bool is_empty = !recipe->whole && (n == 0 || (weights && weighs_nothing(weights, n)));
  if (is_empty && !maker->goes_on && !maker->goes_back) {
    made->n_empty++;
    return true;
  }
  if (too_long && !recipe->cut) {
    made->n_long++;
    return true;
  }
  if (too_long) n = recipe->most_tokens - n_end;
  const nxd_length length = {.n_tokens = n + n_end, .goes_on = maker->goes_on};
  return add_tokens(recipe, tokens, weights, n, made, fault) &&
         add_tokens(recipe, &recipe->end, &recipe->maker->end_weight, n_end, made, fault) &&
         ((nxd_buffer_append(&made->documents, &length, sizeof length) && add_reward(maker, made)) ||
          nxr_fault_set(fault, "out of memory"));
}

/* -- batches
 * -------------------------------------------------------------------------------------------------- */

static void note_skipped(const nxd_record *record, const char *name, const char *what, nxd_made *made) {
  if (made->n_skipped++ > 0) return;
  if (record->line > 0)
    snprintf(made->first_skipped, sizeof made->first_skipped, "%s:%llu: %s", name,
             (unsigned long long)record->line, what);
  else snprintf(made->first_skipped, sizeof made->first_skipped, "%s: %s", name, what);
}

/* What half of a record's documents has been made is taken back. */
static void take_back(nxd_made *made, const nxd_made *before) {
  made->tokens.n = before->tokens.n, made->weights.n = before->weights.n;
  made->rewards.n = before->rewards.n, made->documents.n = before->documents.n;
}

/* true and false, or a number, by itself or in a list. */
static bool read_reward(nxd_maker *maker, const nxd_value *values, nxr_fault *fault) {
  const nxd_wanted *wanted = &maker->recipe->wanted;
  if (!maker->recipe->rewarded) return true;
  const nxd_value *value = &values[wanted->n_fields - 1];
  const char *name = wanted->fields[wanted->n_fields - 1];
  bool json = value->form == NXD_VALUE, listed = value->form == NXD_IDS && value->n == 1;
  if (json && json_is_boolean(value->json)) maker->reward = json_is_true(value->json) ? 1.0F : -1.0F;
  else if (json && json_is_number(value->json)) maker->reward = (float)json_number_value(value->json);
  else if (listed) maker->reward = (float)value->ids[0];
  else return nxr_fault_set(fault, "its %s is neither true nor false, and no number", name);
  return (isfinite(maker->reward) && maker->reward != 0) ||
         nxr_fault_set(fault,
                       "its %s is %g: an answer is wanted above 0, or where it is true, and else unwanted",
                       name, (double)maker->reward);
}

bool nxd_maker_run(nxd_maker *maker, const nxd_batch *batch, const char *const *names, nxd_made *made,
                   nxr_fault *fault) {
  nxd_value values[NXD_MAX_FIELDS];
  make_empty(made);
  for (size_t i = 0; i < batch->n; i++) {
    const nxd_record *record = &batch->records[i];
    nxr_fault wrong = {""};
    const nxd_made before = *made;
    maker->goes_on = record->goes_on, maker->goes_back = record->goes_back;
    if (nxd_values_read(&maker->parser, batch, record, &maker->recipe->wanted, values, &wrong) &&
        read_reward(maker, values, &wrong) && maker->recipe->maker->make(maker, values, made, &wrong))
      continue;
    if (strcmp(wrong.text, "out of memory") == 0) return nxr_fault_set(fault, "out of memory");
    take_back(made, &before);
    note_skipped(record, names[record->file], wrong.text, made);
  }
  return true;
}
