/* SPDX-License-Identifier: Apache-2.0 */
/* Values of JSON as values of a configuration, for files that Jansson reads. */
#ifndef NXC_CONFIG_MODEL_CONFIG_H
#define NXC_CONFIG_MODEL_CONFIG_H

#include "compiler/arena.h"
#include "compiler/value.h"

#include <jansson.h>

nxc_value nxc_value_of_json(nxc_arena *arena, const json_t *json);

#endif
