/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/evaluate.h"

#include "compiler/expression/expression.h"

typedef struct asked {
  const nxc_settings *settings;
  const nxc_value *value;
} asked;

static const nxc_value *look_up(void *context, const nxc_name *name) {
  const asked *about = context;
  if (name->kind == NXC_NAME_VALUE) return about->value;
  nxc_setting_id id = nxc_setting_find(name->path);
  return id < NX_N_SETTINGS ? nxc_settings_value(about->settings, id) : NULL;
}

static bool is_given(void *context, const nxc_name *name) {
  return look_up(context, name) != NULL;
}

const nxc_value *nxc_settings_evaluate(const nxc_settings *settings, const nxc_value *value,
                                       const char *text) {
  asked about = {settings, value};
  const char *error;
  nxc_arena *arena = nxc_settings_arena(settings);
  const nxc_scope scope = {.lookup = look_up, .given = is_given, .context = &about};
  return nxc_expression_evaluate(arena, nxc_expression_of(arena, text), &scope, &error);
}
