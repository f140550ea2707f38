/* SPDX-License-Identifier: Apache-2.0 */
/* The dialects' tables: their options, and what their systems fix. */
#ifndef NX_GEN_DIALECTS_H
#define NX_GEN_DIALECTS_H

#include "compiler/gen/find.h"

void gen_write_dialects(const gen_catalogue *catalogue);

#endif
