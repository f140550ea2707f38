/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters in PEFT's format, added to the weights that they stand beside. */
#ifndef NXD_ADAPTER_H
#define NXD_ADAPTER_H

#include "runtime/files/fault.h"

#include <stdbool.h>

/* Writes into the folder `out`, which must not exist, the files of the model `base` (a folder, or a
 * safetensors file) with its weights changed, each rounded once to its own type. `adapter`: a folder with
 * adapter_config.json and adapter_model.safetensors; every tensor in it must find its place. */
bool nxd_merge_adapter(const char *base, const char *adapter, const char *out, nxr_fault *fault);

#endif
