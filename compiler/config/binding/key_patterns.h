/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of keys that a team's own modules read: names with * and ?, or a section and all below it. */
#ifndef NXC_KEY_PATTERNS_H
#define NXC_KEY_PATTERNS_H

#include "compiler/texts.h"

#include <stdbool.h>

/* Whether a pattern names the key, or with ".*" a section around it. */
bool nxc_key_patterns_match(const nxc_texts *patterns, const char *name);

#endif
