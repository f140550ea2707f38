/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/redaction.h"
#include "compiler/config/settings_json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static json_t *text_to_json(const char *text, size_t n_bytes) {
  json_t *json = json_stringn(text, n_bytes);
  return json ? json : json_stringn_nocheck("", 0); /* not UTF-8: the reader has reported it */
}

static json_t *value_to_json(nxc_arena *arena, const nxc_value *value) {
  switch (value->kind) {
  case NXC_BOOL: return json_boolean(value->boolean);
  case NXC_INT: return value->digits ? json_string(value->digits) : json_integer(value->integer);
  case NXC_FLOAT:
    return isfinite(value->number) ? json_real(value->number)
                                   : json_string(nxc_float_repr(arena, value->number));
  case NXC_STRING:
  case NXC_BYTES: return text_to_json(value->text, value->n_bytes);
  case NXC_LIST: {
    json_t *list = json_array();
    for (size_t i = 0; i < value->n_items; i++)
      json_array_append_new(list, value_to_json(arena, &value->items[i]));
    return list;
  }
  case NXC_MAP: {
    json_t *map = json_object();
    for (size_t i = 0; i < value->n_items; i++) {
      const nxc_value *key = &value->items[2 * i];
      const char *name = key->kind == NXC_STRING ? key->text : nxc_value_show(arena, key);
      json_object_set_new(map, name, value_to_json(arena, &value->items[2 * i + 1]));
    }
    return map;
  }
  case NXC_NULL:
  case NXC_MISSING: break;
  }
  return json_null();
}

struct json_t *nxc_settings_to_json(nxc_arena *arena, const nxc_settings *settings) {
  json_t *object = json_object();
  for (size_t i = 0; i < NX_N_SETTINGS; i++) {
    nxc_setting_id id = (nxc_setting_id)i;
    const nxc_value *value = nxc_settings_value(settings, id);
    if (value == NULL || nxc_settings_absent(settings, id)) {
      json_object_set_new(object, nxc_setting_path(id), json_null());
      continue;
    }
    bool hidden = nxc_settings_from(settings, id)->redacted;
    const nxc_value shown = hidden ? nxc_redacted(arena, value) : *value;
    json_object_set_new(object, nxc_setting_path(id), value_to_json(arena, &shown));
  }
  return object;
}

static void set_place(json_t *object, nxc_span at) {
  if (at.source == NULL) return;
  json_object_set_new(object, "file", text_to_json(at.source->name, strlen(at.source->name)));
  json_object_set_new(object, "line", json_integer(at.line));
  json_object_set_new(object, "column", json_integer(at.column));
}

/* "a, b" as ["a", "b"]. */
static json_t *names_to_json(const char *names) {
  json_t *list = json_array();
  while (*names != '\0') {
    size_t n_bytes = strcspn(names, ",");
    json_array_append_new(list, text_to_json(names, n_bytes));
    names += n_bytes + strspn(names + n_bytes, ", ");
  }
  return list;
}

/* What the origin of a value of this kind is. */
static const char *origin_key(nxc_provenance_kind kind) {
  if (kind == NXC_FROM_ABSENT || kind == NXC_FROM_FIXED) return "why";
  return kind == NXC_FROM_RULE ? "rule" : "preset";
}

static json_t *source_to_json(const nxc_provenance *from) {
  json_t *object = json_object();
  json_object_set_new(object, "kind", json_string(nxc_provenance_kind_name(from->kind)));
  set_place(object, from->at);
  if (from->option != NULL) json_object_set_new(object, "option", json_string(from->option));
  if (from->origin != NULL) {
    json_object_set_new(object, origin_key(from->kind), json_string(from->origin));
  }
  if (from->input_names != NULL) json_object_set_new(object, "inputs", names_to_json(from->input_names));
  if (from->interpolated) json_object_set_new(object, "interpolated", json_true());
  if (from->redacted) json_object_set_new(object, "redacted", json_true());
  if (from->previous != NULL && from->previous->kind > NXC_FROM_DEFAULT) {
    json_object_set_new(object, "replaces", json_string(nxc_provenance_kind_name(from->previous->kind)));
  }
  return object;
}

struct json_t *nxc_sources_to_json(const nxc_settings *settings) {
  json_t *object = json_object();
  for (size_t i = 0; i < NX_N_SETTINGS; i++) {
    nxc_setting_id id = (nxc_setting_id)i;
    json_object_set_new(object, nxc_setting_path(id), source_to_json(nxc_settings_from(settings, id)));
  }
  return object;
}

struct json_t *nxc_environment_to_json(const nxc_resolution *resolution) {
  json_t *list = json_array();
  for (size_t i = 0; i < resolution->n_variables; i++) {
    const nxc_variable *variable = &resolution->variables[i];
    json_t *object = json_object();
    json_object_set_new(object, "name", text_to_json(variable->name, strlen(variable->name)));
    json_object_set_new(object, "set", json_boolean(variable->value != NULL));
    set_place(object, variable->at);
    json_array_append_new(list, object);
  }
  return list;
}
