/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NXC_REDACTION_H
#define NXC_REDACTION_H

#include "compiler/arena.h"
#include "compiler/value.h"

/* What stands for a secret value wherever values are shown: redacted:sha256:<the first 8 bytes>. */
nxc_value nxc_redacted(nxc_arena *arena, const nxc_value *value);

#endif
