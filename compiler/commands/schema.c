/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg schema: a dialect's options as JSON Schema (draft 2020-12), for editors.
 *
 * A value is of its type, with its bounds, or an interpolation (anyOf: editors then name the type that is
 * expected, where a list of types with a pattern makes them show the pattern). Sections are closed, except
 * where users' own modules read further keys. A file may be a part of others, so only what no other file can
 * complete is required. What depends on other options is left to nxcfg validate. */
#include "compiler/commands/commands.h"
#include "compiler/commands/options.h"
#include "compiler/config/binding/dialect.h"
#include "compiler/config/fronts.h"
#include "compiler/render/screen.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg schema DIALECT[@VERSION]\n"
    "Prints the options of a dialect as JSON Schema (draft 2020-12), for editors to complete, to\n"
    "describe and to check with.\n";

/* ${...} and $<...>, and ??? for what another file gives. */
#define INTERPOLATION "\\$[{<]|^\\?\\?\\?$"
/* 3e-4 is a number to some YAML loaders and text to others; nxcfg validate knows what it is to the
 * dialect's. */
#define EXPONENT "^[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"

typedef struct writing {
  nxc_arena *arena;
  const nxc_dialect *dialect;
  const nxc_front *front;
  const char *version;
} writing;

/* -- values ---------------------------------------------------------------------------------------------- */

static json_t *value_to_json(nxc_arena *arena, const nxc_value *value) {
  switch (value->kind) {
  case NXC_BOOL: return json_boolean(value->boolean);
  case NXC_INT: return json_integer(value->integer);
  case NXC_FLOAT:
    return isfinite(value->number) ? json_real(value->number) : json_string(nxc_value_show(arena, value));
  case NXC_LIST: {
    json_t *list = json_array();
    for (size_t i = 0; i < value->n_items; i++)
      json_array_append_new(list, value_to_json(arena, &value->items[i]));
    return list;
  }
  case NXC_STRING: return json_string(value->text);
  default: return json_null();
  }
}

static void set_bounds(nxc_arena *arena, json_t *schema, const nxc_domain *domain) {
  if (domain->min) json_object_set_new(schema, "minimum", value_to_json(arena, domain->min));
  if (domain->max) json_object_set_new(schema, "maximum", value_to_json(arena, domain->max));
  if (domain->above) json_object_set_new(schema, "exclusiveMinimum", value_to_json(arena, domain->above));
}

/* -- types ----------------------------------------------------------------------------------------------- */

/* The word, and what YAML loaders make of it without quotes. */
static void add_word(json_t *words, const char *word) {
  char *end;
  json_array_append_new(words, json_string(word));
  long long integer = strtoll(word, &end, 10);
  if (*word != '\0' && *end == '\0') json_array_append_new(words, json_integer(integer));
  if (strcmp(word, "true") == 0 || strcmp(word, "True") == 0) json_array_append_new(words, json_true());
  if (strcmp(word, "false") == 0 || strcmp(word, "False") == 0) json_array_append_new(words, json_false());
}

/* What the schema takes, or an interpolation. */
static json_t *or_interpolation(json_t *schema) {
  return json_pack("{s:[o, {s:s}]}", "anyOf", schema, "$ref", "#/$defs/interpolation");
}

/* Editors show the titles of what a value may be. */
static json_t *of_type(const char *type) {
  return json_pack("{s:s, s:s}", "type", type, "title", strcmp(type, "object") == 0 ? "section" : type);
}

static json_t *words_schema(const writing *w, const nxc_option_row *row) {
  const nxc_domain *domain = &row->domain;
  json_t *words = json_array();
  for (size_t i = 0; i < domain->n_values; i++) {
    const nxc_versioned *kept = nxc_option_word(row, domain->values[i]);
    if (kept == NULL || nxc_in_version(kept->versions, kept->n_versions, w->version))
      add_word(words, domain->values[i]);
  }
  if (domain->nullable) json_array_append_new(words, json_null());
  return or_interpolation(json_pack("{s:o, s:s}", "enum", words, "title", "word"));
}

static json_t *number_schema(const writing *w, const nxc_domain *domain, bool integer) {
  json_t *number = of_type(integer ? "integer" : "number");
  set_bounds(w->arena, number, domain);
  json_t *schema = or_interpolation(number);
  if (!integer)
    json_array_append_new(json_object_get(schema, "anyOf"), json_pack("{s:s}", "$ref", "#/$defs/exponent"));
  return schema;
}

static json_t *list_schema(const writing *w, const nxc_option_row *row) {
  const nxc_domain *domain = &row->domain;
  json_t *list = of_type("array");
  if (domain->type == NXC_TYPE_LIST_STR)
    json_object_set_new(list, "items", domain->n_values > 0 ? words_schema(w, row) : of_type("string"));
  else if (domain->type != NXC_TYPE_LIST)
    json_object_set_new(list, "items", number_schema(w, domain, domain->type == NXC_TYPE_LIST_INT));
  return or_interpolation(list);
}

