/* SPDX-License-Identifier: Apache-2.0 */
/* --assume SETTING=VALUE, which must be a setting and a value that it can have, model=NAME, and none. */
#include "compiler/commands/estimate.h"
#include "compiler/config/rules/assignment.h"
#include "compiler/diagnostics/nearest.h"
#include "compiler/estimate/known.h"

#include <string.h>

/* NX_N_SETTINGS, with a message, where there is none of this name. */
static nxc_setting_id find_setting(const char *command, const char *text, const char *path) {
  nxc_setting_id id = nxc_setting_find(path);
  if (id != NX_N_SETTINGS) return id;
  const char *paths[NX_N_SETTINGS];
  for (size_t i = 0; i < NX_N_SETTINGS; i++) paths[i] = nxc_setting_rows[i].path;
  const char *nearest = nxc_nearest(path, paths, NX_N_SETTINGS);
  fprintf(stderr, "nxcfg %s: --assume %s: there is no setting %s%s%s%s\n", command, text, path,
          nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
  return NX_N_SETTINGS;
}

static bool takes(nxc_arena *arena, const char *command, const char *text, const nxc_assumption *one) {
  nxc_sink *sink = nxc_sink_new(arena);
  const char *path = nxc_setting_path(one->setting);
  if (nxc_settings_set_text(nxc_settings_new(arena), path, one->value, sink)) return true;
  const char *why = nxc_sink_n_findings(sink) > 0 ? nxc_sink_finding(sink, 0)->message : "it is no value";
  fprintf(stderr, "nxcfg %s: --assume %s: %s (nxcfg explain %s)\n", command, text, why, path);
  return false;
}

static bool knows(const char *command, const char *name) {
  if (nxc_known_model_in(name, 0, 0) != NULL) return true;
  fprintf(stderr,
          "nxcfg %s: --assume model=%s: no model of this name is known, as Qwen/Qwen3-8B is: give its "
          "config.json (--model-config FILE)\n",
          command, name);
  return false;
}

static bool read_one(nxc_arena *arena, const char *command, const char *text, nxc_assumption *one) {
  const char *assignment = text + (strncmp(text, "nx:", 3) == 0 ? 3 : 0);
  size_t n_path = strcspn(assignment, "=");
  if (n_path == 0 || assignment[n_path] == '\0') {
    fprintf(stderr,
            "nxcfg %s: --assume takes SETTING=VALUE, as model.vocab=50257, model=NAME, or none, not %s\n",
            command, text);
    return false;
  }
  if (n_path == strlen("model") && strncmp(assignment, "model", n_path) == 0) {
    *one = (nxc_assumption){NXC_ASSUMES_MODEL, assignment + n_path + 1, "--assume"};
    return knows(command, one->value);
  }
  nxc_setting_id id = find_setting(command, text, nxc_arena_strndup(arena, assignment, n_path));
  if (id == NX_N_SETTINGS) return false;
  *one = (nxc_assumption){id, assignment + n_path + 1, "--assume"};
  return takes(arena, command, text, one);
}

bool nxc_estimate_assume(nxc_arena *arena, const char *command, const nxc_texts *texts,
                         nxc_estimate_request *out) {
  nxc_assumption *items = nxc_arena_array(arena, texts->n_items + 1, sizeof *items);
  size_t n = 0;
  for (size_t i = texts->n_items; i-- > 0;) { /* of several for one setting the last counts */
    if (strcmp(texts->items[i], "none") == 0) out->assumes_nothing = true;
    else if (!read_one(arena, command, texts->items[i], &items[n++])) return false;
  }
  if (out->assumes_nothing && n > 0) {
    fprintf(stderr,
            "nxcfg %s: --assume none leaves nothing to assume, and there is --assume %s=%s beside it\n",
            command, items[0].setting == NXC_ASSUMES_MODEL ? "model" : nxc_setting_path(items[0].setting),
            items[0].value);
    return false;
  }
  out->assumptions = items;
  out->n_assumptions = n;
  return true;
}
