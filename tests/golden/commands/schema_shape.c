/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg schema prints JSON Schema: every keyword is one of draft 2020-12 with a value of its kind, every $ref
 * leads somewhere, and known options are what they should be. TAP. Usage: schema_shape NXCFG */
#include "tests/tap.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bool good, const char *dialect, const char *what) {
  tap_report(good, "%s: %s", dialect, what);
}

static json_t *schema_of(const char *nxcfg, const char *dialect) {
  char command[4096];
  snprintf(command, sizeof command, "'%s' schema %s", nxcfg, dialect);
  FILE *printed = popen(command, "r");
  json_t *schema = printed ? json_loadf(printed, JSON_REJECT_DUPLICATES, NULL) : NULL;
  bool good = printed != NULL && pclose(printed) == 0;
  if (good) return schema;
  json_decref(schema);
  return NULL;
}

static bool is_type_name(const json_t *name) {
  static const char *const names[] = {"object", "array", "string", "number", "integer", "boolean", "null"};
  for (size_t i = 0; json_is_string(name) && i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], json_string_value(name)) == 0) return true;
  return false;
}

static bool is_type(const json_t *value) {
  for (size_t i = 0; i < json_array_size(value); i++)
    if (!is_type_name(json_array_get(value, i))) return false;
  return json_array_size(value) > 0 || is_type_name(value);
}

/* "#/properties/x" from the root. */
static bool leads_somewhere(const json_t *root, const char *reference) {
  char copy[512], *rest;
  if (strncmp(reference, "#/", 2) != 0 || strlen(reference) >= sizeof copy) return false;
  strcpy(copy, reference + 2);
  for (char *step = strtok_r(copy, "/", &rest); step != NULL; step = strtok_r(NULL, "/", &rest))
    root = json_object_get(root, step);
  return root != NULL;
}

static bool is_schema(const json_t *root, const json_t *schema, int depth);

static bool are_schemas(const json_t *root, json_t *object, int depth) {
  const char *name;
  json_t *schema;
  json_object_foreach(object, name, schema) {
    if (is_schema(root, schema, depth + 1)) continue;
    tap_note("below %s", name);
    return false;
  }
  return json_is_object(object);
}

static bool is_keyword(const json_t *root, const char *word, json_t *value, int depth) {
  static const char *const texts[] = {"$schema", "title", "description", "pattern"};
  static const char *const numbers[] = {"minimum", "maximum", "exclusiveMinimum"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(word, texts[i]) == 0) return json_is_string(value);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (strcmp(word, numbers[i]) == 0) return json_is_number(value);
  if (strcmp(word, "type") == 0) return is_type(value);
  if (strcmp(word, "required") == 0)
    return json_array_size(value) > 0 && json_is_string(json_array_get(value, 0));
  if (strcmp(word, "enum") == 0) return json_array_size(value) > 0;
  if (strcmp(word, "default") == 0) return true;
  if (strcmp(word, "deprecated") == 0 || strcmp(word, "additionalProperties") == 0)
    return json_is_boolean(value);
  if (strcmp(word, "$ref") == 0)
    return json_is_string(value) && leads_somewhere(root, json_string_value(value));
  if (strcmp(word, "items") == 0) return is_schema(root, value, depth + 1);
  if (strcmp(word, "properties") == 0 || strcmp(word, "$defs") == 0) return are_schemas(root, value, depth);
  if (strcmp(word, "anyOf") != 0 || json_array_size(value) == 0) return false;
  for (size_t i = 0; i < json_array_size(value); i++)
    if (!is_schema(root, json_array_get(value, i), depth + 1)) return false;
  return true;
}

static bool is_schema(const json_t *root, const json_t *schema, int depth) {
  const char *word;
  json_t *value;
  if (!json_is_object(schema) || depth > 32) return false;
  json_object_foreach((json_t *)schema, word, value) {
    if (is_keyword(root, word, value, depth)) continue;
    tap_note("%s is no keyword, or not of its kind", word);
    return false;
  }
  return true;
}

static const json_t *find(const json_t *schema, const char *path) {
  char copy[256], *rest;
  snprintf(copy, sizeof copy, "%s", path);
  for (char *step = strtok_r(copy, ".", &rest); step != NULL; step = strtok_r(NULL, ".", &rest))
    schema = json_object_get(json_object_get(schema, "properties"), step);
  return schema;
}

static bool has(const json_t *schema, const char *path, const char *keyword, const char *wanted) {
  json_t *value = json_object_get(find(schema, path), keyword),
         *right = json_loads(wanted, JSON_DECODE_ANY, NULL);
  bool same = right != NULL && json_equal(value, right);
  json_decref(right);
  return same;
}

int main(int argc, char **argv) {
  static const char *const dialects[] = {"nx", "nxdt", "megatron", "neox", "neox@today", "xorl"};
  if (argc != 2) return EXIT_FAILURE;
  for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
    json_t *schema = schema_of(argv[1], dialects[i]);
    check(schema != NULL, dialects[i], "is JSON");
    check(is_schema(schema, schema, 0), dialects[i], "is a schema");
    check(json_object_size(json_object_get(schema, "properties")) > 3, dialects[i], "has properties");
    json_decref(schema);
  }
  json_t *nx = schema_of(argv[1], "nx"), *nxdt = schema_of(argv[1], "nxdt");
  check(has(nx, "mesh.tensor", "anyOf",
            "[{\"type\": \"integer\", \"title\": \"integer\", \"minimum\": 1}, {\"$ref\": "
            "\"#/$defs/interpolation\"}]"),
        "nx", "types with bounds, or an interpolation");
  check(has(nx, "mesh.tensor", "default", "1"), "nx", "defaults");
  check(json_is_string(json_object_get(find(nx, "mesh.tensor"), "description")), "nx", "descriptions");
  check(has(nx, "vars", "additionalProperties", "true"), "nx", "free sections are open");
  check(has(nx, "mesh", "additionalProperties", "false"), "nx", "sections are closed");
  check(has(nxdt, "model", "additionalProperties", "true"), "nxdt", "users' sections are open");
  check(json_is_array(json_object_get(find(nxdt, "trainer.devices"), "anyOf")), "nxdt", "options");
  json_t *neox = schema_of(argv[1], "neox"), *xorl = schema_of(argv[1], "xorl");
  check(has(neox, "optimizer", "required", "[\"params\", \"type\"]") &&
            has(neox, "zero_optimization", "required", "[\"stage\"]"),
        "neox", "what a section must give");
  check(json_object_get(neox, "required") == NULL && json_object_get(find(nxdt, "data"), "required") == NULL,
        "neox", "a file may be a part");
  const json_t *items = json_object_get(find(xorl, "data.datasets"), "items");
  json_t *path = json_pack("[s]", "path");
  check(json_equal(json_object_get(items, "required"), path), "xorl", "what an entry of a list must give");
  json_decref(path);
  json_decref(neox);
  json_decref(xorl);
  json_decref(nx);
  json_decref(nxdt);
  return tap_end();
}
