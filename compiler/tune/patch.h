/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration's own text with some options changed, and everything else, comments too, as it was.
 *
 * A value that stands in the text gives way to another; an option that is new goes to its neighbours, in
 * their form: a key of a map, a pair within braces, words of a command. What cannot be said so (a value that
 * a variable or another file gives) is left as it is, so who patches reads the text back and compares. */
#ifndef NXC_TUNE_PATCH_H
#define NXC_TUNE_PATCH_H

#include "compiler/config/binding/dialect.h"

typedef struct nxc_option_change {
  const nxc_bound *bound; /* the option as the file has it */
  const nxc_value *value; /* NULL: it is taken out */
  const nxc_value *usual; /* what it is then; NULL where there is no such value */
} nxc_option_change;

/* What the option is afterwards, null where nothing is. */
const nxc_value *nxc_option_change_value(const nxc_option_change *edit);
/* "tensor-model-parallel-size=4", "zero1 taken out" */
const char *nxc_option_change_show(nxc_arena *arena, const nxc_option_change *edit);
/* NULL where an edit has no place in the text. */
const char *nxc_patch(nxc_arena *arena, const nxc_binding *binding, const nxc_option_change *edits,
                      size_t n_edits);

#endif
