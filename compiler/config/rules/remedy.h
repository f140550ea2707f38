/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest change of one option after which a violated rule holds, and no other breaks.
 *
 * Options that a file gives and the rule asks about are tried: numbers outward from what they are, words that
 * are near, switches the other way, and left out. Settings that an option says, and that rules derive from
 * those, follow it. Of all that hold the change that is relatively smallest is taken: which one is meant
 * somebody decides. */
#ifndef NXC_CONFIG_REMEDY_H
#define NXC_CONFIG_REMEDY_H

#include "compiler/config/rules/rules.h"

typedef struct nxc_remedy {
  const nxc_bound *bound; /* NULL: there is none */
  const nxc_value *value; /* NULL: it is left out */
  nxc_repair repair;
} nxc_remedy;

/* said: the rule's own remedy in the user's words, or NULL; what it names is tried first of what is as small.
 */
nxc_remedy nxc_rule_remedy(nxc_rule_run *run, const nxc_rule_row *rule, const char *said);
/* Whether a text has this word. */
bool nxc_remedy_says(const char *text, const char *word);

#endif
