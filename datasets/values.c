/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/values.h"

#include <stdio.h>
#include <string.h>

static const char *kind_of(const json_t *json) {
  static const char *const names[] = {
      [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
      [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
      [JSON_FALSE] = "false",      [JSON_NULL] = "null"};
  return names[json_typeof(json)];
}

static json_t *parse(const nxd_batch *batch, const nxd_field *field, nxr_fault *fault) {
  json_error_t error;
  const char *text = (const char *)batch->bytes.bytes + field->at;
  json_t *json = json_loadb(text, field->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
  const char *remedy = field->n > 0 && text[0] == '[' ? "; lines are objects: jq -c '.[]' makes them" : "";
  if (json == NULL) nxr_fault_set(fault, "no JSON: %s (column %d)%s", error.text, error.column, remedy);
  return json;
}

/* A member by its name, or by the names of the objects around it with . between them. */
static const json_t *find(const json_t *object, const char *name) {
  const json_t *member = json_object_get(object, name);
  if (member != NULL) return member;
  for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
    const json_t *within = json_object_getn(object, name, (size_t)(dot - name));
    member = within ? find(within, dot + 1) : NULL;
    if (member != NULL) return member;
  }
  return NULL;
}

/* Token ids, added to the parser's; false where the list holds something else. */
static bool read_ids(nxd_parser *parser, const json_t *list, nxd_value *value, const char *name,
                     nxr_fault *fault) {
  size_t n = json_array_size(list);
  int64_t *ids = nxd_buffer_extend(&parser->ids, n * sizeof *ids);
  if (ids == NULL) return nxr_fault_set(fault, "out of memory");
  for (size_t i = 0; i < n; i++) {
    const json_t *id = json_array_get(list, i);
    if (!json_is_integer(id))
      return nxr_fault_set(fault, "entry %zu of %s is %s, and no token id", i, name, kind_of(id));
    ids[i] = json_integer_value(id);
  }
  *value = (nxd_value){.form = NXD_IDS, .n = n};
  return true;
}

static bool lacks(const json_t *object, const char *name, nxr_fault *fault) {
  char has[200] = "nothing";
  size_t n = 0;
  for (void *at = json_object_iter((json_t *)object); at && n < sizeof has;
       at = json_object_iter_next((json_t *)object, at))
    n += (size_t)snprintf(has + n, sizeof has - n, "%s%s", n > 0 ? ", " : "", json_object_iter_key(at));
  return nxr_fault_set(fault, "it has no field %s; it has: %s", name, has);
}

static bool is_list_of_ids(const json_t *json) {
  return json_is_array(json) && (json_array_size(json) == 0 || json_is_number(json_array_get(json, 0)));
}

static bool read_json(nxd_parser *parser, const json_t *json, const char *name, nxd_value *value,
                      nxr_fault *fault) {
  *value = (nxd_value){.form = NXD_VALUE, .json = json};
  if (json_is_null(json)) value->form = NXD_NOTHING;
  if (json_is_string(json))
    *value = (nxd_value){.form = NXD_STRING, .text = json_string_value(json), .n = json_string_length(json)};
  return !is_list_of_ids(json) || read_ids(parser, json, value, name, fault);
}

static bool read_object(nxd_parser *parser, const nxd_wanted *wanted, nxd_value *values, nxr_fault *fault) {
  if (json_is_array(parser->parsed[0]))
    return nxr_fault_set(fault, "it is a list, and lines are objects: jq -c '.[]' writes its records so");
  if (!json_is_object(parser->parsed[0]))
    return nxr_fault_set(fault, "it is no JSON object, but %s", kind_of(parser->parsed[0]));
  for (uint32_t i = 0; i < wanted->n_fields; i++) {
    const json_t *json = find(parser->parsed[0], wanted->fields[i]);
    if (json == NULL && (wanted->optional >> i & 1)) values[i] = (nxd_value){.form = NXD_NOTHING};
    else if (json == NULL) return lacks(parser->parsed[0], wanted->fields[i], fault);
    else if (!read_json(parser, json, wanted->fields[i], &values[i], fault)) return false;
  }
  return true;
}

/* Lists of ids lie one after another in a buffer that moved while it grew. */
static void place_ids(const nxd_parser *parser, uint32_t n_fields, nxd_value *values) {
  const int64_t *at = (const int64_t *)(const void *)parser->ids.bytes;
  for (uint32_t i = 0; i < n_fields; i++)
    if (values[i].form == NXD_IDS && values[i].ids == NULL) values[i].ids = at, at += values[i].n;
}

static bool read_fields(nxd_parser *parser, const nxd_batch *batch, const nxd_record *record,
                        const nxd_wanted *wanted, nxd_value *values, nxr_fault *fault) {
  for (uint32_t i = 0; i < wanted->n_fields; i++) {
    const nxd_field *field = &record->fields[i];
    const uint8_t *bytes = batch->bytes.bytes + field->at;
    values[i] = (nxd_value){.form = field->form, .n = field->n};
    if (field->form == NXD_STRING) values[i].text = (const char *)bytes;
    if (field->form == NXD_IDS) values[i].ids = (const int64_t *)(const void *)bytes;
    if (field->form != NXD_VALUE) continue;
    const json_t *json = parser->parsed[i] = parse(batch, field, fault);
    if (json == NULL || !read_json(parser, json, wanted->fields[i], &values[i], fault)) return false;
  }
  place_ids(parser, wanted->n_fields, values);
  return true;
}

static void forget(nxd_parser *parser) {
  for (uint32_t i = 0; i < NXD_MAX_FIELDS; i++) {
    json_decref(parser->parsed[i]);
    parser->parsed[i] = NULL;
  }
  parser->ids.n = 0;
}

bool nxd_values_read(nxd_parser *parser, const nxd_batch *batch, const nxd_record *record,
                     const nxd_wanted *wanted, nxd_value *values, nxr_fault *fault) {
  forget(parser);
  if (!record->is_object) return read_fields(parser, batch, record, wanted, values, fault);
  parser->parsed[0] = parse(batch, &record->fields[0], fault);
  if (parser->parsed[0] == NULL || !read_object(parser, wanted, values, fault)) return false;
  place_ids(parser, wanted->n_fields, values);
  return true;
}

void nxd_parser_free(nxd_parser *parser) {
  forget(parser);
  nxd_buffer_free(&parser->ids);
}
