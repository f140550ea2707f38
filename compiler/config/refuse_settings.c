/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/refuse_settings.h"

#include "compiler/settings/refusal.h"

#include <string.h>

/* Whether the option that gave this setting was refused already, in the dialect's own words. */
static bool refused_as_option(const nxc_compiled *compiled, nxc_setting_id id) {
  const char *option = nxc_settings_from(compiled->settings, id)->option;
  const nxc_bound *bound = option ? nxc_binding_find(compiled->binding, option) : NULL;
  if (option != NULL && bound == NULL) bound = nxc_binding_find_model(compiled->binding, option);
  return bound != NULL && bound->refused;
}

void nxc_refuse_settings(nxc_arena *arena, const nxc_request *request, const nxc_compiled *compiled,
                         nxc_sink *sink) {
  for (size_t id = 0; id < NX_N_SETTINGS; id++) {
    const nxc_setting_row *row = &nxc_setting_rows[id];
    if (!nxc_setting_is_refused(compiled->settings, (nxc_setting_id)id)) continue;
    if (refused_as_option(compiled, (nxc_setting_id)id)) continue;
    const char *name = nxc_setting_name_in_dialect(compiled->settings, (nxc_setting_id)id);
    const char *setting = strcmp(name, row->path) ? nxc_arena_printf(arena, " (%s)", row->path) : "";
    nxc_report(sink, "NX1401", request->for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_NOTE,
               nxc_settings_span(compiled->settings, (nxc_setting_id)id),
               row->instead ? nxc_arena_printf(arena, "use %s", row->instead) : "give it another value",
               "nxrun cannot execute %s%s: %s: %s", name, setting,
               nxc_settings_show(compiled->settings, (nxc_setting_id)id), row->why ? row->why : "not yet");
  }
}
