/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/objective.h"

#include "compiler/program/records/read.h"

static nx_objective kind_of(const nxc_settings *s) {
  for (uint32_t kind = NX_OBJECTIVE_TOKENS + 1; kind < NX_N_OBJECTIVES; kind++)
    if (nxc_is(s, NX_SETTING_ALIGNMENT_STRATEGY, nx_objective_find(kind)->name)) return kind;
  return NX_OBJECTIVE_TOKENS;
}

nxc_objective nxc_objective_read(const nxc_settings *s) {
  nxc_objective objective = {.kind = kind_of(s)};
  objective.row = nx_objective_find(objective.kind);
  if (!nxc_objective_compares(&objective)) {
    objective.z = nxc_number(s, NX_SETTING_LOSS_Z_COEF);
    return objective;
  }
  objective.beta = nxc_number(s, NX_SETTING_ALIGNMENT_BETA);
  objective.desirable = nxc_number(s, NX_SETTING_ALIGNMENT_DESIRABLE_WEIGHT);
  objective.undesirable = nxc_number(s, NX_SETTING_ALIGNMENT_UNDESIRABLE_WEIGHT);
  objective.penalty = nxc_number(s, NX_SETTING_ALIGNMENT_VALUE_PENALTY);
  if (objective.kind == NX_OBJECTIVE_DPO)
    objective.smoothing = nxc_number(s, NX_SETTING_ALIGNMENT_LABEL_SMOOTHING);
  bool apart = objective.row->must_refer || !nxc_flag(s, NX_SETTING_ALIGNMENT_REFERENCE_FREE);
  objective.refers = objective.row->may_refer && apart;
  return objective;
}

bool nxc_objective_compares(const nxc_objective *objective) {
  return objective->kind != NX_OBJECTIVE_TOKENS;
}
