/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a value belongs to the domain of a setting or an option: its type, its words, its bounds.
 *
 * Strict is how a user's text is judged; lenient also lets an int be a float, a number be text, and a
 * scalar be a list of one, which is what values that expressions make need. The verdict never repeats the
 * value itself, so that it may be shown for secrets too. */
#ifndef NXC_DOMAIN_H
#define NXC_DOMAIN_H

#include "compiler/settings/catalogue.h"

typedef enum nxc_misfit {
  NXC_FITS,
  NXC_WRONG_TYPE,
  NXC_UNQUOTED_BIT,
  NXC_NOT_A_WORD,
  NXC_OUT_OF_BOUNDS,
  NXC_NOT_NULLABLE,
  NXC_VALUE_MISSING /* ??? */
} nxc_misfit;

typedef struct nxc_verdict {
  nxc_misfit misfit;
  const nxc_value *value; /* of the domain's type, where it fits */
  const char *problem;    /* "needs an integer, not text"; NULL where it fits */
  const char *fix;        /* may be NULL */
  const char *written;    /* what may stand in place of the value; NULL: nothing is known */
  bool certain;           /* nothing else can be meant */
  bool unwraps;           /* the only item of the list, without its brackets, would fit */
  size_t item;            /* which item of the list it is about, from 1; 0: the whole */
} nxc_verdict;

nxc_verdict nxc_domain_judge(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value,
                             bool lenient);
const char *nxc_misfit_id(nxc_misfit misfit); /* the diagnostic's id */
const char *nxc_misfit_fix(const nxc_verdict *verdict); /* its own remedy, or that of its kind */

#endif
