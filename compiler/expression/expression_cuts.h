/* SPDX-License-Identifier: Apache-2.0 */
/* The expression language's functions that cut layers into chunks of a pipeline: rows of the table of
 * functions. */
#ifndef NXC_CONFIG_EXPRESSION_CUTS_H
#define NXC_CONFIG_EXPRESSION_CUTS_H

#include "compiler/expression/expression_tree.h"

typedef const nxc_value *nxc_cuts_function(nxc_evaluation *evaluation, const nxc_value *const *args,
                                           size_t n_args);
nxc_cuts_function nxc_call_stage_cuts, nxc_call_weighted_cuts, nxc_call_layout_cuts, nxc_call_deepspeed_cuts;
nxc_cuts_function nxc_call_cut_ends, nxc_call_cut_counts, nxc_call_cuts_layout;

#endif
