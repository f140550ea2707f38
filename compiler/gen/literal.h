/* SPDX-License-Identifier: Apache-2.0 */
/* Literal texts of our own files (defaults, bounds) read as values of a catalogue type.
 *
 * Integers are decimal, floats as C reads them, booleans true and false, null is null, lists stand in
 * brackets. */
#ifndef NX_GEN_LITERAL_H
#define NX_GEN_LITERAL_H

#include "compiler/arena.h"
#include "compiler/settings/catalogue.h"

/* False when there is no such type. */
bool gen_type_find(const char *name, nxc_type *type);
/* NULL when the text is no literal of this type. */
const nxc_value *gen_literal(nxc_arena *arena, nxc_type type, const char *text);
/* As a C initializer of an nxc_value. */
void gen_write_value(const nxc_value *value);
/* As a C string literal; NULL becomes NULL. */
void gen_write_text(const char *text);
/* As a member of an initializer behind others; nothing for NULL. */
void gen_write_field(const char *name, const char *text);

/* From now on texts that are for people stand apart, each once, in an array of this name, and fields point
 * into it: a run that shows none of them does not touch their pages. gen_prose_end writes the array. */
void gen_prose_begin(const char *array);
void gen_prose_end(void);

#endif
