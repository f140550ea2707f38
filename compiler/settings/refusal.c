/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/refusal.h"

#include "compiler/expression/expression.h"
#include "compiler/settings/evaluate.h"

bool nxc_setting_is_refused(const nxc_settings *settings, nxc_setting_id id) {
  const char *condition = nxc_setting_rows[id].refused_when;
  const nxc_value *value = nxc_settings_value(settings, id);
  const nxc_value *refused = condition && value ? nxc_settings_evaluate(settings, value, condition) : NULL;
  return refused != NULL && nxc_value_is_true(refused);
}
