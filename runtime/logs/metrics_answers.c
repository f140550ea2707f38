/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/metrics.h"

void nxr_metrics_add_answers(nxr_metrics_row *row, uint32_t objective, const double *sums,
                             uint64_t n_sequences) {
  const nx_objective_row *is = nx_objective_find(objective);
  double n_samples = (double)n_sequences / is->rows;
  for (int i = 0; n_samples > 0 && i < NX_N_ANSWER_METRICS && is->metrics[i]; i++)
    nxr_metrics_add(row, is->metrics[i], sums[i] / n_samples);
}
