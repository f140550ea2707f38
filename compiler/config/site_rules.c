/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/site_rules.h"

#include "compiler/document/document.h"
#include "compiler/expression/expression.h"
#include "compiler/config/fronts.h"
#include "compiler/diagnostics/allow.h"
#include "compiler/settings/settings.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { RULES_BYTES_MAX = 4 * 1024 * 1024 };

/* -- rows as libcyaml fills them ------------------------------------------------------------------------- */

typedef struct site_row {
  char *rule, *dialect, *severity, *when, *after, *require, *derive, *at, *message, *fix, *explain, *source;
  char **versions;
  unsigned versions_count;
} site_row;

#define TEXT(member)                                                                                         \
  CYAML_FIELD_STRING_PTR(#member, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, site_row, member, 0,             \
                         CYAML_UNLIMITED)

static const cyaml_schema_value_t text_item = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED)};
static const cyaml_schema_field_t fields[] = {
    TEXT(rule),
    TEXT(dialect),
    CYAML_FIELD_SEQUENCE("versions", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, site_row, versions, &text_item,
                         0, CYAML_UNLIMITED),
    TEXT(severity),
    TEXT(when),
    TEXT(after),
    TEXT(require),
    TEXT(derive),
    TEXT(at),
    TEXT(message),
    TEXT(fix),
    TEXT(explain),
    TEXT(source),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t row_schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, site_row, fields)};
static const cyaml_schema_value_t file_schema = {
    CYAML_VALUE_SEQUENCE(CYAML_FLAG_POINTER, site_row, &row_schema, 0, CYAML_UNLIMITED)};

/* -- complaints ------------------------------------------------------------------------------------------ */

typedef struct reading {
  nxc_arena *arena;
  nxc_sink *sink;
  const nxc_source *source;
  const char *row;      /* its id, or "rule 3" */
  const nxc_node *node; /* the row's map */
  const char *dialect;  /* whose options it may name; NULL: none */
  bool good;
} reading;

