/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/recipe.h"

#include <string.h>

enum { END_OF_BYTES = 256 };
enum { TYPE_INT32 = 4, TYPE_UINT16 = 8 };
static const uint64_t MOST_UINT16 = 65500; /* of a vocabulary, as Megatron-LM chooses */

/* By its text; or the tokenizer's own, or the one that GPT-2 and its kin have. */
static bool find_end(const nxd_recipe *recipe, const char *text, uint32_t *end) {
  const nxt_tokenizer *tokenizer = recipe->tokenizer;
  if (text[0] == '\0' && nxt_role_id(tokenizer, NXT_EOS, end)) return true;
  if (text[0] == '\0') text = "<|endoftext|>";
  return nxt_find(tokenizer, text, strlen(text), end);
}

static bool read_end(nxd_recipe *recipe, const char *tokenizer, const char *eod, nxr_fault *fault) {
  uint32_t end = END_OF_BYTES;
  if (recipe->tokenizer == NULL && eod[0] != '\0')
    return nxr_fault_set(fault, "--eod %s needs a tokenizer that has it", eod);
  if (recipe->tokenizer && !find_end(recipe, eod, &end))
    return eod[0] != '\0'
               ? nxr_fault_set(fault, "%s has no token %s", tokenizer, eod)
               : nxr_fault_set(fault, "%s does not say which token ends a text (eos_token): name it by --eod",
                               tokenizer);
  recipe->end = end;
  return true;
}

static bool open_tokenizer(nxd_recipe *recipe, const char *path, nxr_fault *fault) {
  nx_fault wrong = {.text = ""};
  recipe->tokenizer = nxt_open_with(path, recipe->unsaid, &wrong);
  return recipe->tokenizer != NULL || nxr_fault_set(fault, "%s", wrong.text);
}

bool nxd_recipe_open(nxd_recipe *recipe, const char *tokenizer, const char *eod, bool bytes,
                     nxr_fault *fault) {
  bool named = tokenizer && tokenizer[0] != '\0';
  recipe->end = -1;
  if (named && !open_tokenizer(recipe, tokenizer, fault)) return false;
  if (eod && !read_end(recipe, tokenizer, eod, fault)) return false;
  if (recipe->vocab == 0 && named) recipe->vocab = nxt_n_ids(recipe->tokenizer);
  if (recipe->vocab == 0 && bytes) recipe->vocab = END_OF_BYTES + 1;
  recipe->type_code = recipe->vocab > 0 && recipe->vocab < MOST_UINT16 ? TYPE_UINT16 : TYPE_INT32;
  recipe->wanted.vocab = recipe->vocab;
  recipe->wanted.pieces = !named && recipe->most_tokens == 0;
  return true;
}

void nxd_recipe_close(nxd_recipe *recipe) {
  if (recipe->tokenizer) nxt_close(recipe->tokenizer);
  recipe->tokenizer = NULL;
}

/* Pairs may be of texts, which need no template: who has none is asked for it where messages are met. */
static void open_own_style(const char *tokenizer, nxj_style *style) {
  nxr_fault none = {""};
  if (!nxj_style_open(tokenizer, NULL, style, &none)) *style = (nxj_style){0};
}

bool nxd_recipe_open_style(nxd_recipe *recipe, const char *tokenizer, const char *template, nxj_style *style,
                           nxr_fault *fault) {
  bool pairs = recipe->maker == &nxd_make_preferences;
  bool answers = pairs || recipe->maker == &nxd_make_dialogues || recipe->maker == &nxd_make_completions;
  *style = (nxj_style){0};
  if (!answers) return true;
  if (recipe->tokenizer == NULL) return nxr_fault_set(fault, "%s need a tokenizer", recipe->maker->name);
  recipe->style = style;
  if (pairs && (template == NULL || template[0] == '\0')) open_own_style(tokenizer, style);
  else if (pairs) return nxj_style_open(tokenizer, template, style, fault);
  return recipe->maker != &nxd_make_dialogues || nxj_style_open(tokenizer, template, style, fault);
}
