/* SPDX-License-Identifier: Apache-2.0 */
/* Precision presets: one name that decides the types of parameters, activations, master copy, sums and
 * moments.
 *
 * The table is schema/presets.yaml. The setting precision.preset names a preset; what the preset says has
 * the provenance NXC_FROM_PRESET, so anything that the user says about the same setting wins over it. */
#ifndef NXC_CONFIG_PRESETS_H
#define NXC_CONFIG_PRESETS_H

#include "compiler/settings/settings.h"

/* By the dialect's spelling; nx knows every dialect's. NULL when there is none. */
const nxc_preset_row *nxc_preset_find(const nxc_dialect *dialect, const char *spelling);
/* Whether the preset decides nothing else than what the settings, as far as they are known, say. */
bool nxc_preset_means(const nxc_preset_row *row, const nxc_settings *settings);
/* Sets what the preset named by precision.preset decides. False (reported) when there is no such preset. */
bool nxc_presets_apply(nxc_arena *arena, nxc_settings *settings, const nxc_dialect *dialect, nxc_sink *sink);

#endif