static void complain(reading *r, nxc_span at, const char *fix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void complain(reading *r, nxc_span at, const char *fix, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *problem = nxc_arena_vprintf(r->arena, format, args);
  va_end(args);
  nxc_report(r->sink, "NX1520", NXC_SEVERITY_ERROR, at, fix, "%s: %s", r->row, problem);
  r->good = false;
}

/* libcyaml's own words, when it finds what we did not. */
static void keep_words(cyaml_log_t level, void *context, const char *format, va_list args) {
  reading *r = context;
  const char *words = nxc_arena_vprintf(r->arena, format, args);
  if (level < CYAML_LOG_ERROR) return;
  nxc_span at = {.source = r->source, .line = 1, .column = 1, .length = 1};
  const char *line = strstr(words, "line: ");
  unsigned number = 0;
  if (line != NULL && sscanf(line, "line: %u", &number) == 1 && number >= 1 && number <= r->source->n_lines)
    at.line = number;
  complain(r, at, NULL, "%.*s", (int)strcspn(words, "\n"), words);
}

static nxc_span place(const reading *r, const char *field) {
  const nxc_node *child = nxc_node_child(r->node, field);
  return child ? nxc_node_place(child) : r->node->at;
}

/* A byte of a field's text; of the whole field where the text is folded over lines. */
static nxc_span place_inside(const reading *r, const char *field, size_t offset) {
  const nxc_node *child = nxc_node_child(r->node, field);
  if (child == NULL || child->kind != NXC_NODE_SCALAR || offset > child->raw_bytes) return place(r, field);
  return nxc_node_place_inside(child, offset, 1);
}

/* -- the shape ------------------------------------------------------------------------------------------- */

static void check_field(reading *r, const nxc_node *field) {
  const char *names[sizeof fields / sizeof *fields];
  size_t n_names = 0;
  for (const cyaml_schema_field_t *known = fields; known->key != NULL; known++) {
    names[n_names++] = known->key;
    if (field->key == NULL || strcmp(known->key, field->key) != 0) continue;
    bool list = strcmp(field->key, "versions") == 0;
    if ((field->kind == NXC_NODE_LIST) != list || field->kind == NXC_NODE_MAP)
      complain(r, nxc_node_place(field), NULL, "%s is %s", field->key, list ? "a list of texts" : "a text");
    return;
  }
  const char *key = field->key ? field->key : "";
  const char *nearest = nxc_nearest(key, names, n_names);
  complain(r, nxc_node_place(field), nearest ? nxc_arena_printf(r->arena, "did you mean %s?", nearest) : NULL,
           "there is no field %s", key);
}

static const char *row_name(reading *r, const nxc_node *row, size_t index) {
  const nxc_node *id = row->kind == NXC_NODE_MAP ? nxc_node_child(row, "rule") : NULL;
  if (id != NULL && id->kind == NXC_NODE_SCALAR && id->raw_bytes > 0) return id->raw;
  return nxc_arena_printf(r->arena, "rule %zu", index + 1);
}

static bool check_shape(reading *r, const nxc_document *document) {
  r->row = "site rules";
  if (document->root->kind != NXC_NODE_LIST) {
    complain(r, nxc_node_place(document->root), "begin each rule with `- rule: ID`",
             "the file is a list of rules");
    return false;
  }
  for (size_t i = 0; i < document->root->n_children; i++) {
    const nxc_node *row = document->root->children[i];
    r->row = row_name(r, row, i);
    if (row->kind != NXC_NODE_MAP) complain(r, row->at, NULL, "a rule is a map of fields");
    for (size_t j = 0; row->kind == NXC_NODE_MAP && j < row->n_children; j++)
      check_field(r, row->children[j]);
  }
  r->row = "site rules";
  return r->good;
}

/* -- what rows say --------------------------------------------------------------------------------------- */

static const char *nearest_name(const reading *r, const nxc_name *name) {
  const nxc_dialect *dialect =
      name->kind == NXC_NAME_SETTING
          ? NULL
          : nxc_dialect_find(name->kind == NXC_NAME_OPTION ? r->dialect : "hf_config");
  size_t n_names = dialect ? dialect->n_options : NX_N_SETTINGS;
  const char **names = nxc_arena_array(r->arena, n_names + 1, sizeof *names);
  for (size_t i = 0; i < n_names; i++)
    names[i] = dialect ? dialect->options[i].name : nxc_setting_path((nxc_setting_id)i);
  return nxc_nearest(name->path, names, n_names);
}

static bool exists(const reading *r, const nxc_name *name) {
  switch (name->kind) {
  case NXC_NAME_SETTING: return nxc_setting_find(name->path) < NX_N_SETTINGS;
  case NXC_NAME_OPTION: return nxc_option_find(nxc_dialect_find(r->dialect), name->path) != NULL;
  case NXC_NAME_MODEL_CONFIG: return nxc_option_find(nxc_dialect_find("hf_config"), name->path) != NULL;
  case NXC_NAME_VALUE: break;
  }
  return false;
}

static void check_name(reading *r, const char *field, const nxc_name *name) {
  static const char *const marks[] = {[NXC_NAME_SETTING] = "",
                                      [NXC_NAME_OPTION] = "@",
                                      [NXC_NAME_MODEL_CONFIG] = "@hf.",
                                      [NXC_NAME_VALUE] = ""};
  if (name->kind == NXC_NAME_OPTION && r->dialect == NULL) {
    complain(r, place(r, field), "say whose option it is with dialect", "%s names the option @%s", field,
             name->path);
    return;
  }
  if (exists(r, name)) return;
  const char *nearest = name->kind == NXC_NAME_VALUE ? NULL : nearest_name(r, name);
  const char *mark = marks[name->kind];
  complain(r, place(r, field),
           nearest ? nxc_arena_printf(r->arena, "did you mean %s%s?", mark, nearest) : NULL,
           "%s: there is no %s%s", field, mark, name->path);
}

/* `offset` is where the text stands in its field. */
static void check_expression(reading *r, const char *field, const char *text, size_t offset) {
  const char *error;
  size_t error_at;
  const nxc_expression *expression = text ? nxc_expression_parse(r->arena, text, &error, &error_at) : NULL;
  if (text != NULL && expression == NULL)
    complain(r, place_inside(r, field, offset + error_at), NULL, "%s: %s", field, error);
  for (size_t i = 0; expression != NULL && i < expression->n_names; i++)
    check_name(r, field, &expression->names[i]);
}

/* SETTING = EXPRESSION: the setting, NX_N_SETTINGS where there is none, and where the expression begins. */
static nxc_setting_id split_derive(nxc_arena *arena, const char *text, size_t *at) {
  size_t n_bytes = strcspn(text, " =");
  *at = n_bytes + strspn(text + n_bytes, " ");
  if (text[*at] != '=' || text[*at + 1] == '=') {
    *at = 0;
    return NX_N_SETTINGS;
  }
  *at += 1 + strspn(text + *at + 1, " ");
  return nxc_setting_find(nxc_arena_strndup(arena, text, n_bytes));
}

static void check_derive(reading *r, const char *text) {
  size_t at;
  nxc_setting_id id = split_derive(r->arena, text, &at);
  if (at == 0) {
    complain(r, place(r, "derive"), "write derive: SETTING = EXPRESSION", "derive is no assignment");
  } else if (id == NX_N_SETTINGS) {
    const nxc_name name = {.path = nxc_arena_strndup(r->arena, text, strcspn(text, " ="))};
    check_name(r, "derive", &name);
  } else {
    check_expression(r, "derive", text + at, at);
  }
}

/* {path}, {@path} and {=expression} of messages and fixes. */
static void check_template(reading *r, const char *field, const char *text) {
  for (const char *at = text; at != NULL && (at = strchr(at, '{')) != NULL;) {
    size_t n_bytes = strcspn(++at, "}"), value = *at == '=';
    if (at[n_bytes] == '\0') {
      complain(r, place_inside(r, field, (size_t)(at - text) - 1), NULL, "%s: a { without a }", field);
      return;
    }
    const char *inside = nxc_arena_strndup(r->arena, at + value, n_bytes - value), *error;
    size_t error_at;
    check_expression(r, field, inside, (size_t)(at - text) + value);
    const nxc_expression *expression = nxc_expression_parse(r->arena, inside, &error, &error_at);
    if (!value && expression != NULL && expression->n_names != 1)
      complain(r, place(r, field), "write {=...} for a value", "%s: {%s} is no name", field, inside);
    at += n_bytes;
  }
}

static void check_id(reading *r, const char *id, const nxc_site_rules *others) {
  const char *fix = "write capital letters and digits, such as SITE001";
  if (id == NULL) complain(r, r->node->at, fix, "the rule has no id");
  else if (!nxc_allow_is_id(id, strlen(id))) complain(r, place(r, "rule"), fix, "this is no id");
  else if (strncmp(id, "NX", 2) == 0 && id[2] >= '0' && id[2] <= '9')
    complain(r, place(r, "rule"), "choose letters of your own", "ids that begin with NX are nxcfg's");
  for (size_t i = 0; id != NULL && i < others->n_rows; i++)
    if (strcmp(others->rows[i].id, id) == 0) complain(r, place(r, "rule"), NULL, "another rule has this id");
}

static void check_dialect(reading *r, const site_row *row) {
  const char *version;
  r->dialect = row->dialect;
  if (row->dialect != NULL &&
      (strchr(row->dialect, '@') || nxc_front_find(r->arena, row->dialect, &version) == NULL)) {
    complain(r, place(r, "dialect"), nxc_arena_printf(r->arena, "there are %s", nxc_front_names(r->arena)),
             "there is no dialect %s", row->dialect);
    r->dialect = NULL;
  }
  for (unsigned i = 0; i < row->versions_count; i++) {
    const char *name = nxc_arena_printf(r->arena, "%s@%s", r->dialect ? r->dialect : "", row->versions[i]);
    if (nxc_front_find(r->arena, name, &version) == NULL)
      complain(r, place(r, "versions"), NULL, "there is no version %s", name);
  }
}

/* A rule comes behind one that is judged before it. */
static void check_after(reading *r, const char *after, const nxc_site_rules *others) {
  bool known = after == NULL || nxc_rule_find(after) != NULL;
  for (size_t i = 0; !known && i < others->n_rows; i++) known = strcmp(others->rows[i].id, after) == 0;
  if (!known)
    complain(r, place(r, "after"), "name a rule of nxcfg, or one above this one",
             "after: there is no rule %s", after);
}

static void check_row(reading *r, const site_row *row, const nxc_site_rules *others) {
  static const char *const severities[] = {"error", "warning", "note"};
  bool known = row->severity == NULL;
  check_id(r, row->rule, others);
  check_dialect(r, row);
  for (size_t i = 0; !known && i < 3; i++) known = strcmp(severities[i], row->severity) == 0;
  if (!known)
    complain(r, place(r, "severity"), NULL, "severity is error, warning or note, not %s", row->severity);
  if (row->require != NULL && row->derive != NULL)
    complain(r, place(r, "derive"), "make two rules of it", "a rule demands or derives, not both");
  if (row->require == NULL && row->derive == NULL)
    complain(r, r->node->at, "add require: EXPRESSION", "the rule demands nothing");
  if (row->message == NULL && row->derive == NULL)
    complain(r, r->node->at, "add message: TEXT", "the rule has no message");
  if (row->derive != NULL) check_derive(r, row->derive);
  check_after(r, row->after, others);
  check_expression(r, "when", row->when, 0);
  check_expression(r, "require", row->require, 0);
  check_expression(r, "at", row->at, 0);
  check_template(r, "message", row->message);
  check_template(r, "fix", row->fix);
}

static const char *copy(nxc_arena *arena, const char *text) {
  return text ? nxc_arena_strdup(arena, text) : NULL;
}

static nxc_rule_row keep_row(nxc_arena *arena, const site_row *row) {
  const char **versions = nxc_arena_array(arena, row->versions_count + 1, sizeof *versions);
  for (unsigned i = 0; i < row->versions_count; i++) versions[i] = copy(arena, row->versions[i]);
  const char *usual = row->derive ? "warning" : "error", *severity = row->severity ? row->severity : usual;
  size_t at = 0;
  nxc_setting_id derives = row->derive ? split_derive(arena, row->derive, &at) : NX_N_SETTINGS;
  return (nxc_rule_row){.id = copy(arena, row->rule),
                        .dialect = copy(arena, row->dialect),
                        .versions = versions,
                        .n_versions = row->versions_count,
                        .severity = strcmp(severity, "warning") == 0 ? NXC_SEVERITY_WARNING
                                    : strcmp(severity, "note") == 0  ? NXC_SEVERITY_NOTE
                                                                     : NXC_SEVERITY_ERROR,
                        .when = copy(arena, row->when),
                        .after = copy(arena, row->after),
                        .require = copy(arena, row->require),
                        .derives = derives,
                        .derive = row->derive ? copy(arena, row->derive + at) : NULL,
                        .at = copy(arena, row->at),
                        .message = copy(arena, row->message),
                        .fix = copy(arena, row->fix),
                        .explain = copy(arena, row->explain),
                        .source = copy(arena, row->source)};
}

/* -- the file -------------------------------------------------------------------------------------------- */

static void take_rows(reading *r, const nxc_document *document, const site_row *rows, unsigned n_rows,
                      nxc_site_rules *rules) {
  nxc_rule_row *kept = nxc_arena_array(r->arena, rules->n_rows + n_rows + 1, sizeof *kept);
  if (rules->n_rows > 0) memcpy(kept, rules->rows, rules->n_rows * sizeof *kept);
  rules->rows = kept;
  for (unsigned i = 0; i < n_rows && i < document->root->n_children; i++) {
    r->node = document->root->children[i];
    r->row = row_name(r, r->node, i);
    bool before = r->good;
    r->good = true;
    check_row(r, &rows[i], rules);
    if (r->good) kept[rules->n_rows++] = keep_row(r->arena, &rows[i]);
    r->good = r->good && before;
  }
}

bool nxc_site_rules_read(nxc_arena *arena, const char *path, nxc_sink *sink, nxc_site_rules *rules,
                         bool *unreadable) {
  const nxc_source *source = nxc_source_read(arena, path, RULES_BYTES_MAX);
  *unreadable = source == NULL;
  if (source == NULL) {
    nxc_report(sink, "NX1500", NXC_SEVERITY_ERROR, (nxc_span){0}, NULL, "cannot read %s: %s", path,
               strerror(errno));
    return false;
  }
  reading r = {.arena = arena, .sink = sink, .source = source, .good = true};
  static const nxc_reading plainly = {.omegaconf = true};
  const nxc_document *document = nxc_document_read(arena, source, &plainly, sink);
  if (!document->complete || !check_shape(&r, document)) return false;
  const cyaml_config_t config = {.log_fn = keep_words,
                                 .log_ctx = &r,
                                 .log_level = CYAML_LOG_ERROR,
                                 .mem_fn = cyaml_mem,
                                 .flags = CYAML_CFG_DEFAULT};
  site_row *rows = NULL;
  unsigned n_rows = 0;
  cyaml_err_t status = cyaml_load_data((const uint8_t *)source->text, source->n_bytes, &config, &file_schema,
                                       (void **)&rows, &n_rows);
  if (status != CYAML_OK && r.good)
    complain(&r, (nxc_span){.source = source, .line = 1, .column = 1, .length = 1}, NULL, "%s",
             cyaml_strerror(status));
  if (status == CYAML_OK) take_rows(&r, document, rows, n_rows, rules);
  if (status == CYAML_OK) cyaml_free(&config, &file_schema, rows, n_rows);
  return r.good;
}
