/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a step that are logged beside its loss. */
#ifndef NXC_RECORDS_MEASURES_H
#define NXC_RECORDS_MEASURES_H

#include "compiler/settings/settings.h"

typedef struct nxc_measures {
  bool parameter_norm, zero_gradients;
  bool router_losses; /* of mixtures that have some; not of several chunks on a stage */
  bool router_layers; /* each layer's, too */
} nxc_measures;

nxc_measures nxc_measures_read(const nxc_settings *settings);

#endif
