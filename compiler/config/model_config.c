/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/model_config.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The config.json that the file itself names (or whose folder it names), where it is there; on other
 * machines than the one that trains it often is not. */
static const char *named(nxc_arena *arena, const nxc_compiled *compiled) {
  const nxc_binding *binding = compiled->binding;
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    const nxc_bound *bound = &binding->options[i];
    bool names = bound->row->names != NULL && strcmp(bound->row->names, "model") == 0;
    if (!names || !bound->given || bound->value == NULL || bound->value->kind != NXC_STRING) continue;
    const char *path = bound->value->text;
    nxc_settings_miss_model(compiled->settings, path);
    struct stat status;
    size_t n = strlen(path);
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
      path = nxc_arena_printf(arena, "%s/config.json", path);
    else if (n < 5 || strcmp(path + n - 5, ".json") != 0) continue; /* a name, not a file */
    if (access(path, R_OK) == 0) return path;
  }
  return NULL;
}

void nxc_model_config_read(nxc_arena *arena, const nxc_request *request, nxc_compiled *compiled) {
  const char *path = request->model_config ? request->model_config : compiled->project.model_config;
  if (path == NULL) path = named(arena, compiled);
  if (path == NULL) return;
  nxc_settings_miss_model(compiled->settings, NULL);
  bool asked = request->model_config != NULL;
  compiled->unreadable = !nxc_binding_read_model_config(compiled->binding, path, asked);
}
