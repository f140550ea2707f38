/* SPDX-License-Identifier: Apache-2.0 */
/* What the catalogue says of one setting or option, as labelled texts in the order to read them.
 *
 * `nxcfg explain` and the manual pages print the same facts and differ in their layout only. A fact without
 * a label is a sentence of its own; the others complete their label. Absent facts have no entry, and texts
 * live as long as the arena. */
#ifndef NXC_FACTS_H
#define NXC_FACTS_H

#include "compiler/settings/catalogue.h"

typedef struct nxc_fact {
  const char *label; /* "takes", "default", ...; "": none */
  const char *text;
} nxc_fact;

typedef struct nxc_facts {
  nxc_arena *arena;
  nxc_fact *items;
  size_t n_items;
} nxc_facts;

nxc_facts nxc_setting_facts(nxc_arena *arena, nxc_setting_id id);
/* Of an option that is no other name of one. */
nxc_facts nxc_option_facts(nxc_arena *arena, const nxc_option_row *row);

#endif
