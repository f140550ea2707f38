/* SPDX-License-Identifier: Apache-2.0 */
/* How many samples one pass over the training's dataset has, where that dataset is here: data.epoch_rows. */
#ifndef NXC_CONFIG_EPOCH_ROWS_H
#define NXC_CONFIG_EPOCH_ROWS_H

#include "compiler/settings/settings.h"

/* Counts them where epochs end the training, nothing says its steps, and it reads one dataset of documents,
 * whole. True where the setting was given a value, so that rules have more to derive from. */
bool nxc_epoch_rows_count(nxc_settings *settings, nxc_sink *sink);

#endif
