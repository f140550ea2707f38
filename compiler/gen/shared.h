/* SPDX-License-Identifier: Apache-2.0 */
/* Values and lists of texts of the catalogue's rows: each stands once, in an array of its kind, however many
 * rows have it, and a row points into the array. */
#ifndef NX_GEN_SHARED_H
#define NX_GEN_SHARED_H

#include "compiler/arena.h"
#include "compiler/value.h"

/* Declares the arrays; what is shared from now on is kept in the arena. */
void gen_shared_begin(nxc_arena *arena);
/* Writes the address of a value, of the first of some texts, as a C expression. */
void gen_shared_value(const nxc_value *value);
void gen_shared_texts(char *const *texts, unsigned n_texts);
/* Writes the arrays. */
void gen_shared_end(void);

#endif
