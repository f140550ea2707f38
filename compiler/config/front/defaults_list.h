/* SPDX-License-Identifier: Apache-2.0 */
/* Hydra's defaults list: the configurations that a file is composed of.
 *
 *     defaults:
 *       - base             # base.yaml beside the file
 *       - model: small     # model/small.yaml, its keys below `model`
 *       - optional data: x # left out where it is not there
 *       - _self_           # the file itself; without it the file lies over all others
 *
 * They are laid over each other in that order, each with its own list first. `@key` behind a name, or a
 * comment `# @package key` at the head of a file, says below which key its own stand; `_global_` is the top.
 * What is not beside the file may stand on Hydra's search path: then nobody here knows what keys there are.
 */
#ifndef NXC_CONFIG_DEFAULTS_LIST_H
#define NXC_CONFIG_DEFAULTS_LIST_H

#include "compiler/config/front/front.h"

/* The file as it is where it has no such list. Never NULL. */
nxc_document *nxc_defaults_compose(const nxc_front_texts *texts, const nxc_reading *reading);

#endif
