/* SPDX-License-Identifier: Apache-2.0 */
/* Settings and where they came from as JSON, for `nxcfg plan --format json`.
 *
 * Each function gives a new Jansson object that the caller owns. Values from the environment and of secret
 * keys are replaced by a hash. Keys are in the order of schema/settings.yaml, so equal settings give equal
 * bytes. */
#ifndef NXC_SETTINGS_JSON_H
#define NXC_SETTINGS_JSON_H

#include "compiler/config/interpolation/interpolate.h"
#include "compiler/settings/settings.h"

struct json_t;

/* {path: value} of every setting; null is "none", or an unknown setting, whose source has the kind
 * unknown. */
struct json_t *nxc_settings_to_json(nxc_arena *arena, const nxc_settings *settings);
/* {path: {kind, file, line, column, option, rule, preset, inputs, interpolated, replaces}} of every
 * setting; a member that says nothing is left out. `replaces` is the kind of what it displaced. */
struct json_t *nxc_sources_to_json(const nxc_settings *settings);
/* [{name, set, file, line}] of the environment variables that the file names; never their values. */
struct json_t *nxc_environment_to_json(const nxc_resolution *resolution);

#endif
