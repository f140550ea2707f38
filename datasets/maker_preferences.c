/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of answers to one prompt: two documents, the prompt and the chosen answer, then the prompt and the
 * rejected one, in which the answer alone weighs.
 *
 * Texts are made tokens of together, so that a token may reach across the border; it is the answer's then.
 * The tokenizer's beginning stands before the prompt and its end behind the answer, unless they are there.
 * Where only the last token counts a second end is it: at the first the value of the answer is read. Where
 * the prompt and the longer answer do not fit, the prompt is cut to prompt_tokens, and if that is not enough
 * the answers to what those leave. Messages become texts by the chat template; without a prompt it is what
 * both answers begin with. */
#include "datasets/maker.h"

#include <string.h>

typedef struct answer {
  size_t first, n_prompt, n; /* of the maker's tokens: where it stands, its prompt, and all */
} answer;

/* ---- tokens ---- */

static bool add_id(nxd_maker *maker, int64_t id, nxr_fault *fault) {
  return nxd_buffer_append(&maker->tokens, &id, sizeof id) || nxr_fault_set(fault, "out of memory");
}

static bool encode(nxd_maker *maker, const char *text, size_t n_bytes, nxr_fault *fault) {
  nx_fault wrong = {.text = ""};
  return nxt_encode(maker->encoder, text, n_bytes, 0, &maker->ids, &wrong) ||
         nxr_fault_set(fault, "%s", wrong.text);
}

/* How many of the text's first ids are the prompt's: one less where the last one is another by itself. */
static bool count_prompt(nxd_maker *maker, size_t n_bytes, size_t *n, nxr_fault *fault) {
  size_t all = maker->ids.n;
  if (!encode(maker, (const char *)maker->text.bytes, n_bytes, fault)) return false;
  size_t n_alone = maker->ids.n - all;
  const uint32_t *ids = maker->ids.items;
  bool same = n_alone <= all && memcmp(ids, ids + all, n_alone * sizeof *ids) == 0;
  *n = same ? n_alone : n_alone > 0 ? n_alone - 1 : 0;
  if (*n > all) *n = all;
  maker->ids.n = all;
  return true;
}

static bool add_last(nxd_maker *maker, answer *of, nxr_fault *fault) {
  uint32_t eos;
  of->n++;
  if (nxt_role_id(maker->recipe->tokenizer, NXT_EOS, &eos)) return add_id(maker, eos, fault);
  return nxr_fault_set(fault,
                       "the tokenizer names no end of a text (eos_token), at which the value of an answer "
                       "is read");
}

/* Of the maker's text, which begins with so many bytes of prompt. */
static bool make_tokens(nxd_maker *maker, size_t prompt_bytes, answer *of, nxr_fault *fault) {
  uint32_t bos, eos;
  const nxt_tokenizer *tokenizer = maker->recipe->tokenizer;
  maker->ids.n = 0;
  of->first = maker->tokens.n / sizeof(int64_t);
  if (!encode(maker, (const char *)maker->text.bytes, maker->text.n, fault) ||
      !count_prompt(maker, prompt_bytes, &of->n_prompt, fault))
    return false;
  const nxt_ids *ids = &maker->ids;
  bool begins = nxt_role_id(tokenizer, NXT_BOS, &bos) && (of->n_prompt == 0 || ids->items[0] != bos);
  bool ends =
      nxt_role_id(tokenizer, NXT_EOS, &eos) && (ids->n == of->n_prompt || ids->items[ids->n - 1] != eos);
  if (begins && !add_id(maker, bos, fault)) return false;
  for (size_t i = 0; i < ids->n; i++)
    if (!add_id(maker, ids->items[i], fault)) return false;
  if (ends && !add_id(maker, eos, fault)) return false;
  of->n_prompt += begins, of->n = ids->n + begins + ends;
  return !maker->recipe->last_counts || add_last(maker, of, fault);
}

/* ---- texts ---- */

static bool put_text(nxd_maker *maker, const char *text, size_t n, nxr_fault *fault) {
  return nxd_buffer_append(&maker->text, text, n) || nxr_fault_set(fault, "out of memory");
}

static bool make_of_texts(nxd_maker *maker, const nxd_value *prompt, const nxd_value *said, answer *of,
                          nxr_fault *fault) {
  maker->text.n = 0;
  return put_text(maker, prompt->text, prompt->n, fault) && put_text(maker, said->text, said->n, fault) &&
         make_tokens(maker, prompt->n, of, fault);
}

static bool make_of_messages(nxd_maker *maker, json_t *prompt, json_t *said, answer *of, nxr_fault *fault) {
  nxj_text text;
  size_t begin;
  if (maker->recipe->style->template == NULL)
    return nxr_fault_set(fault, "its answers are messages, and the tokenizer has no chat template: name one");
  if (!nxj_dialogue_answer(maker->recipe->style, prompt, said, &text, &begin, fault)) return false;
  maker->text.n = 0;
  bool good = put_text(maker, text.text, text.n_bytes, fault) && make_tokens(maker, begin, of, fault);
  nxj_text_free(&text);
  return good;
}

