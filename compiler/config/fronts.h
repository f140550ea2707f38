/* SPDX-License-Identifier: Apache-2.0 */
/* The dialects: one row each, with all that differs between them (front/front.h). */
#ifndef NXC_CONFIG_FRONTS_H
#define NXC_CONFIG_FRONTS_H

#include "compiler/config/front/front.h"

/* The row for "megatron" or "megatron@0.11" or "neox@2023-12-25"; *version receives the version that is
 * meant, NULL where the dialect has one only. NULL when there is no such dialect or no such version of it. */
const nxc_front *nxc_front_find(nxc_arena *arena, const char *name, const char **version);
/* The first row that claims the text; NULL: none does. */
const nxc_front *nxc_front_claiming(const nxc_source *text, const char **version);
/* Whether the keys of a document may tell this dialect. */
bool nxc_front_told_by_keys(const char *dialect);
/* Every dialect with its versions, "nx, nxdt, megatron@0.10|0.11". */
const char *nxc_front_names(nxc_arena *arena);
#endif
