/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that a run begins from, and what their folder says of the model that they are of.
 *
 * Heads, rotary base, activation and the like cannot be seen from the shapes of tensors: with other ones the
 * weights are read, and the loss is wrong. So every fact of a config.json that stands beside the weights is
 * compared with the model that is compiled, before anything is launched; and of a checkpoint of nxrun the
 * settings in its manifest.json. */
#ifndef NXC_CONFIG_INIT_FROM_H
#define NXC_CONFIG_INIT_FROM_H

#include "compiler/config/binding/dialect.h"

/* Reports what differs: errors where the plan is for nxrun, else warnings. `binding` has been applied, and
 * its settings derived. A folder that is not on this machine is passed over. */
void nxc_init_from_check(nxc_binding *binding);

#endif
