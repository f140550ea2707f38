/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives of a training, and what is counted of those that compare two answers. */
#ifndef NX_OBJECTIVE_H
#define NX_OBJECTIVE_H

/* What is trained for: the next token, or that chosen answers are preferred to rejected ones. */
typedef enum nx_objective { NX_OBJECTIVE_TOKENS, NX_OBJECTIVE_DPO, NX_OBJECTIVE_ORPO } nx_objective;

/* Of a pair, in this order: log-probabilities of the chosen and the rejected answer (of ORPO the mean over
 * their tokens), their rewards, whether the chosen one's is greater, and the margin (of ORPO the logarithm of
 * the odds ratio). */
typedef enum nx_pair_metric {
  NX_PAIR_LOGPS_CHOSEN,
  NX_PAIR_LOGPS_REJECTED,
  NX_PAIR_REWARDS_CHOSEN,
  NX_PAIR_REWARDS_REJECTED,
  NX_PAIR_ACCURACY,
  NX_PAIR_MARGIN,
  NX_N_PAIR_METRICS
} nx_pair_metric;

#endif
