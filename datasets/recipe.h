/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe's tokenizer, and what follows from it: the token that ends documents, the vocabulary, the type. */
#ifndef NXD_RECIPE_H
#define NXD_RECIPE_H

#include "datasets/maker.h"

/* Of dialogues `style` is opened too, by the template's file or, where that is NULL or "", the tokenizer's
 * own. */
bool nxd_recipe_open_style(nxd_recipe *recipe, const char *tokenizer, const char *template, nxj_style *style,
                           nxr_fault *fault);
/* Opens the tokenizer (NULL or "": none, each byte is a token) of a recipe that says everything else. `eod`
 * is the text of the token that ends documents, "" the tokenizer's own, NULL none. Where the recipe's
 * vocabulary is 0 the tokenizer's counts; that of bytes where `bytes` says that records are texts. */
bool nxd_recipe_open(nxd_recipe *recipe, const char *tokenizer, const char *eod, bool bytes,
                     nxr_fault *fault);
void nxd_recipe_close(nxd_recipe *recipe);

#endif
