/* SPDX-License-Identifier: Apache-2.0 */
/* Words of other dialects: a key that is no option here may be one elsewhere, and may have a name here.
 *
 * Two options say the same when their rows set the same setting. Names are compared with - and _ folded,
 * whole first; then by their last step, where that is no common word. */
#ifndef NXC_CONFIG_DIALECT_WORDS_H
#define NXC_CONFIG_DIALECT_WORDS_H

#include "compiler/settings/catalogue.h"

typedef struct nxc_foreign_word {
  const char *system; /* "GPT-NeoX": whose word it is, for messages */
  const char *option; /* what it is called there in full */
  const char *here;   /* the option of this dialect that says the same; NULL: there is none */
  const char *otherwise; /* then, the one that says it with another value; NULL: there is none either */
} nxc_foreign_word;

/* "GPT-NeoX" of the dialect neox. NULL: it is no other system's. */
const char *nxc_system_name(const char *dialect);

/* Alike but for - and _. */
bool nxc_same_folded(const char *a, const char *b);
/* False when no other dialect knows it. `map`: the key holds a map, and so must the option. */
bool nxc_foreign_word_find(const nxc_dialect *dialect, const char *version, const char *name, bool map,
                           nxc_foreign_word *word);

#endif
