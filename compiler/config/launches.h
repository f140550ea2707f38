/* SPDX-License-Identifier: Apache-2.0 */
/* What a file starts, where one training is wanted. */
#ifndef NXC_CONFIG_LAUNCHES_H
#define NXC_CONFIG_LAUNCHES_H

#include "compiler/config/compile_settings.h"

/* False (reported): the file starts several programs and none is named, or one that trains no decoder. */
bool nxc_launches_check(nxc_arena *arena, const nxc_request *request, const nxc_document *document,
                        nxc_sink *sink);

#endif
