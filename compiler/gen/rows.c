/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/rows.h"

#include <cyaml/cyaml.h>
#include <stdio.h>
#include <string.h>

#define TEXT(key, row, member)                                                                               \
  CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, row, member, 0, CYAML_UNLIMITED)
#define TEXTS(key, row, member)                                                                              \
  CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, row, member, &text_item, 0,            \
                       CYAML_UNLIMITED)
#define ROW(row, fields)                                                                                     \
  { CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, row, fields) }
#define ROWS(row, item)                                                                                      \
  { CYAML_VALUE_SEQUENCE(CYAML_FLAG_POINTER, row, item, 0, CYAML_UNLIMITED) }

static const cyaml_schema_value_t text_item = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED)};

static const cyaml_schema_field_t setting_fields[] = {
    TEXT("setting", gen_setting, setting),
    TEXT("type", gen_setting, type),
    TEXTS("values", gen_setting, values),
    TEXT("default", gen_setting, initial),
    TEXT("min", gen_setting, min),
    TEXT("max", gen_setting, max),
    TEXT("above", gen_setting, above),
    TEXT("unit", gen_setting, unit),
    TEXT("meaning", gen_setting, meaning),
    TEXT("shorthand", gen_setting, shorthand),
    TEXT("for", gen_setting, read_when),
    TEXT("needed", gen_setting, needed),
    TEXT("changes", gen_setting, changes),
    TEXT("doc", gen_setting, doc),
    TEXT("runs", gen_setting, runs),
    TEXT("refused_when", gen_setting, refused_when),
    TEXT("why", gen_setting, why),
    TEXT("instead", gen_setting, instead),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t option_fields[] = {
    TEXT("option", gen_option, option),
    TEXT("type", gen_option, type),
    TEXTS("values", gen_option, values),
    TEXT("nullable", gen_option, nullable),
    TEXT("required", gen_option, required),
    TEXT("default", gen_option, initial),
    TEXT("min", gen_option, min),
    TEXT("max", gen_option, max),
    TEXT("above", gen_option, above),
    TEXT("for", gen_option, read_when),
    TEXTS("sets", gen_option, sets),
    TEXT("from", gen_option, from),
    TEXTS("exports", gen_option, exports),
    TEXT("status", gen_option, status),
    TEXT("changes", gen_option, changes),
    TEXT("refused_when", gen_option, refused_when),
    TEXT("why", gen_option, why),
    TEXT("instead", gen_option, instead),
    TEXT("names", gen_option, names),
    TEXT("alias_of", gen_option, alias_of),
    TEXT("became", gen_option, became),
    TEXTS("nearest_to", gen_option, nearest_to),
    TEXTS("versions", gen_option, versions),
    TEXTS("words_in", gen_option, words_in),
    TEXTS("defaults_in", gen_option, defaults_in),
    TEXT("doc", gen_option, doc),
    TEXT("source", gen_option, source),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t fixed_fields[] = {
    TEXT("fixed", gen_fixed, fixed),
    TEXTS("absent", gen_fixed, absent),
    TEXTS("unknown", gen_fixed, unknown),
    TEXT("value", gen_fixed, value),
    TEXT("why", gen_fixed, why),
    TEXT("source", gen_fixed, source),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t environment_fields[] = {
    TEXT("XLA_USE_BF16", gen_environment, use_bf16),
    TEXT("XLA_DOWNCAST_BF16", gen_environment, downcast_bf16),
    TEXT("NEURON_RT_STOCHASTIC_ROUNDING_EN", gen_environment, stochastic_rounding),
    TEXT("NEURON_CC_FLAGS", gen_environment, compiler_flags),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t preset_fields[] = {
    TEXT("preset", gen_preset, preset),
    TEXT("dialect", gen_preset, dialect),
    TEXTS("spellings", gen_preset, spellings),
    TEXT("param", gen_preset, param),
    TEXT("compute", gen_preset, compute),
    TEXT("master", gen_preset, master),
    TEXT("gradient", gen_preset, gradient),
    TEXT("optimizer_state", gen_preset, optimizer_state),
    TEXT("reduce", gen_preset, reduce),
    TEXT("stochastic_rounding", gen_preset, stochastic_rounding),
    TEXT("refused", gen_preset, refused),
    TEXT("doc", gen_preset, doc),
    TEXT("note", gen_preset, note),
    TEXT("source", gen_preset, source),
    CYAML_FIELD_MAPPING_PTR("environment", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, gen_preset, environment,
                            environment_fields),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t rule_fields[] = {
    TEXT("rule", gen_rule, rule),
    TEXT("dialect", gen_rule, dialect),
    TEXT("except", gen_rule, except),
    TEXTS("versions", gen_rule, versions),
    TEXT("severity", gen_rule, severity),
    TEXT("structural", gen_rule, structural),
    TEXT("after", gen_rule, after),
    TEXT("when", gen_rule, when),
    TEXT("require", gen_rule, require),
    TEXT("derive", gen_rule, derive),
    TEXT("at", gen_rule, at),
    TEXT("message", gen_rule, message),
    TEXT("fix", gen_rule, fix),
    TEXT("explain", gen_rule, explain),
    TEXT("source", gen_rule, source),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t diagnostic_fields[] = {
    TEXT("diagnostic", gen_diagnostic, diagnostic),
    TEXT("title", gen_diagnostic, title),
    TEXT("explain", gen_diagnostic, explain),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t system_fields[] = {
    TEXT("keeps", gen_system, keeps),
    TEXT("part", gen_system, part),
    TEXT("of", gen_system, of),
    TEXT("bytes", gen_system, bytes),
    TEXT("when", gen_system, when),
    TEXT("module", gen_system, module),
    TEXT("does", gen_system, does),
    TEXT("value", gen_system, value),
    TEXT("doc", gen_system, doc),
    TEXT("source", gen_system, source),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t setting_row = ROW(gen_setting, setting_fields);
static const cyaml_schema_value_t option_row = ROW(gen_option, option_fields);
static const cyaml_schema_value_t fixed_row = ROW(gen_fixed, fixed_fields);
static const cyaml_schema_value_t preset_row = ROW(gen_preset, preset_fields);
static const cyaml_schema_value_t rule_row = ROW(gen_rule, rule_fields);
static const cyaml_schema_value_t diagnostic_row = ROW(gen_diagnostic, diagnostic_fields);

static const cyaml_schema_field_t model_fields[] = {
    TEXT("model", gen_model, model),
    TEXT("family", gen_model, family),
    TEXT("layers", gen_model, layers),
    TEXT("hidden", gen_model, hidden),
    TEXT("ffn", gen_model, ffn),
    TEXT("heads", gen_model, heads),
    TEXT("kv_heads", gen_model, kv_heads),
    TEXT("head_dim", gen_model, head_dim),
    TEXT("vocab", gen_model, vocab),
    TEXT("max_positions", gen_model, max_positions),
    TEXT("rope_theta", gen_model, rope_theta),
    TEXT("rotary_fraction", gen_model, rotary_fraction),
    TEXT("norm_eps", gen_model, norm_eps),
    TEXT("experts", gen_model, experts),
    TEXT("top_k", gen_model, top_k),
    TEXT("expert_ffn", gen_model, expert_ffn),
    TEXT("sliding_window", gen_model, sliding_window),
    TEXT("rope_factor", gen_model, rope_factor),
    TEXT("tied", gen_model, tied),
    TEXT("shared_ffn", gen_model, shared_ffn),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t tokenizer_fields[] = {
    TEXT("tokenizer", gen_tokenizer, tokenizer),
    TEXT("vocab", gen_tokenizer, vocab),
    TEXT("usual", gen_tokenizer, usual),
    TEXT("source", gen_tokenizer, source),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t family_fields[] = {
    TEXT("family", gen_family, family),
    TEXT("like", gen_family, like),
    TEXTS("model_types", gen_family, model_types),
    TEXTS("keys", gen_family, keys),
    TEXTS("defaults", gen_family, defaults),
    TEXTS("sets", gen_family, sets),
    TEXT("architecture", gen_family, architecture),
    TEXTS("writes", gen_family, writes),
    TEXT("tensor", gen_family, tensor),
    TEXTS("parts", gen_family, parts),
    TEXT("layout", gen_family, layout),
    TEXT("transposed", gen_family, transposed),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t model_row = ROW(gen_model, model_fields);
static const cyaml_schema_value_t tokenizer_row = ROW(gen_tokenizer, tokenizer_fields);
static const cyaml_schema_value_t family_row = ROW(gen_family, family_fields);
static const cyaml_schema_value_t system_row = ROW(gen_system, system_fields);

static const cyaml_schema_value_t file_schemas[GEN_N_KINDS] = {
    [GEN_SETTINGS] = ROWS(gen_setting, &setting_row),
    [GEN_DIALECT] = ROWS(gen_option, &option_row),
    [GEN_FIXED] = ROWS(gen_fixed, &fixed_row),
    [GEN_PRESETS] = ROWS(gen_preset, &preset_row),
    [GEN_RULES] = ROWS(gen_rule, &rule_row),
    [GEN_DIAGNOSTICS] = ROWS(gen_diagnostic, &diagnostic_row),
    [GEN_SYSTEM] = ROWS(gen_system, &system_row),
    [GEN_MODELS] = ROWS(gen_model, &model_row),
    [GEN_TOKENIZERS] = ROWS(gen_tokenizer, &tokenizer_row),
    [GEN_FAMILY] = ROWS(gen_family, &family_row),
};

bool gen_file_read(gen_file *file, gen_kind kind, const char *path) {
  static const cyaml_config_t config = {
      .log_fn = cyaml_log, .log_level = CYAML_LOG_WARNING, .mem_fn = cyaml_mem, .flags = CYAML_CFG_NO_ALIAS};
  *file = (gen_file){.path = path};
  const char *slash = strrchr(path, '/');
  char *name = strdup(slash ? slash + 1 : path);
  char *dot = name ? strrchr(name, '.') : NULL;
  if (dot != NULL) *dot = '\0';
  file->name = name;
  cyaml_err_t status = cyaml_load_file(path, &config, &file_schemas[kind], &file->rows, &file->n_rows);
  if (status != CYAML_OK) fprintf(stderr, "%s: %s\n", path, cyaml_strerror(status));
  return status == CYAML_OK;
}
