/* SPDX-License-Identifier: Apache-2.0 */
/* The expression language's functions about datasets, which it reads where they are there. */
#ifndef NXC_EXPRESSION_DATASETS_H
#define NXC_EXPRESSION_DATASETS_H

#include "compiler/expression/expression_tree.h"

const nxc_value *nxc_call_epoch_samples(nxc_evaluation *evaluation, const nxc_value *const *args,
                                        size_t n_args);

#endif
