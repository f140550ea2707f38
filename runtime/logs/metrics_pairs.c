/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/metrics.h"

static const char *const names[NX_N_PAIR_METRICS] = {
    [NX_PAIR_LOGPS_CHOSEN] = "logps_chosen",     [NX_PAIR_LOGPS_REJECTED] = "logps_rejected",
    [NX_PAIR_REWARDS_CHOSEN] = "rewards_chosen", [NX_PAIR_REWARDS_REJECTED] = "rewards_rejected",
    [NX_PAIR_ACCURACY] = "rewards_accuracy",     [NX_PAIR_MARGIN] = "rewards_margin"};

/* Of ORPO the margin that is summed is the logarithm of the odds ratio, and the chosen answer's own loss is a
 * part of the loss. */
void nxr_metrics_add_pairs(nxr_metrics_row *row, nx_objective objective, const double *sums,
                           uint64_t n_pairs) {
  double means[NX_N_PAIR_METRICS];
  if (objective == NX_OBJECTIVE_TOKENS || n_pairs == 0) return;
  for (int i = 0; i < NX_N_PAIR_METRICS; i++) means[i] = sums[i] / (double)n_pairs;
  if (objective == NX_OBJECTIVE_ORPO) {
    nxr_metrics_add(row, "nll", -means[NX_PAIR_LOGPS_CHOSEN]);
    nxr_metrics_add(row, "log_odds", means[NX_PAIR_MARGIN]);
    means[NX_PAIR_MARGIN] = means[NX_PAIR_REWARDS_CHOSEN] - means[NX_PAIR_REWARDS_REJECTED];
  }
  for (int i = 0; i < NX_N_PAIR_METRICS; i++) nxr_metrics_add(row, names[i], means[i]);
}
