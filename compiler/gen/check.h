/* SPDX-License-Identifier: Apache-2.0 */
/* What the build demands of the yaml files of schema, beyond being readable: names exist once, expressions
 * parse and name only what exists, literals have their type, texts stand where people read them.
 *
 * A complaint is printed with the file and the row; all are printed before the build fails. */
#ifndef NX_GEN_CHECK_H
#define NX_GEN_CHECK_H

#include "compiler/gen/find.h"

void gen_complain(gen_catalogue *catalogue, const gen_file *file, const char *row, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The end of NXC_CHANGES_..., for a word that check has passed; `otherwise` where there is none. */
const char *gen_changes_constant(const char *word, const char *otherwise);
void gen_check(gen_catalogue *catalogue);

#endif