static json_t *type_schema(const writing *w, const nxc_option_row *row) {
  const nxc_domain *domain = &row->domain;
  switch (domain->type) {
  case NXC_TYPE_INT: return number_schema(w, domain, true);
  case NXC_TYPE_FLOAT:
  case NXC_TYPE_INT_OR_FLOAT: return number_schema(w, domain, false);
  case NXC_TYPE_BOOL: return or_interpolation(of_type("boolean"));
  case NXC_TYPE_BIT: return or_interpolation(json_pack("{s:[s, s], s:s}", "enum", "0", "1", "title", "word"));
  case NXC_TYPE_STR:
  case NXC_TYPE_PATH: return of_type("string");
  case NXC_TYPE_ENUM: return words_schema(w, row);
  case NXC_TYPE_LIST:
  case NXC_TYPE_LIST_INT:
  case NXC_TYPE_LIST_FLOAT:
  case NXC_TYPE_LIST_STR: return list_schema(w, row);
  case NXC_TYPE_MAP: return or_interpolation(of_type("object"));
  case NXC_TYPE_ANY: break;
  }
  return json_object();
}

/* -- options --------------------------------------------------------------------------------------------- */

static const char *describe(const writing *w, const nxc_option_row *row) {
  static const char *const statuses[] = {
      [NXC_EXECUTED] = "", [NXC_CHECKED] = "nxrun ignores it: ", [NXC_REFUSED] = "nxrun cannot run it: "};
  const char *text = row->doc ? row->doc : "";
  if (row->status != NXC_EXECUTED && row->why != NULL)
    text = nxc_arena_printf(w->arena, "%s %s%s.", text, statuses[row->status], row->why);
  if (row->read_when != NULL) text = nxc_arena_printf(w->arena, "%s Read where %s.", text, row->read_when);
  return text;
}

static void allow_null(json_t *schema) {
  json_t *choices = json_object_get(schema, "anyOf"), *type = json_object_get(schema, "type");
  if (choices != NULL) json_array_append_new(choices, of_type("null"));
  else if (type != NULL) json_object_set_new(schema, "type", json_pack("[O, s]", type, "null"));
}

static json_t *option_schema(const writing *w, const nxc_option_row *row) {
  const nxc_option_row *target = row->alias_of ? nxc_option_find(w->dialect, row->alias_of) : row;
  json_t *schema = type_schema(w, target);
  if (target->domain.nullable && target->domain.type != NXC_TYPE_ENUM) allow_null(schema);
  const char *text = describe(w, target);
  if (row != target) text = nxc_arena_printf(w->arena, "Another name of %s. %s", target->name, text);
  if (*text != '\0') json_object_set_new(schema, "description", json_string(text));
  if (row != target) json_object_set_new(schema, "deprecated", json_true());
  nxc_setting_id id = strcmp(w->dialect->name, "nx") == 0 ? nxc_setting_find(target->name) : NX_N_SETTINGS;
  const nxc_value *initial = nxc_option_default(target, w->version);
  if (id < NX_N_SETTINGS) initial = nxc_setting_rows[id].initial;
  if (initial != NULL) json_object_set_new(schema, "default", value_to_json(w->arena, initial));
  return schema;
}

/* A section is a map, nothing, or a reference to one; null is how an empty one is read. An option that may
 * also be a section keeps its types. */
static void make_section(json_t *schema, bool open) {
  if (json_object_get(schema, "properties") != NULL) return;
  if (json_object_size(schema) == 0) {
    json_t *forms = or_interpolation(of_type("object"));
    allow_null(forms);
    json_object_update_new(schema, forms);
  }
  json_object_set_new(schema, "properties", json_object());
  json_object_set_new(schema, "additionalProperties", json_boolean(open));
}

/* The items of a list of maps: `datasets[]`. */
static json_t *items_of(json_t *properties, const char *key, size_t n_bytes) {
  json_t *list = json_object_getn(properties, key, n_bytes);
  if (list == NULL) json_object_setn_new(properties, key, n_bytes, list = json_object());
  json_t *items = json_object_get(list, "items");
  if (items == NULL) json_object_set_new(list, "items", items = json_object());
  return items;
}

static json_t *section_at(const writing *w, json_t *root, const char *name, const char **last) {
  json_t *at = root;
  const char *step = name;
  for (const char *dot; (dot = strchr(step, '.')) != NULL; step = dot + 1) {
    const char *key = nxc_arena_strndup(w->arena, step, (size_t)(dot - step));
    json_t *properties = json_object_get(at, "properties"), *next = json_object_get(properties, key);
    size_t n_key = strlen(key);
    if (n_key > 2 && strcmp(key + n_key - 2, "[]") == 0) next = items_of(properties, key, n_key - 2);
    if (next == NULL) json_object_set_new(properties, key, next = json_object());
    const char *inside = nxc_arena_strndup(w->arena, name, (size_t)(dot + 1 - name));
    make_section(next, nxc_section_is_open(w->front->strict_sections, inside));
    at = next;
  }
  *last = step;
  return at;
}

