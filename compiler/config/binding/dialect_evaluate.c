/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of the catalogue, over the options of a file and the settings so far. */
#include "compiler/config/binding/dialect.h"
#include "compiler/document/scalar.h"

#include <string.h>

/* What stands there for an option that the code has of its own. */
static const nxc_value *own_value(const nxc_binding *binding, const char *option) {
  const nxc_node *node = binding->relative ? nxc_node_lookup(binding->document->root, option) : NULL;
  if (node == NULL || node->kind != NXC_NODE_SCALAR || node->failed) return NULL;
  const nxc_value *value = &node->value;
  return value->kind == NXC_STRING ? nxc_scalar_of(binding->arena, value->text) : value;
}

static const nxc_value *look_up(void *context, const nxc_name *name) {
  const nxc_binding *binding = context;
  const nxc_bound *bound = NULL;
  nxc_setting_id id;
  switch (name->kind) {
  case NXC_NAME_SETTING:
    id = nxc_setting_find(name->path);
    return id < NX_N_SETTINGS ? nxc_settings_value(binding->settings, id) : NULL;
  case NXC_NAME_OPTION:
    bound = nxc_binding_find(binding, name->path);
    if (bound == NULL) return own_value(binding, name->path);
    break;
  case NXC_NAME_MODEL_CONFIG:
    bound = binding->has_model_config ? nxc_binding_find_model(binding, name->path) : NULL;
    break;
  case NXC_NAME_VALUE: bound = binding->current; break;
  }
  return bound ? bound->value : NULL;
}

static bool is_given(void *context, const nxc_name *name) {
  const nxc_binding *binding = context;
  const nxc_bound *bound = binding->current;
  if (name->kind == NXC_NAME_OPTION) bound = nxc_binding_find(binding, name->path);
  if (name->kind == NXC_NAME_MODEL_CONFIG) bound = nxc_binding_find_model(binding, name->path);
  if (name->kind != NXC_NAME_SETTING) return bound != NULL && bound->given;
  nxc_setting_id id = nxc_setting_find(name->path);
  return id < NX_N_SETTINGS && nxc_settings_from(binding->settings, id)->kind >= NXC_FROM_ASSUMED;
}

nxc_scope nxc_binding_scope(nxc_binding *binding) {
  return (nxc_scope){.lookup = look_up, .given = is_given, .context = binding,
                     .partial = binding->elsewhere && !binding->assumes_defaults};
}

const nxc_value *nxc_binding_evaluate(nxc_binding *binding, const nxc_bound *current, const char *text) {
  if (strcmp(text, "value") == 0) return current->value;
  const char *error;
  nxc_scope scope = nxc_binding_scope(binding);
  binding->current = current;
  const nxc_value *value =
      nxc_expression_evaluate(binding->arena, nxc_expression_of(binding->arena, text), &scope, &error);
  binding->current = NULL;
  return value;
}

const nxc_value *nxc_binding_invert(nxc_binding *binding, const char *text, const nxc_value *result) {
  nxc_scope scope = nxc_binding_scope(binding);
  return nxc_expression_invert(binding->arena, nxc_expression_of(binding->arena, text), &scope, result);
}

bool nxc_binding_is_true(nxc_binding *binding, const nxc_bound *bound, const char *text) {
  if (strcmp(text, "true") == 0) return true;
  const nxc_value *value = nxc_binding_evaluate(binding, bound, text);
  return value != NULL && nxc_value_is_true(value);
}
