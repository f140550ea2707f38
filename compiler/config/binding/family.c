/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/binding/family.h"

#include "compiler/config/binding/model_config.h"
#include "compiler/settings/domain.h"

#include <string.h>

nxc_bound *nxc_binding_family_key(const nxc_binding *binding) {
  for (size_t i = 0; i < binding->model_dialect->n_options; i++) {
    const char *names = binding->model_options[i].row->names;
    if (names != NULL && strcmp(names, "family") == 0) return &binding->model_options[i];
  }
  return NULL;
}

static nxc_bound *key_named(const nxc_binding *binding, const char *name) {
  const nxc_option_row *row = nxc_option_find(binding->model_dialect, name);
  return row ? &binding->model_options[row - binding->model_dialect->options] : NULL;
}

/* Names that transformers has for every family (attribute_map): where a file has the family's own too, these
 * count, as they are set later. */
static bool is_of_all(const nxc_bound *common) {
  static const char *const names[] = {"hidden_size", "max_position_embeddings", "num_attention_heads",
                                      "num_hidden_layers"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(common->row->name, names[i]) == 0) return true;
  return false;
}

static void rename_key(const nxc_binding *binding, const nxc_family_key *key) {
  nxc_bound *own = key_named(binding, key->key), *common = key_named(binding, key->as);
  if (own == NULL || common == NULL || !own->given) return;
  if (common->given && is_of_all(common)) {
    own->given = false;
    return;
  }
  nxc_verdict verdict = nxc_domain_judge(binding->arena, &common->row->domain, own->value, false);
  if (verdict.misfit != NXC_FITS) return; /* which its own row has reported */
  nxc_option_row *row = nxc_arena_alloc(binding->arena, sizeof *row);
  *row = *common->row;
  row->name = own->row->name; /* as the file calls it */
  own->given = false;
  common->row = row;
  common->given = true;
  common->at = own->at;
  common->kind = own->kind;
  common->value = verdict.value;
}

static void set_default(const nxc_binding *binding, const nxc_bound *type, const nxc_family_key *initial) {
  nxc_bound *bound = key_named(binding, initial->key);
  if (bound == NULL || bound->given) return;
  json_t *json = json_loads(initial->as, JSON_DECODE_ANY, NULL);
  nxc_value *value = nxc_arena_alloc(binding->arena, sizeof *value);
  *value = nxc_value_of_json(binding->arena, json);
  json_decref(json);
  bound->at = type->at;
  bound->kind = type->kind;
  bound->value = nxc_domain_judge(binding->arena, &bound->row->domain, value, false).value;
}

const nxc_family *nxc_binding_read_family(const nxc_binding *binding) {
  const nxc_bound *type =
      binding->has_model_config && !binding->one_family ? nxc_binding_family_key(binding) : NULL;
  if (type == NULL || !type->given || type->value == NULL || type->value->kind != NXC_STRING) return NULL;
  const nxc_family *family = nxc_family_of_type(type->value->text);
  if (family == NULL) return NULL;
  for (size_t i = 0; i < family->n_keys; i++) rename_key(binding, &family->keys[i]);
  for (size_t i = 0; i < family->n_defaults; i++) set_default(binding, type, &family->defaults[i]);
  return family;
}

const nxc_bound *nxc_binding_family_option(const nxc_binding *binding, const nxc_family *family) {
  const nxc_bound *type = nxc_binding_family_key(binding);
  nxc_option_row *row = nxc_arena_alloc(binding->arena, sizeof *row);
  nxc_bound *bound = nxc_arena_alloc(binding->arena, sizeof *bound);
  *row = *type->row;
  row->sets = family->sets;
  row->n_sets = family->n_sets;
  *bound = *type;
  bound->row = row;
  bound->given = false; /* so that a key which says otherwise is no contradiction */
  return bound;
}
