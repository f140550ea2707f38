/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/check.h"

#include "compiler/expression/expression.h"
#include "compiler/gen/literal.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void gen_complain(gen_catalogue *catalogue, const gen_file *file, const char *row, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s: %s: ", file->path, row ? row : "a row without a name");
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  catalogue->n_complaints++;
}

typedef struct place {
  gen_catalogue *catalogue;
  const gen_file *file;
  const char *row;
  const char *dialect; /* NULL where options may not be named */
  bool has_value;
} place;

static bool name_exists(const void *context, const nxc_name *name) {
  const place *at = context;
  switch (name->kind) {
  case NXC_NAME_SETTING: return gen_setting_find(at->catalogue, name->path, strlen(name->path)) != NULL;
  case NXC_NAME_OPTION: return at->dialect && gen_option_find(at->catalogue, at->dialect, name->path);
  case NXC_NAME_MODEL_CONFIG: return gen_option_find(at->catalogue, "hf_config", name->path) != NULL;
  case NXC_NAME_VALUE: return at->has_value;
  }
  return false;
}

static void report_fault(void *context, const nxc_text_fault *fault) {
  const place *at = context;
  if (fault->offset == 0) gen_complain(at->catalogue, at->file, at->row, "%s", fault->problem);
  else
    gen_complain(at->catalogue, at->file, at->row, "%s at character %zu", fault->problem, fault->offset + 1);
}

static nxc_text_check text_check(const place *at) {
  return (nxc_text_check){at->catalogue->arena, name_exists, report_fault, (void *)(uintptr_t)at};
}

static void check_expression(const place *at, const char *field, const char *text) {
  const nxc_text_check check = text_check(at);
  nxc_check_expression(&check, field, text, 0);
}

static void check_text(const place *at, const char *field, const char *text) {
  if (text == NULL || *text == '\0') gen_complain(at->catalogue, at->file, at->row, "%s is missing", field);
}

static void check_literal(const place *at, const char *field, nxc_type type, const char *text) {
  if (text != NULL && gen_literal(at->catalogue->arena, type, text) == NULL) {
    gen_complain(at->catalogue, at->file, at->row, "%s: %s does not have the type of the row", field, text);
  }
}

static void check_word(const place *at, const char *field, const char *word, const char *const *words) {
  for (; word != NULL && *words != NULL; words++) {
    if (strcmp(*words, word) == 0) return;
  }
  if (word != NULL) gen_complain(at->catalogue, at->file, at->row, "%s: %s is no word for it", field, word);
}

static const char *const yes_no[] = {"yes", "no", "true", "false", NULL};

static const struct changes_word {
  const char *word, *constant;
  bool of_option; /* and not of a setting */
} changes_words[] = {{"settings", "SETTINGS", true},
                     {"training", "UNFOLLOWED", true},
                     {"nothing", "OUTSIDE", true},
                     {"place", "PLACE", true},
                     {"estimate", "ESTIMATE", false},
                     {"restart-safe", "NOTHING_KEPT", false},
                     {"data-order", "DATA_ORDER", false},
                     {"optimizer-state", "OPTIMIZER_STATE", false},
                     {"checkpoint", "CHECKPOINT", false}};

static const struct changes_word *find_changes(const char *word) {
  for (size_t i = 0; i < sizeof changes_words / sizeof *changes_words; i++)
    if (strcmp(changes_words[i].word, word) == 0) return &changes_words[i];
  return NULL;
}

const char *gen_changes_constant(const char *word, const char *otherwise) {
  return word ? find_changes(word)->constant : otherwise;
}

static void check_changes(const place *at, const char *word, bool is_option) {
  const struct changes_word *found = word ? find_changes(word) : NULL;
  if (word != NULL && (found == NULL || (found->of_option && !is_option)))
    gen_complain(at->catalogue, at->file, at->row, "changes: %s is no word for it", word);
}

/* What a field's kind alone demands (fields.h). */
#define CHECK(row, kind, member, key) CHECK_##kind(key, row->member)
#define CHECK_TEXT(key, text)
#define CHECK_TEXTS(key, texts)
#define CHECK_OWN(key, text)
#define CHECK_OWNS(key, texts)
#define CHECK_EXPRESSION(key, text) check_expression(at, key, text);
#define CHECK_BEFORE(key, text) check_expression(&before, key, text);
#define CHECK_FLAG(key, text) check_word(at, key, text, yes_no);

