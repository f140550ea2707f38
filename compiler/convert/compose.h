/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as options of a dialect: what binding does (dialect.h), backwards.
 *
 * A composition is a binding that no document was read into: its options are given the values that say the
 * settings. The value of an option is its row's `from`, or is found by trying: each value that the row's
 * `sets` could have come from (the setting's own, the words of the domain, null, a default) is put through
 * them, and the one whose results agree best is taken. An option is given where it is required, where its
 * default would say something else, and where the user spoke about what it says. Options depend on each other
 * (`for`, @names), so all are gone over until nothing changes. Whether the composition says what is wanted is
 * not promised: who composes reads the text back and compares. */
#ifndef NXC_CONFIG_COMPOSE_H
#define NXC_CONFIG_COMPOSE_H

#include "compiler/config/binding/dialect.h"

typedef struct nxc_composing {
  const nxc_settings *wanted;
  const nxc_dialect *dialect;
  const char *version;      /* NULL: options of every version */
  const char *model_option; /* the option that names a config.json, where one is composed too; else NULL */
  const char *model_path;   /* what it names */
  const bool *insist;       /* of each setting: say it even where a default should; NULL: of none */
  const char *const *refused; /* of each option: why the system does not take it here; NULL entries: it may be
                               * given. NULL: all may */
  bool *filled; /* of each option: given for the system's sake, and for no setting's; may be NULL */
} nxc_composing;

nxc_binding *nxc_compose(nxc_arena *arena, const nxc_composing *composing);
/* Puts the given options into a tree, in the order of the catalogue, over what stands there. */
void nxc_compose_into(nxc_binding *composition, nxc_node *root);
/* The same of config.json's keys. */
void nxc_compose_model_into(nxc_binding *composition, nxc_node *root);
/* Puts one value at a dotted path; what is in the way gives way. */
void nxc_compose_put(nxc_arena *arena, nxc_node *root, const char *path, const nxc_value *value);
/* Whether an option says something about a setting, or decides with others. */
bool nxc_option_speaks_of(nxc_arena *arena, const nxc_option_row *row, nxc_setting_id id);

#endif
