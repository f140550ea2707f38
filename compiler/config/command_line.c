/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/command_line.h"

#include "compiler/config/rules/assignment.h"
#include "compiler/diagnostics/nearest.h"

#include <string.h>

typedef struct setting {
  nxc_arena *arena;
  const nxc_request *request;
  nxc_sink *sink;
  nxc_compiled *out;
} setting;

bool nxc_command_line_is_setting(const char *assignment) {
  return strncmp(assignment, "nx:", 3) == 0;
}

/* The name of a --set nx:NAME=VALUE. */
static nxc_span place_of_set(const setting *c, const char *assignment) {
  const nxc_source *source = nxc_source_new(c->arena, "--set", assignment, strlen(assignment));
  return (nxc_span){source, 1, 1, (uint32_t)strcspn(assignment, "=")};
}

static bool report_no_setting(const setting *c, const char *path, nxc_span at) {
  const char **paths = nxc_arena_array(c->arena, NX_N_SETTINGS, sizeof *paths);
  for (size_t id = 0; id < NX_N_SETTINGS; id++) paths[id] = nxc_setting_path((nxc_setting_id)id);
  const char *fix = nxc_did_you_mean(c->arena, "nx:", nxc_nearest(path, paths, NX_N_SETTINGS));
  nxc_report(c->sink, "NX1312", NXC_SEVERITY_ERROR, at, fix, "there is no setting %s", path);
  return false;
}

static bool set_from_command_line(const setting *c, nxc_setting_id id, const char *text, const char *origin) {
  nxc_settings *settings = c->out->settings;
  const nxc_provenance *before = nxc_settings_from(settings, id);
  if (!nxc_settings_set_text(settings, nxc_setting_path(id), text, c->sink)) return false;
  const nxc_value *value = nxc_settings_value(settings, id);
  if (before->kind < NXC_FROM_FILE || nxc_value_equal(before->value, value)) return true;
  bool clash = before->kind == NXC_FROM_CLI;
  nxc_report(c->sink, clash ? "NX1311" : "NX1319", clash ? NXC_SEVERITY_ERROR : NXC_SEVERITY_NOTE, before->at,
             NULL, "%s gives %s the value %s, but %s gives it %s%s", origin, nxc_setting_path(id),
             nxc_settings_show(settings, id), before->option, nxc_value_show(c->arena, before->value),
             clash ? "" : "; the command line counts");
  return !clash;
}

static bool set_world_of_project(const setting *c) {
  const nxc_node *node = c->out->project.world_size;
  const nxc_provenance from = {
      .kind = NXC_FROM_PROJECT, .at = node->at, .option = nxc_setting_path(NX_SETTING_MESH_WORLD)};
  return nxc_settings_set(c->out->settings, NX_SETTING_MESH_WORLD, &node->value, &from, c->sink);
}

static bool set_all(const setting *c) {
  bool ok = true;
  for (size_t i = 0; i < c->request->n_sets; i++) {
    const char *assignment = c->request->sets[i];
    if (!nxc_command_line_is_setting(assignment)) continue;
    size_t n_path = strcspn(assignment + 3, "=");
    const char *path = nxc_arena_strndup(c->arena, assignment + 3, n_path);
    nxc_setting_id id = nxc_setting_find(path);
    if (assignment[3 + n_path] == '\0') {
      nxc_report(c->sink, "NX1312", NXC_SEVERITY_ERROR, place_of_set(c, assignment), "write --set KEY=VALUE",
                 "--set %s has no =VALUE", assignment);
      ok = false;
    } else if (id == NX_N_SETTINGS) {
      ok = report_no_setting(c, path, place_of_set(c, assignment));
    } else {
      ok = set_from_command_line(c, id, assignment + 4 + n_path,
                                 nxc_arena_printf(c->arena, "--set nx:%s", path)) &&
           ok;
    }
  }
  const char *world = c->request->world_size;
  if (world == NULL && c->out->project.world_size != NULL) return set_world_of_project(c) && ok;
  return (world == NULL || set_from_command_line(c, NX_SETTING_MESH_WORLD, world, "--world-size")) && ok;
}

bool nxc_command_line_set(nxc_arena *arena, const nxc_request *request, nxc_compiled *compiled,
                          nxc_sink *sink) {
  const setting c = {.arena = arena, .request = request, .sink = sink, .out = compiled};
  return set_all(&c);
}
