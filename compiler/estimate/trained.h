/* SPDX-License-Identifier: Apache-2.0 */
/* What of a model is trained, and what that keeps: the optimizer's moments, adapters beside frozen weights
 * and the types of these, a reference model. */
#ifndef NXC_ESTIMATE_TRAINED_H
#define NXC_ESTIMATE_TRAINED_H

#include "compiler/estimate/sizes.h"

/* Of the whole model: reads the task into `sizes`, with what a layer's adapters are on one rank. */
void nxc_trained_read(const nxc_settings *settings, nxc_sizes *sizes);
/* Of a stage whose parameters are counted. */
void nxc_trained_of_stage(nxc_sizes *sizes);

#endif
