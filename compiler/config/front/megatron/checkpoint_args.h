/* SPDX-License-Identifier: Apache-2.0 */
/* --use-checkpoint-args where load names a checkpoint of Megatron itself. */
#ifndef NXC_CONFIG_CHECKPOINT_ARGS_H
#define NXC_CONFIG_CHECKPOINT_ARGS_H

#include "compiler/config/binding/dialect.h"

/* Options that the checkpoint's arguments say get its values, and binding->model_taken is true. What is there
 * and cannot be read is reported; where nothing is, nothing happens. */
void nxc_megatron_take_args(nxc_binding *binding);

#endif
