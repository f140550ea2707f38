/* SPDX-License-Identifier: Apache-2.0 */
/* Values that do not fit their options by type, and that a system takes all the same.
 *
 * A front's `prepare` calls these: what is taken is no misfit any more, and bound as what it stands for. */
#ifndef NXC_CONFIG_LENIENT_H
#define NXC_CONFIG_LENIENT_H

#include "compiler/config/binding/dialect.h"

/* What the system makes of a misfit. False: it does not take it. */
typedef bool nxc_taking(nxc_arena *arena, const nxc_misfit_value *misfit, nxc_value *taken);

/* Binds what `take` makes of misfits, where that fits. */
void nxc_take_misfits(nxc_binding *binding, nxc_taking *take);
/* A whole number 0 or 1 as a boolean. */
bool nxc_take_bit(const nxc_misfit_value *misfit, nxc_value *taken);
/* None, null and the like in quotes. */
bool nxc_is_quoted_null(const nxc_node *node);
/* Warns of them where an empty value may stand: they are texts. */
void nxc_note_null_texts(nxc_binding *binding);

#endif
