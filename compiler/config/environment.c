/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/environment.h"

#include "compiler/config/exports.h"

#include <string.h>

static bool is_declared(const nxc_compiled *compiled, const char *name) {
  const nxc_texts *names = &compiled->project.env;
  for (size_t i = 0; i < names->n_items; i++)
    if (strcmp(names->items[i], name) == 0) return true;
  return false;
}

void nxc_environment_check(nxc_arena *arena, const nxc_request *request, const nxc_compiled *compiled,
                           nxc_sink *sink) {
  const nxc_resolution *resolution = &compiled->resolution;
  if (!request->hermetic && !compiled->project.hermetic) return;
  for (size_t i = 0; i < resolution->n_variables; i++) {
    const nxc_variable *variable = &resolution->variables[i];
    if (is_declared(compiled, variable->name)) continue;
    nxc_report(sink, "NX1531", NXC_SEVERITY_ERROR, variable->at,
               nxc_arena_printf(arena, "write the value, or list %s under env in " NXC_PROJECT_FILE,
                                variable->name),
               "the environment variable %s is not declared", variable->name);
  }
}

void nxc_environment_warn(nxc_arena *arena, const nxc_request *request, const nxc_compiled *compiled,
                          nxc_sink *sink) {
  size_t n_exports;
  const nxc_export *exports = nxc_exports(arena, compiled, &n_exports);
  bool hermetic = request->hermetic || compiled->project.hermetic;
  for (size_t i = 0; i < n_exports; i++) {
    const nxc_export *e = &exports[i];
    if (e->ambient == NULL || e->joined || e->at.source == NULL) continue;
    bool error = hermetic && !is_declared(compiled, e->name);
    nxc_report(sink, "NX1532", error ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING, e->at,
               nxc_arena_printf(arena, "unset %s where the training is launched", e->name),
               "%s is %s in this environment, which would win over %s, from %s", e->name,
               *e->ambient ? e->ambient : "empty", e->value, e->from);
  }
}
