/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of the catalogue's rows, written to stdout as C writes them behind others: `, .name = value`. What
 * is absent is not written. */
#ifndef NX_GEN_FIELDS_H
#define NX_GEN_FIELDS_H

#include "compiler/arena.h"
#include "compiler/settings/catalogue.h"

bool gen_is_yes(const char *word);
void gen_field_texts(const char *name, char *const *texts, unsigned n_texts);
void gen_field_flag(const char *name, const char *word);
void gen_field_literal(nxc_arena *arena, const char *name, nxc_type type, const char *text);
void gen_field_versioned(nxc_arena *arena, const char *name, nxc_type type, char *const *texts,
                         unsigned n_texts);

typedef struct gen_domain_texts {
  const char *type, *nullable, *min, *max, *above, *initial;
  char *const *values;
  unsigned n_values;
} gen_domain_texts;

/* Its domain and its default. */
void gen_field_domain(nxc_arena *arena, const gen_domain_texts *texts);

#endif
