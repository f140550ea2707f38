/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/recipe.h"

#include <string.h>

enum { END_OF_BYTES = 256 };
enum { TYPE_INT32 = 4, TYPE_UINT16 = 8 };
static const uint64_t MOST_UINT16 = 65500; /* of a vocabulary, as Megatron-LM chooses */

/* The tokenizer's own end of a text, or the one that GPT-2 and its kin write. */
static bool find_end(const nxt_tokenizer *tokenizer, int64_t *end) {
  static const char text[] = "<|endoftext|>";
  uint32_t id;
  if (!nxt_role_id(tokenizer, NXT_EOS, &id) && !nxt_find(tokenizer, text, strlen(text), &id)) return false;
  *end = id;
  return true;
}

static bool open_tokenizer(nxd_recipe *recipe, const char *path, nxr_fault *fault) {
  nx_fault wrong = {.text = ""};
  recipe->tokenizer = nxt_open(path, &wrong);
  return recipe->tokenizer != NULL || nxr_fault_set(fault, "%s", wrong.text);
}

bool nxd_recipe_open(nxd_recipe *recipe, const char *tokenizer, bool append_eod, bool bytes,
                     nxr_fault *fault) {
  bool named = tokenizer && tokenizer[0] != '\0';
  recipe->end = append_eod ? END_OF_BYTES : -1;
  if (named && !open_tokenizer(recipe, tokenizer, fault)) return false;
  if (named && append_eod && !find_end(recipe->tokenizer, &recipe->end))
    return nxr_fault_set(fault, "%s says no token for the end of a text (eos_token), so none can be appended",
                         tokenizer);
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
