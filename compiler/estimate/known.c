/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/known.h"

#include <ctype.h>
#include <string.h>

enum { MOST_LETTERS = 256, MOST_WORD = 64 };

/* ---- names of models, as words ---- */

/* Words that tell weights of one shape apart, and what people leave out. */
static const char *const fillers[] = {"instruct", "chat", "base",  "hf",    "it",   "meta", "thinking",
                                      "fp8",      "fp4",  "nvfp4", "mxfp4", "nf4",  "bf16", "fp16",
                                      "awq",      "gptq", "int4",  "int8",  "2407", "2507", NULL};

/* Words behind a name that make another model of it, of another size or shape. */
static const char *const others[] = {"mini",  "small", "medium", "large",  "xl",         "tiny",
                                     "nano",  "moe",   "vl",     "vision", "multimodal", NULL};

static bool is_among(const char *const *words, const char *word, size_t n) {
  for (; *words != NULL; words++)
    if (strlen(*words) == n && strncmp(*words, word, n) == 0) return true;
  return false;
}

static bool in_number(const char *text, const char *at) {
  return *at == '.' && at > text && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[1]);
}

/* A word in pieces of letters and of digits, each with a space behind it: 7b is "7 b ". */
static size_t put_word(char *out, size_t room, const char *word, size_t n_word) {
  size_t n = 0;
  for (size_t i = 0; i < n_word && n + 3 < room; i++) {
    bool letter = isalpha((unsigned char)word[i]) != 0;
    if (i > 0 && letter != (isalpha((unsigned char)word[i - 1]) != 0)) out[n++] = ' ';
    out[n++] = word[i];
  }
  out[n++] = ' ';
  return n;
}

/* The words of a name in lower case, between spaces: " llama 3.1 8 b " of Meta-Llama-3.1-8B-Instruct. */
static void fold_words(const char *text, char folded[MOST_LETTERS]) {
  char word[MOST_WORD];
  size_t n_word = 0, n = 0;
  folded[n++] = ' ';
  for (const char *at = text;; at++) {
    bool inside = isalnum((unsigned char)*at) || in_number(text, at);
    if (inside && n_word + 1 < MOST_WORD) word[n_word++] = (char)tolower((unsigned char)*at);
    if (inside) continue;
    if (n_word > 0 && !is_among(fillers, word, n_word) && n + 4 < MOST_LETTERS)
      n += put_word(folded + n, MOST_LETTERS - 1 - n, word, n_word);
    n_word = 0;
    if (*at == '\0') break;
  }
  folded[n] = '\0';
}

/* Whether the words of a name stand in a text, and none behind them that makes another model of it. */
static bool stands_in(const char *text, const char *name) {
  size_t n = strlen(name);
  for (const char *at = text; (at = strstr(at, name)) != NULL; at++)
    if (!is_among(others, at + n, strcspn(at + n, " "))) return true;
  return false;
}

/* How many letters of the model's name stand in the text; 0: it is not named. Its version may be left out. */
static size_t named_by(const char *text, const char *model) {
  char name[MOST_LETTERS];
  const char *slash = strrchr(model, '/');
  fold_words(slash ? slash + 1 : model, name);
  if (strlen(name) > 1 && stands_in(text, name)) return strlen(name);
  char *version = strstr(name, " v 0.");
  if (version == NULL) return 0;
  version[1] = '\0';
  return stands_in(text, name) ? strlen(name) : 0;
}

const nxc_known_model *nxc_known_model_in(const char *text, int64_t layers, int64_t hidden) {
  const nxc_known_model *best = NULL;
  size_t n_best = 0;
  char folded[MOST_LETTERS];
  fold_words(text, folded);
  for (size_t i = 0; i < nxc_n_known_models; i++) {
    const nxc_known_model *model = &nxc_known_models[i];
    size_t n = named_by(folded, model->name);
    if (n <= n_best || (layers != 0 && model->layers != 0 && layers != model->layers)) continue;
    if (hidden != 0 && model->hidden != 0 && hidden != model->hidden) continue;
    best = model;
    n_best = n;
  }
  return best;
}

/* ---- tokenizers, as types and files call them ---- */

/* Letters and digits alone, in lower case. */
static void fold_letters(const char *text, char folded[MOST_LETTERS]) {
  size_t n = 0;
  for (; *text != '\0' && n + 1 < MOST_LETTERS; text++)
    if (isalnum((unsigned char)*text)) folded[n++] = (char)tolower((unsigned char)*text);
  folded[n] = '\0';
}

const nxc_known_tokenizer *nxc_known_tokenizer_in(const char *text) {
  char folded[MOST_LETTERS], name[MOST_LETTERS];
  fold_letters(text, folded);
  for (size_t i = 0; i < nxc_n_known_tokenizers; i++) {
    fold_letters(nxc_known_tokenizers[i].name, name);
    if (strstr(folded, name) != NULL) return &nxc_known_tokenizers[i];
  }
  return NULL;
}
