/* SPDX-License-Identifier: Apache-2.0 */
/* The config.json that stands beside the weights of a checkpoint, so that transformers loads them: what the
 * family's `writes` say of the settings. */
#include "compiler/program/emit/emit.h"
#include "compiler/settings/evaluate.h"
#include "compiler/settings/family.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *json_of(const nxc_value *value) {
  switch (value->kind) {
    case NXC_BOOL: return json_boolean(value->boolean);
    case NXC_INT: return json_integer(value->integer);
    case NXC_FLOAT: return json_real(value->number);
    case NXC_STRING: return json_stringn(value->text, value->n_bytes);
    case NXC_LIST: {
      json_t *list = json_array();
      for (size_t i = 0; i < value->n_items; i++) json_array_append_new(list, json_of(&value->items[i]));
      return list;
    }
    default: return json_null(); /* no other value is written */
  }
}

/* "rope_scaling.factor" stands in the object rope_scaling. */
static void put(json_t *root, const char *key, json_t *value) {
  const char *dot = strchr(key, '.');
  char section[64];
  if (dot == NULL || (size_t)(dot - key) >= sizeof section) {
    json_object_set_new(root, key, value);
    return;
  }
  memcpy(section, key, (size_t)(dot - key));
  section[dot - key] = '\0';
  if (json_object_get(root, section) == NULL) json_object_set_new(root, section, json_object());
  json_object_set_new(json_object_get(root, section), dot + 1, value);
}

/* transformers' class of the same model with a head of values. */
static const char *with_head(nxc_arena *arena, const char *architecture) {
  static const char *const endings[] = {"ForCausalLM", "LMHeadModel"};
  size_t n = strlen(architecture);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t n_end = strlen(endings[i]);
    if (n > n_end && strcmp(architecture + n - n_end, endings[i]) == 0)
      return nxc_arena_printf(arena, "%.*sForSequenceClassification", (int)(n - n_end), architecture);
  }
  return architecture;
}

/* What a list says of each layer, for a key that a family's `writes` only names (true). */
static json_t *list_of_layers(const nxc_model *model, const char *key) {
  bool windows = strcmp(key, "layer_types") == 0;
  json_t *list = json_array();
  for (int64_t i = 0; i < model->layers; i++) {
    const nxc_layer_spec *layer = nxc_model_layer(model, i);
    if (windows)
      json_array_append_new(
          list, json_string(layer->attention.window > 0 ? "sliding_attention" : "full_attention"));
    else if (layer->ffn.mixture == NULL) json_array_append_new(list, json_integer(i)); /* mlp_only_layers */
  }
  return list;
}

static bool is_list_of_layers(const char *key) {
  return strcmp(key, "layer_types") == 0 || strcmp(key, "mlp_only_layers") == 0;
}

const char *nxc_model_config_text(nxc_arena *arena, const nxc_settings *settings, const nxc_model *model) {
  const nxc_family *family = model->family;
  bool values = nxc_is(settings, NX_SETTING_ALIGNMENT_STRATEGY, "reward");
  if (family->architecture == NULL) return "";
  const char *architecture = values ? with_head(arena, family->architecture) : family->architecture;
  json_t *root =
      json_pack("{s:[s], s:s}", "architectures", architecture, "model_type", family->model_types[0]);
  if (values) json_object_set_new(root, "id2label", json_pack("{s:s}", "0", "LABEL_0"));
  for (size_t i = 0; i < family->n_writes; i++) {
    const nxc_value *value = nxc_settings_evaluate(settings, NULL, family->writes[i].as);
    const char *key = family->writes[i].key;
    if (value != NULL) put(root, key, is_list_of_layers(key) ? list_of_layers(model, key) : json_of(value));
  }
  char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(16));
  const char *copy = nxc_arena_strdup(arena, text);
  free(text);
  json_decref(root);
  return copy;
}
