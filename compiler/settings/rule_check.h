/* SPDX-License-Identifier: Apache-2.0 */
/* What the texts of a rule must be, whoever wrote it: the build asks for the catalogue's, nxcfg for a site's.
 *
 * Whoever asks says which names exist, and hears of each fault. Ids, versions and the rules that one comes
 * behind are the asker's own affair. */
#ifndef NXC_RULE_CHECK_H
#define NXC_RULE_CHECK_H

#include "compiler/expression/expression.h"
#include "compiler/settings/fields.h"

#include <stdbool.h>

/* As libcyaml reads them. */
typedef struct nxc_rule_texts {
  NXC_RULE_FIELDS(NXC_READ, )
} nxc_rule_texts;

typedef struct nxc_text_fault {
  const char *field; /* NULL: the row lacks something */
  size_t offset;     /* of the byte in the field's text that it is about; 0 of the whole */
  const char *problem;
  const char *fix;      /* NULL: none */
  const nxc_name *name; /* that does not exist; NULL: it is about something else */
} nxc_text_fault;

typedef struct nxc_text_check {
  nxc_arena *arena;
  bool (*exists)(const void *context, const nxc_name *name);
  void (*report)(void *context, const nxc_text_fault *fault);
  void *context;
} nxc_text_check;

/* "", "@" or "@hf.": what stands before a name of this kind. */
const char *nxc_name_mark(nxc_name_kind kind);
/* NULL is good. `offset` is where the text stands in its field. */
void nxc_check_expression(const nxc_text_check *check, const char *field, const char *text, size_t offset);
/* Splits "path = expression"; false when it is no assignment. *n_bytes is the path's length. */
bool nxc_assignment_split(const char *text, size_t *n_bytes, const char **expression);
/* It demands or derives, and says what is wrong then; its expressions parse and name only what exists. */
void nxc_check_rule(const nxc_text_check *check, const nxc_rule_texts *row);

#endif
