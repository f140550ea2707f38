/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as the catalogue's other tables speak of them. */
#ifndef NX_GEN_SETTINGS_H
#define NX_GEN_SETTINGS_H

#include "compiler/gen/find.h"

/* The constant that names the setting of path. */
void gen_setting_constant(const char *path, size_t n_bytes);
void gen_setting_domain(nxc_arena *arena, const gen_setting *row, bool with_initial);
/* By path. */
const gen_setting **gen_sorted_settings(const gen_catalogue *catalogue);

#endif