/* Messages [first, last) of a list, as a list; NULL: no memory. */
static json_t *part_of(const json_t *messages, size_t first, size_t last) {
  json_t *part = json_array();
  for (size_t i = first; part && i < last && i < json_array_size(messages); i++)
    json_array_append(part, json_array_get(messages, i));
  return part;
}

/* What both lists begin with, but for the last message of the shorter one. */
static size_t count_common(const json_t *one, const json_t *other) {
  size_t n = json_array_size(one), n_other = json_array_size(other), i = 0;
  if (n_other < n) n = n_other;
  while (i + 1 < n && json_equal(json_array_get(one, i), json_array_get(other, i))) i++;
  return i;
}

static bool make_of_dialogues(nxd_maker *maker, const nxd_value *values, answer of[2], nxr_fault *fault) {
  const json_t *said[2] = {values[1].json, values[2].json};
  bool given = values[0].form == NXD_VALUE;
  size_t n_common = given ? 0 : count_common(said[0], said[1]);
  bool good = true;
  for (int i = 0; i < 2 && good; i++) {
    json_t *prompt = given ? json_incref((json_t *)values[0].json) : part_of(said[i], 0, n_common);
    json_t *rest = part_of(said[i], n_common, SIZE_MAX);
    good = prompt && rest ? make_of_messages(maker, prompt, rest, &of[i], fault)
                          : nxr_fault_set(fault, "out of memory");
    json_decref(prompt);
    json_decref(rest);
  }
  return good;
}

static bool is_messages(const nxd_value *value) {
  return value->form == NXD_VALUE && json_is_array(value->json);
}

static bool make_both(nxd_maker *maker, const nxd_value *values, answer of[2], nxr_fault *fault) {
  const char *const *fields = maker->recipe->wanted.fields;
  bool prompted = values[0].form != NXD_NOTHING;
  if (is_messages(&values[1]) && is_messages(&values[2]) && (!prompted || is_messages(&values[0])))
    return make_of_dialogues(maker, values, of, fault);
  for (int i = 0; i < 3; i++)
    if (values[i].form != NXD_STRING)
      return nxr_fault_set(fault, "its %s, %s and %s are not three texts, or three lists of messages",
                           fields[0], fields[1], fields[2]);
  return make_of_texts(maker, &values[0], &values[1], &of[0], fault) &&
         make_of_texts(maker, &values[0], &values[2], &of[1], fault);
}

/* ---- what fits ---- */

static size_t less(size_t one, size_t other) {
  return one < other ? one : other;
}

/* Of an answer the longer one of which has so many tokens. */
static void cut(nxd_maker *maker, size_t longer, answer *of) {
  const nxd_recipe *recipe = maker->recipe;
  size_t most = recipe->most_tokens, most_prompt = less(recipe->prompt_tokens, most);
  if (most == 0 || of->n_prompt + longer <= most) return;
  int64_t *tokens = (int64_t *)(void *)maker->tokens.bytes + of->first;
  size_t said = of->n - of->n_prompt, stays = less(of->n_prompt, most_prompt);
  if (stays + longer > most) said = less(said, most - most_prompt);
  if (recipe->keep_end) of->first += of->n_prompt - stays;
  else memmove(tokens + stays, tokens + of->n_prompt, said * sizeof *tokens);
  of->n_prompt = stays, of->n = stays + said;
}

/* Whether a token of the answer has one before it, which can foresee it. */
static bool is_told(const answer *of) {
  return of->n > of->n_prompt && of->n > 1;
}

static bool add(nxd_maker *maker, const answer *of, nxd_made *made, nxr_fault *fault) {
  maker->weights.n = 0;
  float *weights = nxd_buffer_extend(&maker->weights, (of->n + 1) * sizeof *weights);
  if (weights == NULL) return nxr_fault_set(fault, "out of memory");
  size_t first = maker->recipe->last_counts ? of->n - 1 : of->n_prompt;
  for (size_t i = 0; i < of->n; i++) weights[i] = i < first ? 0.0F : 1.0F;
  const int64_t *tokens = (const int64_t *)(const void *)maker->tokens.bytes + of->first;
  return nxd_add_document(maker, tokens, weights, of->n, made, fault);
}

static bool make_preference(nxd_maker *maker, const nxd_value *values, nxd_made *made, nxr_fault *fault) {
  answer of[2] = {{0}};
  maker->tokens.n = 0;
  if (!make_both(maker, values, of, fault)) return false;
  size_t longer = of[0].n - of[0].n_prompt;
  if (of[1].n - of[1].n_prompt > longer) longer = of[1].n - of[1].n_prompt;
  for (int i = 0; i < 2; i++) cut(maker, longer, &of[i]);
  if (!is_told(&of[0]) || !is_told(&of[1])) { /* nothing to compare */
    made->n_empty++;
    return true;
  }
  return add(maker, &of[0], made, fault) && add(maker, &of[1], made, fault);
}

const nxd_maker_kind nxd_make_preferences = {"preferences", true, make_preference, .end_weight = 0};
