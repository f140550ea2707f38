/* SPDX-License-Identifier: Apache-2.0 */
/* Why layouts are refused, and which others are refused for the same.
 *
 * What a rule finds hangs on the settings that it names, these on others by the rules that derive them and by
 * the options of the dialect, and so at last on some of the knobs. A layout that has the same values of these
 * knobs as two that the rule has refused is refused too, and need not be written and read back. */
#ifndef NXC_TUNE_REASONS_H
#define NXC_TUNE_REASONS_H

#include "compiler/tune/say.h"

typedef struct nxc_reason {
  const char *id;      /* of the finding; NULL: the layout cannot be said, or has no numbers */
  const char *message; /* of the first layout that it refuses */
  const char *remedy;  /* in the file's own options; NULL: nobody knows one */
  size_t n_layouts;
} nxc_reason;

typedef struct nxc_reasons nxc_reasons;

/* The space must not change any more. */
nxc_reasons *nxc_reasons_new(nxc_arena *arena, const nxc_space *space, const nxc_compiled *compiled);
void nxc_reasons_add(nxc_reasons *reasons, const nxc_choice *choice, const nxc_refusal *refusal);
/* Whether a layout is refused as others were; it is counted with them, once. */
bool nxc_reasons_refuse(nxc_reasons *reasons, const nxc_choice *choice);
/* The layouts behind those that were judged are gone over again. */
void nxc_reasons_list_again(nxc_reasons *reasons);
/* The most frequent first. */
size_t nxc_reasons_list(nxc_reasons *reasons, const nxc_reason **list);

#endif
