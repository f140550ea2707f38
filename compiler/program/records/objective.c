/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/objective.h"

#include "compiler/program/records/read.h"

nxc_objective nxc_objective_read(const nxc_settings *s) {
  nxc_objective objective = {.kind = nxc_is(s, NX_SETTING_ALIGNMENT_STRATEGY, "dpo") ? NX_OBJECTIVE_DPO
                                     : nxc_is(s, NX_SETTING_ALIGNMENT_STRATEGY, "orpo")
                                         ? NX_OBJECTIVE_ORPO
                                         : NX_OBJECTIVE_TOKENS};
  if (!nxc_objective_has_pairs(&objective)) return objective;
  objective.beta = nxc_number(s, NX_SETTING_ALIGNMENT_BETA);
  if (objective.kind != NX_OBJECTIVE_DPO) return objective;
  objective.smoothing = nxc_number(s, NX_SETTING_ALIGNMENT_LABEL_SMOOTHING);
  objective.refers = !nxc_flag(s, NX_SETTING_ALIGNMENT_REFERENCE_FREE);
  return objective;
}

bool nxc_objective_has_pairs(const nxc_objective *objective) {
  return objective->kind != NX_OBJECTIVE_TOKENS;
}
