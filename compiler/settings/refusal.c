/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/refusal.h"

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

bool nxc_setting_is_refused(const nxc_settings *settings, nxc_setting_id id) {
  const char *condition = nxc_setting_rows[id].refused_when, *error;
  asked about = {settings, nxc_settings_value(settings, id)};
  if (condition == NULL || about.value == NULL) return false;
  nxc_arena *arena = nxc_settings_arena(settings);
  const nxc_expression *expression = nxc_expression_of(arena, condition);
  const nxc_scope scope = {.lookup = look_up, .given = is_given, .context = &about};
  const nxc_value *refused = nxc_expression_evaluate(arena, expression, &scope, &error);
  return refused != NULL && nxc_value_is_true(refused);
}
