/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/plateau.h"

#include "compiler/program/records/read.h"

nx_plateau nxc_plateau_read(const nxc_settings *s, const nxc_evaluations *evaluations) {
  return (nx_plateau){
      .factor = nxc_number(s, NX_SETTING_SCHEDULE_FACTOR),
      .least = nxc_number(s, NX_SETTING_SCHEDULE_MIN_LR),
      .threshold = nxc_number(s, NX_SETTING_SCHEDULE_PLATEAU_THRESHOLD),
      .least_change = nxc_number(s, NX_SETTING_SCHEDULE_PLATEAU_LEAST_CHANGE),
      .every = (uint64_t)nxc_int_or(s, NX_SETTING_SCHEDULE_PLATEAU_EVERY, 0),
      .patience = (uint32_t)nxc_int(s, NX_SETTING_SCHEDULE_PLATEAU_PATIENCE),
      .cooldown = (uint32_t)nxc_int(s, NX_SETTING_SCHEDULE_PLATEAU_COOLDOWN),
      .rules = (nxc_is(s, NX_SETTING_SCHEDULE_PLATEAU_MODE, "max") ? NX_PLATEAU_GREATER : 0u) |
               (nxc_is(s, NX_SETTING_SCHEDULE_PLATEAU_THRESHOLD_MODE, "absolute") ? NX_PLATEAU_ABSOLUTE : 0u),
      .evaluation = nxc_evaluation_named(evaluations, nxc_text(s, NX_SETTING_SCHEDULE_PLATEAU_METRIC))};
}

bool nxc_plateau_judge(const nxc_settings *s, nxc_sink *sink, const nx_plateau *plateau) {
  const nxc_setting_id at = NX_SETTING_SCHEDULE_PLATEAU_METRIC;
  bool measured = plateau->evaluation != NX_NONE || nxc_is(s, at, "train");
  if (measured || !nxc_is(s, NX_SETTING_SCHEDULE_NAME, "plateau")) return true;
  nxc_report(sink, "NX3024", NXC_SEVERITY_ERROR, nxc_settings_span(s, at),
             "evaluate a validation set (evaluate.batches, data.split), or follow the loss of the training",
             "%s: no set is evaluated that has the name %s", nxc_setting_name_in_dialect(s, at),
             nxc_text(s, at));
  return false;
}
