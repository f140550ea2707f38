/* SPDX-License-Identifier: Apache-2.0 */
/* What a value that does not fit its domain was meant to be: the one place that guesses. */
#ifndef NXC_MEANT_H
#define NXC_MEANT_H

#include "compiler/settings/catalogue.h"

typedef struct nxc_meant {
  const char *text; /* as it may be written; NULL: nobody can tell */
  bool certain;     /* nothing else can be meant */
} nxc_meant;

/* The number that a text names beside a unit, a grouping, a comment or a quote that is left, within the
 * bounds of the domain: 1024 for "1,024" and "1024 // tokens", 32 for 32GB, 4096 for 4k and 2048*2. */
nxc_meant nxc_number_meant(nxc_arena *arena, const nxc_domain *domain, const char *text);
/* The number of the domain that is nearest to one that is not of it; of a sign that is wrong, the other one.
 */
nxc_meant nxc_nearest_number(nxc_arena *arena, const nxc_domain *domain, double number);
/* The boolean that a word says: yes, on, enabled. */
nxc_meant nxc_boolean_meant(const char *word);
/* A text without the comment that another language would read behind it, and without a quote that is left. */
const char *nxc_text_meant(nxc_arena *arena, const char *text);

#endif
