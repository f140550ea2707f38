/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/known.h"

#include <ctype.h>
#include <string.h>

enum { MOST_LETTERS = 256 };

/* Letters and digits alone, in lower case. */
static void fold(const char *text, char folded[MOST_LETTERS]) {
  size_t n = 0;
  for (; *text != '\0' && n + 1 < MOST_LETTERS; text++)
    if (isalnum((unsigned char)*text)) folded[n++] = (char)tolower((unsigned char)*text);
  folded[n] = '\0';
}

/* Endings that tell weights of one shape apart, and a prefix that people leave out. */
static const char *const endings[] = {"instruct", "chat", "base", "hf", "it", "fp8", "v01", "v03", "v10"};

static void fold_model(const char *name, char folded[MOST_LETTERS]) {
  const char *slash = strrchr(name, '/');
  const char *base = slash ? slash + 1 : name;
  if (strncmp(base, "Meta-", 5) == 0) base += 5;
  fold(base, folded);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t n = strlen(folded), n_ending = strlen(endings[i]);
    if (n > n_ending && strcmp(folded + n - n_ending, endings[i]) == 0) folded[n - n_ending] = '\0';
  }
}

/* Where the name stands, and no digit goes on behind it: llama38 is not in llama380. */
static bool names(const char *text, const char *name) {
  size_t n = strlen(name);
  for (const char *at = text; n > 0 && (at = strstr(at, name)) != NULL; at++)
    if (!isdigit((unsigned char)at[n]) || !isdigit((unsigned char)name[n - 1])) return true;
  return false;
}

const nxc_known_model *nxc_known_model_in(const char *text, int64_t layers, int64_t hidden) {
  const nxc_known_model *best = NULL;
  size_t n_best = 0;
  char folded[MOST_LETTERS], name[MOST_LETTERS];
  fold(text, folded);
  for (size_t i = 0; i < nxc_n_known_models; i++) {
    const nxc_known_model *model = &nxc_known_models[i];
    fold_model(model->name, name);
    if (strlen(name) <= n_best || !names(folded, name)) continue;
    if ((layers != 0 && layers != model->layers) || (hidden != 0 && hidden != model->hidden)) continue;
    best = model;
    n_best = strlen(name);
  }
  return best;
}

const nxc_known_tokenizer *nxc_known_tokenizer_in(const char *text) {
  char folded[MOST_LETTERS], name[MOST_LETTERS];
  fold(text, folded);
  for (size_t i = 0; i < nxc_n_known_tokenizers; i++) {
    fold(nxc_known_tokenizers[i].name, name);
    if (strstr(folded, name) != NULL) return &nxc_known_tokenizers[i];
  }
  return NULL;
}