static void check_setting(const place *at, const gen_setting *row) {
  nxc_type type = NXC_TYPE_ANY;
  if (!gen_type_find(row->type, &type))
    gen_complain(at->catalogue, at->file, at->row, "there is no such type");
  if ((type == NXC_TYPE_ENUM) != (row->values_count > 0)) {
    gen_complain(at->catalogue, at->file, at->row, "values belong to an enum, and an enum has values");
  }
  check_text(at, "doc", row->doc);
  check_text(at, "runs", row->runs);
  check_literal(at, "default", type, row->initial);
  check_literal(at, "min", type, row->min);
  check_literal(at, "max", type, row->max);
  check_literal(at, "above", type, row->above);
  check_word(at, "meaning", row->meaning, yes_no);
  check_word(at, "needed", row->needed, (const char *const[]){"plan", NULL});
  check_changes(at, row->changes, false);
  NXC_SETTING_FIELDS(CHECK, row)
  if (row->refused_when != NULL) check_text(at, "why", row->why);
}

static void check_sets(const place *at, const gen_option *row) {
  for (unsigned i = 0; i < row->sets_count; i++) {
    size_t n_bytes;
    const char *expression;
    if (!nxc_assignment_split(row->sets[i], &n_bytes, &expression)) {
      gen_complain(at->catalogue, at->file, at->row, "sets: no assignment: %s", row->sets[i]);
    } else if (gen_setting_find(at->catalogue, row->sets[i], n_bytes) == NULL) {
      gen_complain(at->catalogue, at->file, at->row, "sets: there is no setting %.*s", (int)n_bytes,
                   row->sets[i]);
    } else {
      check_expression(at, "sets", expression);
    }
  }
}

