/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/expression/expression_batches.h"
#include "compiler/expression/expression_datasets.h"
#include "compiler/expression/expression_cuts.h"
#include "compiler/expression/expression_function.h"
#include "compiler/expression/expression_ramp.h"

static const nxc_expression_function system_functions[] = {
    {"stage_cuts", 7, 7, false, nxc_call_stage_cuts, NULL},
    {"weighted_cuts", 4, 4, false, nxc_call_weighted_cuts, NULL},
    {"layout_cuts", 1, 1, false, nxc_call_layout_cuts, NULL},
    {"deepspeed_cuts", 6, 6, false, nxc_call_deepspeed_cuts, NULL},
    {"cut_ends", 2, 2, false, nxc_call_cut_ends, NULL},
    {"cut_counts", 2, 2, false, nxc_call_cut_counts, NULL},
    {"cuts_layout", 2, 2, false, nxc_call_cuts_layout, NULL},
    {"ramped_steps", 5, 5, false, nxc_call_ramped_steps, NULL},
    {"growth", 4, 4, false, nxc_call_growth, NULL},
    {"batch_sizes", 2, 2, false, nxc_call_batch_sizes, NULL},
    {"last_batch_size", 2, 2, false, nxc_call_last_batch_size, NULL},
    {"batch_steps", 3, 3, false, nxc_call_batch_steps, NULL},
    {"epoch_samples", 3, 3, false, nxc_call_epoch_samples, NULL},
    {0},
};

const nxc_expression_function *nxc_expression_function_find(const char *name, size_t n_bytes) {
  const nxc_expression_function *tables[] = {nxc_number_functions, nxc_text_functions, nxc_list_functions,
                                             system_functions};
  for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
    for (const nxc_expression_function *row = tables[table]; row->name; row++)
      if (nxc_expression_is_word(row->name, name, n_bytes)) return row;
  return NULL;
}
