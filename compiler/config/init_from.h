/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that a run begins from, and what their folder says of the model that they are of.
 *
 * Heads, rotary base, activation and the like cannot be seen from the shapes of tensors: with other ones the
 * weights are read, and the loss is wrong. So every fact of a config.json that stands beside the weights is
 * compared with the model that is compiled, before anything is launched; and of a checkpoint of nxrun the
 * settings in its manifest.json. A configuration may also leave the model to such a folder. */
#ifndef NXC_CONFIG_INIT_FROM_H
#define NXC_CONFIG_INIT_FROM_H

#include "compiler/config/binding/dialect.h"

/* Reports what differs: errors where the plan is for nxrun, else warnings. `binding` has been applied, and
 * its settings derived. A folder that is not on this machine is passed over. */
void nxc_init_from_check(nxc_binding *binding);
/* Takes the model from the folder that model.from_checkpoint names: what it says counts over what is given,
 * but not of sizes (nxc_init_from_check finds where those differ). Where it says nothing nxrun cannot
 * execute that, which is an error if `required` and the plan is for nxrun. `binding` has been applied, and
 * its settings are not derived yet. */
void nxc_init_from_take_model(nxc_binding *binding, bool required);

#endif
