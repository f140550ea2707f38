/* SPDX-License-Identifier: Apache-2.0 */
/* A training in a few words, as validate and plan print it. */
#ifndef NXC_COMMANDS_SUMMARY_H
#define NXC_COMMANDS_SUMMARY_H

#include "compiler/estimate/assume.h"

/* "8 ranks = tensor 2 x data 4" */
const char *nxc_mesh_show(nxc_arena *arena, const nxc_settings *settings);
/* "4 micro-batches of 2 a step" */
const char *nxc_batches_show(nxc_arena *arena, const nxc_settings *settings);
/* "mesh.world = 8 (the smallest that the layout allows), ..."; empty where nothing is assumed. */
const char *nxc_assumed_show(nxc_arena *arena, const nxc_assumed *assumed);

#endif
