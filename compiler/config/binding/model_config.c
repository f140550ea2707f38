/* SPDX-License-Identifier: Apache-2.0 */
/* Hugging Face config.json, read with Jansson. Objects inside it become dotted names
 * (rope_scaling.factor). Jansson keeps no places, so a key's place is where its quoted name first stands
 * in the text. */
#include "compiler/config/binding/model_config.h"

#include "compiler/config/binding/dialect.h"

#include "compiler/settings/domain.h"

#include <errno.h>
#include <string.h>

enum { MODEL_CONFIG_BYTES_MAX = 4 * 1024 * 1024 };

typedef struct reader {
  nxc_binding *binding;
  const nxc_source *source;
  const char *unknown; /* names, for one note */
  size_t n_unknown;
} reader;

static nxc_span place_of(const reader *r, const char *key) {
  const nxc_source *source = r->source;
  const char *quoted = nxc_arena_printf(r->binding->arena, "\"%s\"", key);
  const char *found = memmem(source->text, source->n_bytes, quoted, strlen(quoted));
  if (found == NULL) return (nxc_span){source, 1, 1, 1};
  size_t offset = (size_t)(found - source->text);
  uint32_t line = 1;
  while (line < source->n_lines && source->line_start[line] <= offset) line++;
  return (nxc_span){source, line, (uint32_t)(offset - source->line_start[line - 1]) + 1,
                    (uint32_t)strlen(quoted)};
}

nxc_value nxc_value_of_json(nxc_arena *arena, const json_t *json) {
  switch (json_typeof(json)) {
  case JSON_TRUE:
  case JSON_FALSE: return (nxc_value){.kind = NXC_BOOL, .boolean = json_is_true(json)};
  case JSON_INTEGER: return (nxc_value){.kind = NXC_INT, .integer = json_integer_value(json)};
  case JSON_REAL: return (nxc_value){.kind = NXC_FLOAT, .number = json_real_value(json)};
  case JSON_STRING: {
    size_t n_bytes = json_string_length(json);
    const char *text = nxc_arena_strndup(arena, json_string_value(json), n_bytes);
    return (nxc_value){.kind = NXC_STRING, .text = text, .n_bytes = n_bytes};
  }
  case JSON_ARRAY: {
    nxc_value *items = nxc_arena_array(arena, json_array_size(json) + 1, sizeof *items);
    for (size_t i = 0; i < json_array_size(json); i++)
      items[i] = nxc_value_of_json(arena, json_array_get(json, i));
    return (nxc_value){.kind = NXC_LIST, .items = items, .n_items = json_array_size(json)};
  }
  case JSON_OBJECT: {
    nxc_value *items = nxc_arena_array(arena, 2 * json_object_size(json) + 1, sizeof *items);
    size_t n_items = 0;
    json_t *object = (json_t *)(uintptr_t)json;
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
      const char *key = nxc_arena_strdup(arena, json_object_iter_key(at));
      items[2 * n_items] = (nxc_value){.kind = NXC_STRING, .text = key, .n_bytes = strlen(key)};
      items[2 * n_items + 1] = nxc_value_of_json(arena, json_object_iter_value(at));
      n_items++;
    }
    return (nxc_value){.kind = NXC_MAP, .items = items, .n_items = n_items};
  }
  case JSON_NULL: break;
  }
  return (nxc_value){.kind = NXC_NULL};
}

static void bind_key(reader *r, const nxc_option_row *row, const char *key, const char *name,
                     const json_t *json) {
  nxc_binding *binding = r->binding;
  nxc_bound *bound = &binding->model_options[row - binding->model_dialect->options];
  nxc_value *value = nxc_arena_alloc(binding->arena, sizeof *value);
  *value = nxc_value_of_json(binding->arena, json);
  nxc_verdict verdict = nxc_domain_judge(binding->arena, &row->domain, value, false);
  bound->given = true;
  bound->at = place_of(r, key);
  bound->kind = binding->model_assumed ? NXC_FROM_ASSUMED : NXC_FROM_MODEL_CONFIG;
  bound->value = verdict.value;
  if (verdict.misfit == NXC_FITS) return;
  nxc_report(binding->sink, nxc_misfit_id(verdict.misfit), NXC_SEVERITY_ERROR, bound->at,
             nxc_misfit_fix(&verdict), "%s %s", name, verdict.problem);
}

static void read_object(reader *r, json_t *object, const char *section) {
  nxc_binding *binding = r->binding;
  for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
    const char *key = json_object_iter_key(at);
    const char *name = *section ? nxc_arena_printf(binding->arena, "%s.%s", section, key) : key;
    json_t *json = json_object_iter_value(at);
    const nxc_option_row *row = nxc_option_find(binding->model_dialect, name);
    if (row != NULL && row->alias_of != NULL) row = nxc_option_find(binding->model_dialect, row->alias_of);
    size_t first;
    bool has_parts =
        json_is_object(json) && nxc_dialect_section(binding->model_dialect, name, &first) > first;
    if (row != NULL) bind_key(r, row, key, name, json);
    if (has_parts) read_object(r, json, name);
    if (row != NULL || has_parts) continue;
    r->unknown = nxc_arena_printf(binding->arena, "%s%s%s", r->unknown, r->n_unknown ? ", " : "", name);
    r->n_unknown++;
  }
}

bool nxc_binding_read_model_config(nxc_binding *binding, const char *path, bool asked) {
  const nxc_source *text =
      (asked ? nxc_source_read : nxc_source_read_file)(binding->arena, path, MODEL_CONFIG_BYTES_MAX);
  if (text != NULL) return nxc_binding_read_model_text(binding, text);
  nxc_report(binding->sink, "NX1315", NXC_SEVERITY_ERROR, (nxc_span){0},
             "name a config.json that can be read", "cannot read %s: %s", path, strerror(errno));
  return false;
}

bool nxc_binding_read_model_text(nxc_binding *binding, const nxc_source *text) {
  reader r = {.binding = binding, .source = text, .unknown = ""};
  json_error_t error;
  json_t *root = json_loadb(r.source->text, r.source->n_bytes, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL || !json_is_object(root)) {
    uint32_t line = root == NULL && error.line > 0 ? (uint32_t)error.line : 1;
    uint32_t column = root == NULL && error.column > 0 ? (uint32_t)error.column : 1;
    nxc_report(binding->sink, "NX1315", NXC_SEVERITY_ERROR, (nxc_span){r.source, line, column, 1},
               "name the config.json of a model, which holds one JSON object", "this is no config.json: %s",
               root ? "it is not an object" : error.text);
    json_decref(root);
    return false;
  }
  binding->has_model_config = true;
  read_object(&r, root, "");
  json_decref(root);
  if (r.n_unknown > 0) {
    nxc_report(binding->sink, "NX1316", NXC_SEVERITY_NOTE, (nxc_span){r.source, 1, 1, 1}, NULL,
               "keys that nothing reads: %s", r.unknown);
  }
  return true;
}
