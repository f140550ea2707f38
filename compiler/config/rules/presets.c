/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/presets.h"

#include "compiler/diagnostics/nearest.h"

#include <string.h>

const nxc_preset_row *nxc_preset_find(const nxc_dialect *dialect, const char *spelling) {
  for (size_t i = 0; i < nxc_n_presets; i++) {
    const nxc_preset_row *row = &nxc_presets[i];
    if (strcmp(dialect->name, "nx") != 0 && strcmp(row->dialect, dialect->name) != 0) continue;
    for (size_t j = 0; j < row->n_spellings; j++) {
      if (strcmp(row->spellings[j], spelling) == 0) return row;
    }
  }
  return NULL;
}

static bool report_unknown(nxc_arena *arena, nxc_settings *settings, const nxc_dialect *dialect,
                           const char *spelling, nxc_sink *sink) {
  const char **names = nxc_arena_array(arena, nxc_n_presets + 1, sizeof *names);
  for (size_t i = 0; i < nxc_n_presets; i++) names[i] = nxc_presets[i].name;
  const char *nearest = nxc_nearest(spelling, names, nxc_n_presets);
  nxc_report(sink, "NX1318", NXC_SEVERITY_ERROR, nxc_settings_span(settings, NX_SETTING_PRECISION_PRESET),
             nearest ? nxc_did_you_mean(arena, "", nearest) : "name another, or none",
             "%s has no precision preset %s", dialect->name, spelling);
  return false;
}

enum { N_DECISIONS = 7 };

typedef struct decision {
  nxc_setting_id id;
  const char *word; /* NULL: the preset does not say */
  bool is_flag;
  bool flag;
} decision;

static void decide(const nxc_preset_row *row, decision decisions[N_DECISIONS]) {
  const decision made[N_DECISIONS] = {
      {NX_SETTING_PRECISION_PARAM, row->param, false, false},
      {NX_SETTING_PRECISION_COMPUTE, row->compute, false, false},
      {NX_SETTING_PRECISION_MASTER_WEIGHTS, row->master, true,
       row->master && strcmp(row->master, "fp32") == 0},
      {NX_SETTING_PRECISION_GRAD_ACCUMULATION, row->gradient, false, false},
      {NX_SETTING_PRECISION_OPTIMIZER_STATE, row->optimizer_state, false, false},
      {NX_SETTING_PRECISION_REDUCE, row->reduce, false, false},
      {NX_SETTING_PRECISION_STOCHASTIC_ROUNDING, "yes", true, row->stochastic_rounding},
  };
  memcpy(decisions, made, sizeof made);
}

bool nxc_preset_means(const nxc_preset_row *row, const nxc_settings *settings) {
  decision decisions[N_DECISIONS];
  decide(row, decisions);
  for (size_t i = 0; i < N_DECISIONS; i++) {
    const decision *made = &decisions[i];
    if (made->word == NULL || !nxc_has(settings, made->id)) continue;
    bool same =
        made->is_flag ? nxc_flag(settings, made->id) == made->flag : nxc_is(settings, made->id, made->word);
    if (!same) return false;
  }
  return true;
}

bool nxc_presets_apply(nxc_arena *arena, nxc_settings *settings, const nxc_dialect *dialect, nxc_sink *sink) {
  if (!nxc_has(settings, NX_SETTING_PRECISION_PRESET)) return true;
  const char *spelling = nxc_text(settings, NX_SETTING_PRECISION_PRESET);
  const nxc_preset_row *row = nxc_preset_find(dialect, spelling);
  /* A dialect without presets says types one by one. */
  bool by_default = nxc_settings_from(settings, NX_SETTING_PRECISION_PRESET)->kind <= NXC_FROM_ABSENT;
  if (row == NULL && by_default) return true;
  if (row == NULL) return report_unknown(arena, settings, dialect, spelling, sink);
  if (row->compute == NULL) return true; /* manual: every switch stands by itself */
  decision decisions[N_DECISIONS];
  decide(row, decisions);
  bool ok = true;
  for (size_t i = 0; i < N_DECISIONS; i++) {
    const decision *made = &decisions[i];
    if (made->word == NULL) continue;
    nxc_value value = {.kind = NXC_STRING, .text = made->word, .n_bytes = strlen(made->word)};
    if (made->is_flag) value = (nxc_value){.kind = NXC_BOOL, .boolean = made->flag};
    nxc_value *kept = nxc_arena_alloc(arena, sizeof *kept);
    *kept = value;
    nxc_provenance from = {.kind = NXC_FROM_PRESET, .origin = row->name};
    ok = nxc_settings_set(settings, made->id, kept, &from, sink) && ok;
  }
  return ok;
}
