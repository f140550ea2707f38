/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue: the yaml files of schema as constant tables, made at build time by compiler/gen.
 *
 * Rows have the fields that fields.h lists, and what the generator makes of the others. Settings are indexed
 * by nxc_setting_id, in the order of settings.yaml. Options stand per dialect, sorted by name, so that a name
 * is found by bisection; rules and diagnostics are sorted by id. Expressions are kept as text (the build has
 * parsed each of them once; config/expression.h parses them again where they are needed). Absent texts are
 * NULL. Everything is static const: nothing is read, allocated or freed at run time. */
#ifndef NXC_CATALOGUE_H
#define NXC_CATALOGUE_H

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/value.h"
#include "compiler/gen/settings_ids.gen.h"
#include "compiler/settings/fields.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nxc_type {
  NXC_TYPE_INT,
  NXC_TYPE_FLOAT,
  NXC_TYPE_INT_OR_FLOAT, /* 1 and 1.0 stay different */
  NXC_TYPE_BOOL,
  NXC_TYPE_BIT, /* the quoted texts '0' and '1' */
  NXC_TYPE_STR,
  NXC_TYPE_PATH,
  NXC_TYPE_ENUM,
  NXC_TYPE_LIST,
  NXC_TYPE_LIST_INT,
  NXC_TYPE_LIST_FLOAT,
  NXC_TYPE_LIST_STR,
  NXC_TYPE_MAP,
  NXC_TYPE_ANY
} nxc_type;

/* Bounds and words that a value is held to, of a setting or an option. */
typedef struct nxc_domain {
  nxc_type type : 8;
  bool nullable;
  uint16_t n_values;
  const char *const *values;          /* of an enum */
  const nxc_value *min, *max, *above; /* NULL: none; `above` is exclusive */
} nxc_domain;

/* What another value of a setting or an option changes, and so what a checkpoint is worth then: from all to
 * nothing. */
typedef enum nxc_changes {
  NXC_CHANGES_SETTINGS, /* of options: settings say all of it, and are compared themselves */
  NXC_CHANGES_ESTIMATE, /* of settings: what an estimate makes of it alone; nothing compares them */
  NXC_CHANGES_OUTSIDE,  /* what is logged, served or measured */
  NXC_CHANGES_PLACE,    /* hosts, kernels, transport: how the same is computed */
  NXC_CHANGES_NOTHING_KEPT, /* restart-safe: the run goes on */
  NXC_CHANGES_DATA_ORDER,
  NXC_CHANGES_OPTIMIZER_STATE,
  NXC_CHANGES_UNFOLLOWED, /* of options: the training, and nobody here knows how */
  NXC_CHANGES_CHECKPOINT
} nxc_changes;

typedef struct nxc_setting_row {
  const char *path;
  nxc_domain domain;
  const nxc_value *initial; /* the default; NULL: unknown */
  bool meaning;             /* counts for plan_id */
  bool needed;              /* plan -o demands it */
  nxc_changes changes;
  NXC_SETTING_FIELDS(NXC_FIELD, )
} nxc_setting_row;

typedef enum nxc_status { NXC_EXECUTED, NXC_CHECKED, NXC_REFUSED } nxc_status;

typedef struct nxc_assignment {
  nxc_setting_id setting;
  const char *expression;
} nxc_assignment;

/* A word of an enum, or a default, that some versions of a dialect have alone. */
typedef struct nxc_versioned {
  const nxc_value *value;
  const char *const *versions;
  size_t n_versions;
} nxc_versioned;

/* A variable that the real system's environment gets; the value is unknown where it does not. */
typedef struct nxc_export_row {
  const char *name, *expression;
} nxc_export_row;

/* There are thousands of these: what counts has two bytes. */
typedef struct nxc_option_row {
  const char *name; /* dotted; ends in ".*" for a free-form section */
  nxc_domain domain;
  const nxc_value *initial;
  const nxc_assignment *sets;
  const nxc_export_row *exports;
  const nxc_versioned *words_in;    /* words of the domain that not all versions have */
  const nxc_versioned *defaults_in; /* defaults of versions where it is not `initial` */
  uint16_t n_sets, n_exports, n_words_in, n_defaults_in;
  uint16_t place; /* among the rows of its file, which is the order that people write options in */
  nxc_status status : 8;
  nxc_changes changes : 8; /* where the row does not say: SETTINGS where it sets some, else UNFOLLOWED */
  NXC_OPTION_FIELDS(NXC_FIELD, )
} nxc_option_row;