static void demand(json_t *section, const char *key) {
  json_t *required = json_object_get(section, "required");
  if (required == NULL) json_object_set_new(section, "required", required = json_array());
  json_array_append_new(required, json_string(key));
}

static void add_option(const writing *w, json_t *root, const nxc_option_row *row) {
  const char *last;
  json_t *section = section_at(w, root, row->name, &last);
  json_t *schema = option_schema(w, row), *old;
  if (strcmp(last, "*") == 0) {
    json_object_set_new(section, "additionalProperties", json_true());
    if (json_object_get(section, "description") == NULL)
      json_object_set(section, "description", json_object_get(schema, "description"));
    json_decref(schema);
    return;
  }
  if (nxc_option_is_demanded(w->arena, row, w->front->whole_sections)) demand(section, last);
  json_t *properties = json_object_get(section, "properties");
  if ((old = json_object_get(properties, last)) != NULL) { /* it is a section too */
    json_object_update_missing(old, schema);
    json_decref(schema);
  } else {
    json_object_set_new(properties, last, schema);
  }
  if (!w->front->folds_dashes || strpbrk(last, "_-") == NULL) return;
  char *folded = nxc_arena_strdup(w->arena, last);
  for (char *at = folded; *at != '\0'; at++) *at = *at == '_' ? '-' : *at == '-' ? '_' : *at;
  if (json_object_get(properties, folded) == NULL)
    json_object_set(properties, folded, json_object_get(properties, last));
}

/* Files of arguments hold the names as the command line has them. */
static void add_argument_forms(json_t *root) {
  json_t *properties = json_object_get(root, "properties"), *arguments = json_object(), *option;
  const char *name;
  json_object_foreach(properties, name, option) {
    char reference[300], flag[280];
    if (strchr(name, '_') != NULL || strlen(name) > 250) continue;
    snprintf(flag, sizeof flag, "--%s", name);
    snprintf(reference, sizeof reference, "#/properties/%s", name);
    json_object_set_new(arguments, flag, json_pack("{s:s}", "$ref", reference));
  }
  json_object_set_new(properties, "MODEL_ARGS",
                      json_pack("{s:s, s:[s, s], s:o, s:b}", "description",
                                "Arguments of the training, as its command line has them.", "type", "object",
                                "null", "properties", arguments, "additionalProperties", 0));
}

/* Whether keys of the user's own may stand at the top: for interpolations to read, or as other forms of the
 * file. The nx dialect has a section for them. */
static bool has_variables(const writing *w) {
  bool own = strcmp(w->dialect->name, "nx") == 0;
  bool forms = w->front->takes_arguments && w->front->folds_dashes;
  return forms || (w->front->read == nxc_front_read_yaml && !own);
}

static json_t *dialect_schema(const writing *w, const char *name) {
  const char *title = nxc_arena_printf(w->arena, "Training configuration of the dialect %s", name);
  json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:{}, s:b, s:{s:{s:s, s:s, s:s}, s:{s:s, s:s, s:s}}}",
                           "$schema", "https://json-schema.org/draft/2020-12/schema", "title", title,
                           "description", "Made by nxcfg schema; nxcfg validate checks much more.", "type",
                           "object", "properties", "additionalProperties", has_variables(w), "$defs",
                           "interpolation", "type", "string", "title", "reference", "pattern", INTERPOLATION,
                           "exponent", "type", "string", "title", "number", "pattern", EXPONENT);
  for (size_t i = 0; i < w->dialect->n_options; i++) {
    const nxc_option_row *row = &w->dialect->options[i];
    if (nxc_in_version(row->versions, row->n_versions, w->version)) add_option(w, root, row);
  }
  if (w->front->takes_arguments && w->front->folds_dashes) add_argument_forms(root);
  return root;
}

int nxc_command_schema(int argc, char **argv) {
  bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
  if (help || argc != 2 || argv[1][0] == '-') {
    nxc_print_usage(help ? stdout : stderr, usage);
    return help ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
  }
  nxc_arena *arena = nxc_arena_new();
  writing w = {.arena = arena};
  w.front = nxc_front_find(arena, argv[1], &w.version);
  if (strchr(argv[1], '@') == NULL) w.version = NULL; /* the keys tell it: those of all are described */
  w.dialect = w.front ? nxc_dialect_find(w.front->dialect) : NULL;
  if (w.dialect == NULL) {
    fprintf(stderr, "nxcfg schema: there is no dialect %s; there are %s\n", argv[1], nxc_front_names(arena));
  } else {
    json_t *schema = dialect_schema(&w, argv[1]);
    json_dumpf(schema, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(schema);
  }
  nxc_arena_free(arena);
  return w.dialect ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
}
