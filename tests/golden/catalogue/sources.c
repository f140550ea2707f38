/* SPDX-License-Identifier: Apache-2.0 */
/* No default of nx is passed off as another system's. Each setting of each dialect is said by an option, a
 * key of config.json, a rule or a preset, or stands in schema/fixed; and in each FILE, none that means
 * anything is left at the default of nx. TAP. Usage: sources FILE... */
#include "compiler/config/compile_settings.h"
#include "compiler/config/fronts.h"

#include <stdio.h>
#include <string.h>

static int n_tests, n_failed;

static void judge(const char *name, const char *missing) {
  bool good = *missing == '\0';
  printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_tests, name);
  if (!good) printf("#%s\n", missing);
  n_failed += !good;
}

/* -- the tables ------------------------------------------------------------------------------------------ */

static bool option_says(const nxc_dialect *dialect, nxc_setting_id id) {
  for (size_t i = 0; i < dialect->n_options; i++)
    for (size_t k = 0; k < dialect->options[i].n_sets; k++)
      if (dialect->options[i].sets[k].setting == id) return true;
  return false;
}

static bool rule_says(const nxc_dialect *dialect, nxc_setting_id id) {
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    bool here = rule->dialect == NULL || strcmp(rule->dialect, dialect->name) == 0;
    if (rule->derives == id && here) return true;
  }
  return false;
}

/* Presets say the types of everything; where a dialect has some, an option names one. */
static bool preset_says(const nxc_dialect *dialect, nxc_setting_id id) {
  bool has_some = false;
  for (size_t i = 0; i < nxc_n_presets; i++)
    has_some = has_some || strcmp(nxc_presets[i].dialect, dialect->name) == 0;
  static const nxc_setting_id types[] = {
      NX_SETTING_PRECISION_PARAM,           NX_SETTING_PRECISION_COMPUTE,
      NX_SETTING_PRECISION_MASTER_WEIGHTS,  NX_SETTING_PRECISION_GRAD_ACCUMULATION,
      NX_SETTING_PRECISION_OPTIMIZER_STATE, NX_SETTING_PRECISION_REDUCE,
      NX_SETTING_PRECISION_STOCHASTIC_ROUNDING};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i] == id) return has_some && option_says(dialect, NX_SETTING_PRECISION_PRESET);
  return false;
}

static void judge_dialect(nxc_arena *arena, const nxc_dialect *dialect) {
  const char *version, *missing = "";
  const nxc_front *front = nxc_front_find(arena, dialect->name, &version);
  const nxc_dialect *model = nxc_dialect_find("hf_config");
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    bool said = option_says(dialect, id) || rule_says(dialect, id) || preset_says(dialect, id) ||
                (front->model_option != NULL && option_says(model, id));
    if (!said && nxc_fixed_find(dialect, id) == NULL)
      missing = nxc_arena_printf(arena, "%s %s", missing, nxc_setting_path(id));
  }
  judge(nxc_arena_printf(arena, "%s: every setting is said, or stands in schema/fixed", dialect->name),
        missing);
}

/* -- files ----------------------------------------------------------------------------------------------- */

static bool means_something(const nxc_compiled *compiled, nxc_setting_id id) {
  const char *condition = nxc_setting_rows[id].read_when;
  const nxc_value *read = condition ? nxc_binding_evaluate(compiled->binding, NULL, condition) : NULL;
  return read == NULL || nxc_value_is_true(read);
}

static void judge_file(nxc_arena *arena, const char *file) {
  nxc_compiled compiled;
  const nxc_request request = {.file = file, .world_size = "8"};
  nxc_compile_settings(arena, &request, nxc_sink_new(arena), &compiled);
  const char *missing = compiled.settings ? "" : " it is not read";
  for (nxc_setting_id id = 0; compiled.settings != NULL && id < NX_N_SETTINGS; id++)
    if (nxc_settings_from(compiled.settings, id)->kind == NXC_FROM_DEFAULT && means_something(&compiled, id))
      missing = nxc_arena_printf(arena, "%s %s", missing, nxc_setting_path(id));
  judge(nxc_arena_printf(arena, "%s: nothing is a default of nx", file), missing);
}

int main(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  static const char *const systems[] = {"nxdt", "megatron", "neox", "xorl"};
  for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
    judge_dialect(arena, nxc_dialect_find(systems[i]));
  for (int i = 1; i < argc; i++) judge_file(arena, argv[i]);
  printf("1..%d\n", n_tests);
  nxc_arena_free(arena);
  return n_failed > 0;
}