/* NAME = expression, of a variable of the training's environment. */
static void check_exports(const place *at, const gen_option *row) {
  for (unsigned i = 0; i < row->exports_count; i++) {
    size_t n_bytes;
    const char *expression;
    if (!nxc_assignment_split(row->exports[i], &n_bytes, &expression) ||
        strspn(row->exports[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != n_bytes)
      gen_complain(at->catalogue, at->file, at->row, "exports: no variable: %s", row->exports[i]);
    else check_expression(at, "exports", expression);
  }
}

/* WORD in VERSION, VERSION: of an option whose words or default are not the same in all versions. */
static void check_versioned(const place *at, const gen_option *row, nxc_type type) {
  const char *value, *versions;
  for (unsigned i = 0; i < row->words_in_count; i++) {
    bool known = false;
    if (!gen_versioned_split(at->catalogue->arena, row->words_in[i], &value, &versions)) {
      gen_complain(at->catalogue, at->file, at->row, "words_in: not WORD in VERSION: %s", row->words_in[i]);
      continue;
    }
    for (unsigned k = 0; k < row->values_count; k++) known = known || strcmp(row->values[k], value) == 0;
    if (!known) gen_complain(at->catalogue, at->file, at->row, "words_in: %s is not among values", value);
  }
  for (unsigned i = 0; i < row->defaults_in_count; i++) {
    if (gen_versioned_split(at->catalogue->arena, row->defaults_in[i], &value, &versions))
      check_literal(at, "defaults_in", type, value);
    else
      gen_complain(at->catalogue, at->file, at->row, "defaults_in: not VALUE in VERSION: %s",
                   row->defaults_in[i]);
  }
}

static void check_option(const place *at, const gen_option *row) {
  check_text(at, "option", row->option);
  if (row->alias_of != NULL) {
    if (gen_option_find(at->catalogue, at->file->name, row->alias_of) == NULL) {
      gen_complain(at->catalogue, at->file, at->row, "alias_of: there is no option %s", row->alias_of);
    }
    return;
  }
  nxc_type type = NXC_TYPE_ANY;
  if (!gen_type_find(row->type, &type))
    gen_complain(at->catalogue, at->file, at->row, "there is no such type");
  if (type == NXC_TYPE_ENUM && row->values_count == 0)
    gen_complain(at->catalogue, at->file, at->row, "values are missing");
  check_text(at, "doc", row->doc);
  check_text(at, "status", row->status);
  check_word(at, "status", row->status, (const char *const[]){"executed", "checked", "refused", NULL});
  if (row->status && strcmp(row->status, "executed") != 0) check_text(at, "why", row->why);
  check_changes(at, row->changes, true);
  check_word(at, "nullable", row->nullable, yes_no);
  check_literal(at, "default", type, row->initial);
  check_literal(at, "min", type, row->min);
  check_literal(at, "max", type, row->max);
  check_literal(at, "above", type, row->above);
  const place before = {at->catalogue, at->file, at->row, at->dialect, false}; /* it has a value */
  NXC_OPTION_FIELDS(CHECK, row)
  if (row->became != NULL && row->versions_count == 0)
    gen_complain(at->catalogue, at->file, at->row, "became: every version has it");
  check_sets(at, row);
  check_exports(at, row);
  check_versioned(at, row, type);
}

static bool is_fixed_before(const gen_file *file, const gen_fixed *row, const char *setting) {
  for (const gen_fixed *other = file->rows; other < row; other++) {
    unsigned n;
    char **settings = gen_fixed_settings(other, &n);
    for (unsigned i = 0; i < n; i++)
      if (strcmp(settings[i], setting) == 0) return true;
  }
  return false;
}

static void check_fixed(const place *at, const gen_fixed *row) {
  unsigned n;
  char **settings = gen_fixed_settings(row, &n);
  if ((row->fixed != NULL) + (row->absent_count > 0) + (row->unknown_count > 0) != 1)
    gen_complain(at->catalogue, at->file, at->row, "a row is of what is fixed, absent or unknown");
  for (unsigned i = 0; i < n; i++) {
    if (gen_setting_find(at->catalogue, settings[i], strlen(settings[i])) == NULL)
      gen_complain(at->catalogue, at->file, at->row, "there is no setting %s", settings[i]);
    if (is_fixed_before(at->file, row, settings[i]))
      gen_complain(at->catalogue, at->file, at->row, "%s stands twice", settings[i]);
  }
  if (row->fixed != NULL) check_text(at, "value", row->value);
  check_text(at, row->fixed ? "source" : "why", row->fixed ? row->source : row->why);
  NXC_FIXED_FIELDS(CHECK, row)
}

static void check_preset(const place *at, const gen_preset *row) {
  static const char *const types[] = {"fp32", "bf16", "fp16", "none", NULL};
  check_text(at, "dialect", row->dialect);
  check_text(at, "doc", row->doc);
  check_word(at, "param", row->param, types);
  check_word(at, "compute", row->compute, types);
  check_word(at, "master", row->master, types);
  check_word(at, "gradient", row->gradient, types);
  check_word(at, "optimizer_state", row->optimizer_state, types);
  check_word(at, "reduce", row->reduce, types);
  NXC_PRESET_FIELDS(CHECK, row)
}

static void check_id(const place *at, const char *id) {
  if (id == NULL || strlen(id) != 6 || strncmp(id, "NX", 2) != 0 || strspn(id + 2, "0123456789") != 4) {
    gen_complain(at->catalogue, at->file, at->row, "an id is NX and four digits");
  }
}

static bool is_rule(const place *at, const char *id) {
  for (unsigned f = 0; f < at->catalogue->n_files[GEN_RULES]; f++) {
    const gen_file *file = &at->catalogue->files[GEN_RULES][f];
    for (unsigned i = 0; i < file->n_rows; i++) {
      const char *other = ((const gen_rule *)file->rows)[i].rule;
      if (other != NULL && strcmp(other, id) == 0) return true;
    }
  }
  return false;
}

static void check_rule(const place *at, const gen_rule *row) {
  check_id(at, row->rule);
  if (row->versions_count > 0 && row->dialect == NULL)
    gen_complain(at->catalogue, at->file, at->row, "versions belong to a dialect");
  if (row->except != NULL && row->dialect != NULL)
    gen_complain(at->catalogue, at->file, at->row, "except: it holds in one dialect only");
  const nxc_text_check check = text_check(at);
  nxc_check_rule(&check, row);
  if (row->require != NULL) check_text(at, "fix", row->fix);
  check_text(at, "source", row->source);
  check_word(at, "structural", row->structural, yes_no);
  if (row->structural != NULL && (row->dialect != NULL || row->severity != NULL || row->require == NULL))
    gen_complain(at->catalogue, at->file, at->row, "a structural rule is an error in every dialect");
  bool later = row->after != NULL && (row->rule == NULL || strcmp(row->after, row->rule) >= 0);
  if (later || (row->after != NULL && !is_rule(at, row->after)))
    gen_complain(at->catalogue, at->file, at->row, "after: there is no earlier rule %s", row->after);
}

static void check_diagnostic(const place *at, const gen_diagnostic *row) {
  check_id(at, row->diagnostic);
  check_text(at, "title", row->title);
  check_text(at, "explain", row->explain);
}

/* The name of a row: its first field, in every kind of row. */
static const char *row_name(gen_kind kind, const gen_file *file, unsigned index) {
  switch (kind) {
  case GEN_SETTINGS: return ((const gen_setting *)file->rows)[index].setting;
  case GEN_DIALECT: return ((const gen_option *)file->rows)[index].option;
  case GEN_FIXED: {
    unsigned n;
    char **settings = gen_fixed_settings((const gen_fixed *)file->rows + index, &n);
    return n > 0 ? settings[0] : NULL;
  }
  case GEN_PRESETS: return ((const gen_preset *)file->rows)[index].preset;
  case GEN_RULES: return ((const gen_rule *)file->rows)[index].rule;
  case GEN_DIAGNOSTICS: return ((const gen_diagnostic *)file->rows)[index].diagnostic;
  case GEN_SYSTEM:
  case GEN_MODELS:
  case GEN_TOKENIZERS:
  case GEN_FAMILY:
  case GEN_N_KINDS: break;
  }
  return NULL;
}

static void check_row(gen_catalogue *catalogue, gen_kind kind, const gen_file *file, unsigned index) {
  place at = {
      .catalogue = catalogue, .file = file, .row = row_name(kind, file, index), .dialect = file->name};
  if (at.row == NULL) {
    gen_complain(catalogue, file, NULL, "row %u", index + 1);
    return;
  }
  /* whose files name it */
  if (kind == GEN_DIALECT && strcmp(file->name, "hf_config") == 0) at.dialect = "nxdt";
  at.has_value = kind == GEN_DIALECT || kind == GEN_SETTINGS;
  if (kind == GEN_SETTINGS) check_setting(&at, (const gen_setting *)file->rows + index);
  if (kind == GEN_DIALECT) check_option(&at, (const gen_option *)file->rows + index);
  if (kind == GEN_FIXED) check_fixed(&at, (const gen_fixed *)file->rows + index);
  if (kind == GEN_PRESETS) check_preset(&at, (const gen_preset *)file->rows + index);
  if (kind == GEN_DIAGNOSTICS) check_diagnostic(&at, (const gen_diagnostic *)file->rows + index);
  if (kind == GEN_RULES) {
    const gen_rule *row = (const gen_rule *)file->rows + index;
    at.dialect = row->dialect;
    check_rule(&at, row);
  }
}

/* Rules and diagnostics share one space of ids, over all files; options are unique in their dialect. */
static void check_unique(gen_catalogue *catalogue, gen_kind kind, const gen_file *file, unsigned index) {
  const char *name = row_name(kind, file, index);
  bool ids = kind == GEN_RULES || kind == GEN_DIAGNOSTICS;
  for (gen_kind other = 0; other < GEN_N_KINDS; other++) {
    if (other != kind && !(ids && (other == GEN_RULES || other == GEN_DIAGNOSTICS))) continue;
    for (unsigned i = 0; i < catalogue->n_files[other]; i++) {
      const gen_file *also = &catalogue->files[other][i];
      if ((kind == GEN_DIALECT || kind == GEN_FIXED) && also != file) continue;
      for (unsigned j = 0; j < also->n_rows; j++) {
        if (also == file && j >= index) break;
        const char *earlier = row_name(other, also, j);
        if (name && earlier && strcmp(earlier, name) == 0) {
          gen_complain(catalogue, file, name, "stands twice, also in %s", also->path);
        }
      }
    }
  }
}

void gen_check(gen_catalogue *catalogue) {
  for (gen_kind kind = 0; kind < GEN_N_KINDS; kind++) {
    for (unsigned i = 0; i < catalogue->n_files[kind]; i++) {
      const gen_file *file = &catalogue->files[kind][i];
      for (unsigned row = 0; row < file->n_rows; row++) {
        check_row(catalogue, kind, file, row);
        check_unique(catalogue, kind, file, row);
      }
    }
  }
}