/* What a system decides itself about a setting that no option of it says, or not always. */
typedef enum nxc_fixed_kind {
  NXC_FIXED,  /* its code always has this value */
  NXC_ABSENT, /* it has no such thing: the setting keeps a value that changes nothing */
  NXC_UNTOLD  /* nobody can say */
} nxc_fixed_kind;

typedef struct nxc_fixed_row {
  nxc_setting_id setting;
  nxc_fixed_kind kind;
  NXC_FIXED_FIELDS(NXC_FIELD, )
} nxc_fixed_row;

typedef struct nxc_dialect {
  const char *name; /* "nx", "nxdt", "hf_config" */
  const nxc_option_row *options; /* by name */
  size_t n_options;
  const char *names; /* the options' */
  const uint32_t *name_at;
  const nxc_fixed_row *fixed;
  size_t n_fixed;
} nxc_dialect;

typedef struct nxc_preset_row {
  const char *name;
  const char *const *spellings; /* the dialect's, first the one to write */
  size_t n_spellings;
  const char *const *environment; /* "NAME=VALUE" */
  size_t n_environment;
  NXC_PRESET_FIELDS(NXC_FIELD, )
} nxc_preset_row;

typedef struct nxc_rule_row {
  const char *id;
  nxc_severity severity;
  nxc_setting_id derives; /* NX_N_SETTINGS where the rule requires */
  const char *derive;     /* expression */
  NXC_RULE_FIELDS(NXC_FIELD, )
} nxc_rule_row;

typedef struct nxc_diagnostic_row {
  const char *id;
  NXC_DIAGNOSTIC_FIELDS(NXC_FIELD, )
} nxc_diagnostic_row;

extern const nxc_setting_row nxc_setting_rows[NX_N_SETTINGS];
extern const nxc_setting_id nxc_settings_by_path[NX_N_SETTINGS]; /* sorted by path */
extern const nxc_dialect nxc_dialects[];
extern const size_t nxc_n_dialects;
extern const nxc_preset_row nxc_presets[];
extern const size_t nxc_n_presets;
extern const nxc_rule_row nxc_rules[];
extern const size_t nxc_n_rules;
extern const nxc_diagnostic_row nxc_diagnostics[];
extern const size_t nxc_n_diagnostics;

const nxc_dialect *nxc_dialect_find(const char *name);
/* NULL: the dialect has none for the setting. */
const nxc_fixed_row *nxc_fixed_find(const nxc_dialect *dialect, nxc_setting_id id);
/* The row of exactly this name; else of the free-form section that it stands in; else NULL. */
const nxc_option_row *nxc_option_find(const nxc_dialect *dialect, const char *name);
/* Whether a dotted name has more steps than `end` and ends in them: model.optim.lr in optim.lr. */
bool nxc_name_ends_in(const char *name, const char *end);
/* Whether a rule holds in this version of the dialect. */
bool nxc_rule_is_of(const nxc_rule_row *rule, const char *dialect, const char *version);
/* Whether a row that names versions has this one; a row that names none belongs to all. */
bool nxc_in_version(const char *const *versions, size_t n_versions, const char *version);
/* Whether this version is of a later day than all that have the option: it means nothing any more, while the
 * default of one that comes later is what the system did before it. */
bool nxc_option_is_past(const nxc_option_row *row, const char *version);
/* The versions that a word is kept to. NULL: every version of the option has it. */
const nxc_versioned *nxc_option_word(const nxc_option_row *row, const char *word);
/* What stands where the option is not given. NULL: unknown. */
const nxc_value *nxc_option_default(const nxc_option_row *row, const char *version);
/* "0.11 and later", "2024-03-06 to 2025-05-08" */
const char *nxc_versions_show(nxc_arena *arena, const char *const *versions, size_t n_versions);
/* A version that belongs to one entry of a row's versions. */
const char *nxc_version_of_span(nxc_arena *arena, const char *span);
const nxc_rule_row *nxc_rule_find(const char *id);
const nxc_diagnostic_row *nxc_diagnostic_find(const char *id);
const char *nxc_changes_name(nxc_changes changes); /* "restart-safe", "changes data order", ... */
const char *nxc_type_name(nxc_type type); /* as people say it: "an integer" */
/* A rule's message or fix without its marks: {@path} as path, {=expression} as <expression>. "" for NULL. */
const char *nxc_message_readable(nxc_arena *arena, const char *text);

#endif
