/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/rows.h"

#include <cyaml/cyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cyaml_schema_value_t text_item = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED)};

static const cyaml_schema_field_t setting_fields[] = {
    NXC_SETTING_FIELDS(NXC_CYAML, gen_setting)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t option_fields[] = {
    NXC_OPTION_FIELDS(NXC_CYAML, gen_option)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t fixed_fields[] = {
    NXC_FIXED_FIELDS(NXC_CYAML, gen_fixed)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t environment_fields[] = {
    GEN_ENVIRONMENT_FIELDS(NXC_CYAML, gen_environment)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t preset_fields[] = {
    NXC_PRESET_FIELDS(NXC_CYAML, gen_preset)
    CYAML_FIELD_MAPPING_PTR("environment", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, gen_preset, environment,
                            environment_fields),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t rule_fields[] = {
    NXC_RULE_FIELDS(NXC_CYAML, gen_rule)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t diagnostic_fields[] = {
    NXC_DIAGNOSTIC_FIELDS(NXC_CYAML, gen_diagnostic)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t system_fields[] = {
    GEN_SYSTEM_FIELDS(NXC_CYAML, gen_system)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t model_fields[] = {
    GEN_MODEL_FIELDS(NXC_CYAML, gen_model)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t tokenizer_fields[] = {
    GEN_TOKENIZER_FIELDS(NXC_CYAML, gen_tokenizer)
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t family_fields[] = {
    GEN_FAMILY_FIELDS(NXC_CYAML, gen_family)
    CYAML_FIELD_END,
};

#define ROW(name)                                                                                            \
  static const cyaml_schema_value_t name##_row = {                                                           \
      CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, gen_##name, name##_fields)};
ROW(setting)
ROW(option)
ROW(fixed)
ROW(preset)
ROW(rule)
ROW(diagnostic)
ROW(system)
ROW(model)
ROW(tokenizer)
ROW(family)

#define ROWS(name)                                                                                           \
  { CYAML_VALUE_SEQUENCE(CYAML_FLAG_POINTER, gen_##name, &name##_row, 0, CYAML_UNLIMITED) }

static const cyaml_schema_value_t file_schemas[GEN_N_KINDS] = {
    [GEN_SETTINGS] = ROWS(setting),
    [GEN_DIALECT] = ROWS(option),
    [GEN_FIXED] = ROWS(fixed),
    [GEN_PRESETS] = ROWS(preset),
    [GEN_RULES] = ROWS(rule),
    [GEN_DIAGNOSTICS] = ROWS(diagnostic),
    [GEN_SYSTEM] = ROWS(system),
    [GEN_MODELS] = ROWS(model),
    [GEN_TOKENIZERS] = ROWS(tokenizer),
    [GEN_FAMILY] = ROWS(family),
};

static const cyaml_config_t config = {
    .log_fn = cyaml_log, .log_level = CYAML_LOG_WARNING, .mem_fn = cyaml_mem, .flags = CYAML_CFG_NO_ALIAS};

/* What was read, the last first: given back when the generator ends, however it does. */
typedef struct reading {
  gen_kind kind;
  char *name;
  void *rows;
  unsigned n_rows;
  struct reading *before;
} reading;

static reading *last;

static void give_back(void) {
  for (reading *r = last, *before; r != NULL; r = before) {
    before = r->before;
    cyaml_free(&config, &file_schemas[r->kind], r->rows, r->n_rows);
    free(r->name);
    free(r);
  }
}

static char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  char *name = strdup(slash ? slash + 1 : path), *dot = name ? strrchr(name, '.') : NULL;
  if (dot != NULL) *dot = '\0';
  return name;
}

bool gen_file_read(gen_file *file, gen_kind kind, const char *path) {
  *file = (gen_file){.path = path};
  reading *r = calloc(1, sizeof *r);
  if (r == NULL || (last == NULL && atexit(give_back) != 0)) return free(r), false;
  *r = (reading){.kind = kind, .name = name_of(path), .before = last};
  last = r;
  cyaml_err_t status = cyaml_load_file(path, &config, &file_schemas[kind], &r->rows, &r->n_rows);
  if (status != CYAML_OK) return fprintf(stderr, "%s: %s\n", path, cyaml_strerror(status)), false;
  file->name = r->name, file->rows = r->rows, file->n_rows = r->n_rows;
  return true;
}
