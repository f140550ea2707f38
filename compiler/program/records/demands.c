/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/demands.h"

#include <string.h>

bool nxc_demands_check(const nxc_settings *s, nxc_sink *sink, const nxc_demand *demands, size_t n) {
  bool good = true;
  for (size_t i = 0; i < n; i++) {
    if (demands[i].met) continue;
    nxc_report(sink, demands[i].id, NXC_SEVERITY_ERROR, nxc_settings_span(s, demands[i].at),
               "choose other values, or validate without --for nxrun", "%s (%s is %s)", demands[i].text,
               nxc_setting_name_in_dialect(s, demands[i].at), nxc_settings_show(s, demands[i].at));
    good = false;
  }
  return good;
}

/* -- what nothing tells ---------------------------------------------------------------------------------- */

enum { NAMED_MAX = 4 };

static bool is_below(nxc_setting_id id, const char *group) {
  return strncmp(nxc_setting_path(id), group, strlen(group)) == 0;
}

static bool is_of_model(nxc_setting_id id) {
  return is_below(id, "model.") || is_below(id, "moe.");
}

/* Whether the number of ranks, which is asked for already, may tell it. */
static bool follows_from_world(const nxc_settings *s, nxc_setting_id id) {
  bool counts = id == NX_SETTING_MESH_DATA || is_below(id, "batch.");
  return counts && !nxc_has(s, NX_SETTING_MESH_WORLD);
}

static const char *how_to_tell(const nxc_settings *s, nxc_setting_id id) {
  bool by_epochs = nxc_has(s, NX_SETTING_SCHEDULE_EPOCHS);
  if (id == NX_SETTING_SCHEDULE_MAX_STEPS && by_epochs)
    return "the schedule has the steps of its epochs where the dataset is here: prepare it with a plan of "
           "--set nx:schedule.max_steps=1 (nxdata prepare), or give epochs x samples of the dataset / "
           "sequences "
           "of a step";
  if (id == NX_SETTING_MESH_WORLD) return "say how many ranks there are: --world-size N";
  return is_of_model(id) ? "set it, or give the model's config.json: --model-config FILE" : NULL;
}

/* What may tell it: the arguments that the script itself reads. */
static const char *asked(const nxc_settings *s) {
  size_t n = nxc_settings_missed_arguments(s);
  if (n == 0) return "";
  return n == 1 ? "; the script reads $1 (--args tells it)"
                : nxc_arena_printf(nxc_settings_arena(s), "; the script reads $1 to $%zu (--args tells them)",
                                   n);
}

/* What one config.json tells is one finding. It names sizes before kinds. */
static void report_model(const nxc_settings *s, nxc_sink *sink, const nxc_setting_id *ids, size_t n) {
  nxc_arena *arena = nxc_sink_arena(sink);
  const char *names = "", *missed = nxc_settings_missed_model(s);
  if (missed != NULL) {
    size_t n_bytes = strlen(missed);
    bool is_file = n_bytes > 5 && strcmp(missed + n_bytes - 5, ".json") == 0;
    nxc_report(sink, "NX3002", NXC_SEVERITY_ERROR, (nxc_span){0},
               "give the model's config.json: --model-config FILE; for an estimate alone --assume model=NAME "
               "takes a model that is known",
               "the model is unknown, and a plan needs it: %s%s is not here",
               is_file ? "" : "the config.json of ", missed);
    return;
  }
  size_t from = n > NAMED_MAX && ids[0] == NX_SETTING_MODEL_KIND;
  for (size_t i = from; i < n && i < from + NAMED_MAX; i++)
    names = nxc_arena_printf(arena, "%s%s%s", names, i > from ? ", " : "",
                             nxc_setting_name_in_dialect(s, ids[i]));
  if (n > NAMED_MAX) names = nxc_arena_printf(arena, "%s and %zu more", names, n - NAMED_MAX);
  nxc_report(
      sink, "NX3002", NXC_SEVERITY_ERROR, (nxc_span){0},
      "give the model's config.json (--model-config FILE), or set them; for an estimate alone --assume "
      "model=NAME",
      "the model is unknown, and a plan needs it: %s%s", names, asked(s));
}

void nxc_report_unknown(const nxc_settings *s, nxc_sink *sink, const nxc_setting_id *ids, size_t n) {
  nxc_setting_id *of_model = nxc_arena_array(nxc_sink_arena(sink), n + 1, sizeof *of_model);
  size_t n_model = 0;
  for (size_t i = 0; i < n; i++)
    if (is_of_model(ids[i])) of_model[n_model++] = ids[i];
  if (n_model > 1) report_model(s, sink, of_model, n_model);
  const char *may_tell = n_model > 1 ? "" : asked(s); /* said once */
  for (size_t i = 0; i < n; i++) {
    if (follows_from_world(s, ids[i]) || (n_model > 1 && is_of_model(ids[i]))) continue;
    nxc_report(sink, "NX3002", NXC_SEVERITY_ERROR, (nxc_span){0}, how_to_tell(s, ids[i]),
               "%s is unknown, and a plan needs it%s", nxc_setting_name_in_dialect(s, ids[i]), may_tell);
    may_tell = "";
  }
}
