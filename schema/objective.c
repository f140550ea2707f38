/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/objective.h"

#include <stddef.h>

static const nx_objective_row rows[NX_N_OBJECTIVES] = {
    [NX_OBJECTIVE_TOKENS] = {.name = "none", .rows = 1},
    [NX_OBJECTIVE_DPO] = {.name = "dpo",
                          .rows = 2,
                          .may_refer = true,
                          .metrics = {"logps_chosen", "logps_rejected", "rewards_chosen", "rewards_rejected",
                                      "rewards_accuracy", "rewards_margin"}},
    [NX_OBJECTIVE_ORPO] = {.name = "orpo",
                           .rows = 2,
                           .metrics = {"nll", "log_odds", "logps_chosen", "logps_rejected", "rewards_chosen",
                                       "rewards_rejected", "rewards_accuracy", "rewards_margin"}},
    [NX_OBJECTIVE_KTO] = {.name = "kto",
                          .rows = 1,
                          .may_refer = true,
                          .must_refer = true,
                          .has_rewards = true,
                          .even = true,
                          .metrics = {"logps", "reference_logps", "logps_chosen", "reference_logps_chosen",
                                      "logps_rejected", "reference_logps_rejected", "kl", "rewards",
                                      "rewards_accuracy"}},
    [NX_OBJECTIVE_REWARD] = {.name = "reward",
                             .rows = 2,
                             .has_values = true,
                             .metrics = {"values_chosen", "values_rejected", "rewards_accuracy",
                                         "rewards_margin"}},
};

const nx_objective_row *nx_objective_find(uint32_t number) {
  return number < NX_N_OBJECTIVES ? &rows[number] : NULL;
}
