/* SPDX-License-Identifier: Apache-2.0 */
/* The expression language's functions about a training whose batch grows: its steps, and the sizes. */
#ifndef NXC_CONFIG_EXPRESSION_RAMP_H
#define NXC_CONFIG_EXPRESSION_RAMP_H

#include "compiler/expression/expression_tree.h"

const nxc_value *nxc_call_ramped_steps(nxc_evaluation *evaluation, const nxc_value *const *args,
                                       size_t n_args);
const nxc_value *nxc_call_growth(nxc_evaluation *evaluation, const nxc_value *const *args, size_t n_args);

#endif
