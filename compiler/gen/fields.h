/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of the catalogue's rows, written to stdout as C writes them behind others: `, .name = value`. What
 * is absent is not written. */
#ifndef NX_GEN_FIELDS_H
#define NX_GEN_FIELDS_H

#include "compiler/arena.h"
#include "compiler/settings/catalogue.h"

/* A field as its kind has it in the table (compiler/settings/fields.h). */
#define WRITE(row, kind, member, key) WRITE_##kind(row, member)
#define WRITE_TEXT(row, member) gen_write_field(#member, row->member);
#define WRITE_EXPRESSION(row, member) gen_write_field(#member, row->member);
#define WRITE_BEFORE(row, member) gen_write_field(#member, row->member);
#define WRITE_TEMPLATE(row, member) gen_write_field(#member, row->member);
#define WRITE_TEXTS(row, member) gen_field_texts(#member, row->member, row->member##_count);
#define WRITE_FLAG(row, member) gen_field_flag(#member, row->member);
#define WRITE_OWN(row, member)
#define WRITE_OWNS(row, member)

bool gen_is_yes(const char *word);
void gen_field_texts(const char *name, char *const *texts, unsigned n_texts);
void gen_field_flag(const char *name, const char *word);
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
