/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/demands.h"

bool nxc_demands_check(const nxc_settings *s, nxc_sink *sink, const nxc_demand *demands, size_t n) {
  bool good = true;
  for (size_t i = 0; i < n; i++) {
    if (demands[i].met) continue;
    nxc_report(sink, demands[i].id, NXC_SEVERITY_ERROR, nxc_settings_span(s, demands[i].at), NULL,
               "%s (%s is %s)", demands[i].text, nxc_setting_name_in_dialect(s, demands[i].at),
               nxc_settings_show(s, demands[i].at));
    good = false;
  }
  return good;
}

void nxc_report_unknown(const nxc_settings *s, nxc_sink *sink, nxc_setting_id id) {
  nxc_report(sink, "NX3002", NXC_SEVERITY_ERROR, (nxc_span){0}, NULL, "%s is unknown, and a plan needs it",
             nxc_setting_name_in_dialect(s, id));
}
