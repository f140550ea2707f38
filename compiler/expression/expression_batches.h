/* SPDX-License-Identifier: Apache-2.0 */
/* The expression language's functions about batches whose sizes a text lists. */
#ifndef NXC_CONFIG_EXPRESSION_BATCHES_H
#define NXC_CONFIG_EXPRESSION_BATCHES_H

#include "compiler/expression/expression_tree.h"

const nxc_value *nxc_call_batch_sizes(nxc_evaluation *evaluation, const nxc_value *const *args,
                                      size_t n_args);
const nxc_value *nxc_call_last_batch_size(nxc_evaluation *evaluation, const nxc_value *const *args,
                                          size_t n_args);
const nxc_value *nxc_call_batch_steps(nxc_evaluation *evaluation, const nxc_value *const *args,
                                      size_t n_args);

#endif
