/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/demands.h"

#include <string.h>

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

/* Where the command line can tell what the file leaves open. */
static const char *how_to_tell(nxc_setting_id id) {
  if (id == NX_SETTING_MESH_WORLD) return "say how many ranks there are: --world-size N";
  bool of_model = strncmp(nxc_setting_path(id), "model.", strlen("model.")) == 0;
  return of_model ? "set it, or give the model's config.json: --model-config FILE" : NULL;
}

void nxc_report_unknown(const nxc_settings *s, nxc_sink *sink, nxc_setting_id id) {
  nxc_report(sink, "NX3002", NXC_SEVERITY_ERROR, (nxc_span){0}, how_to_tell(id),
             "%s is unknown, and a plan needs it", nxc_setting_name_in_dialect(s, id));
}
