/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/site_rules.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/document.h"
#include "compiler/expression/expression.h"
#include "compiler/config/fronts.h"
#include "compiler/diagnostics/allow.h"
#include "compiler/settings/rule_check.h"
#include "compiler/settings/settings.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { RULES_BYTES_MAX = 4 * 1024 * 1024 };

/* -- rows as libcyaml fills them ------------------------------------------------------------------------- */

static const cyaml_schema_value_t text_item = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED)};
static const cyaml_schema_field_t fields[] = {
    NXC_RULE_FIELDS(NXC_CYAML, nxc_rule_texts)
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t row_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, nxc_rule_texts, fields)};
static const cyaml_schema_value_t file_schema = {
    CYAML_VALUE_SEQUENCE(CYAML_FLAG_POINTER, nxc_rule_texts, &row_schema, 0, CYAML_UNLIMITED)};

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
  return child ? nxc_node_span(child) : r->node->at;
}

/* A byte of a field's text; of the whole field where the text is folded over lines. */
static nxc_span place_inside(const reading *r, const char *field, size_t offset) {
  const nxc_node *child = nxc_node_child(r->node, field);
  if (child == NULL || child->kind != NXC_NODE_SCALAR || offset > child->raw_bytes) return place(r, field);
  return nxc_node_span_inside(child, offset, 1);
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
      complain(r, nxc_node_span(field), NULL, "%s is %s", field->key, list ? "a list of texts" : "a text");
    return;
  }
  const char *key = field->key ? field->key : "";
  complain(r, nxc_node_span(field), nxc_did_you_mean(r->arena, "", nxc_nearest(key, names, n_names)),
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
    complain(r, nxc_node_span(document->root), "begin each rule with `- rule: ID`",
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

static bool exists(const void *context, const nxc_name *name) {
  const reading *r = context;
  switch (name->kind) {
  case NXC_NAME_SETTING: return nxc_setting_find(name->path) < NX_N_SETTINGS;
  case NXC_NAME_OPTION:
    return r->dialect != NULL && nxc_option_find(nxc_dialect_find(r->dialect), name->path) != NULL;
  case NXC_NAME_MODEL_CONFIG: return nxc_option_find(nxc_dialect_find("hf_config"), name->path) != NULL;
  case NXC_NAME_VALUE: break;
  }
  return false;
}

static const char *fix_of(const reading *r, const nxc_text_fault *fault) {
  const nxc_name *name = fault->name;
  if (name == NULL || name->kind == NXC_NAME_VALUE) return fault->fix;
  if (name->kind == NXC_NAME_OPTION && r->dialect == NULL) return "say whose option it is with dialect";
  return nxc_did_you_mean(r->arena, nxc_name_mark(name->kind), nearest_name(r, name));
}

static void report_fault(void *context, const nxc_text_fault *fault) {
  reading *r = context;
  nxc_span at = fault->field == NULL    ? r->node->at
                : fault->offset == 0    ? place(r, fault->field)
                                        : place_inside(r, fault->field, fault->offset);
  complain(r, at, fix_of(r, fault), "%s", fault->problem);
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

static void check_dialect(reading *r, const nxc_rule_texts *row) {
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

/* What the catalogue alone may say. */
static void check_unusual(reading *r, const nxc_rule_texts *row) {
  if (row->except != NULL) complain(r, place(r, "except"), "leave it out", "a site's rule has no except");
  if (row->structural != NULL)
    complain(r, place(r, "structural"), "leave it out", "a site's rule is never structural");
}

static void check_row(reading *r, const nxc_rule_texts *row, const nxc_site_rules *others) {
  const nxc_text_check check = {r->arena, exists, report_fault, r};
  check_id(r, row->rule, others);
  check_dialect(r, row);
  check_after(r, row->after, others);
  check_unusual(r, row);
  nxc_check_rule(&check, row);
}

static const char *copy(nxc_arena *arena, const char *text) {
  return text ? nxc_arena_strdup(arena, text) : NULL;
}

static nxc_rule_row keep_row(nxc_arena *arena, const nxc_rule_texts *row) {
  const char **versions = nxc_arena_array(arena, row->versions_count + 1, sizeof *versions);
  for (unsigned i = 0; i < row->versions_count; i++) versions[i] = copy(arena, row->versions[i]);
  const char *usual = row->derive ? "warning" : "error", *severity = row->severity ? row->severity : usual;
  size_t n_path = 0;
  const char *derive = NULL;
  bool derived = row->derive != NULL && nxc_assignment_split(row->derive, &n_path, &derive);
  const char *path = derived ? nxc_arena_strndup(arena, row->derive, n_path) : NULL;
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
                        .derives = derived ? nxc_setting_find(path) : NX_N_SETTINGS,
                        .derive = copy(arena, derive),
                        .at = copy(arena, row->at),
                        .message = copy(arena, row->message),
                        .fix = copy(arena, row->fix),
                        .explain = copy(arena, row->explain),
                        .source = copy(arena, row->source)};
}

/* -- the file -------------------------------------------------------------------------------------------- */

static void take_rows(reading *r, const nxc_document *document, const nxc_rule_texts *rows, unsigned n_rows,
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
    nxc_report(sink, "NX1500", NXC_SEVERITY_ERROR, (nxc_span){0},
               "name a file of rules that is there and may be read", "cannot read %s: %s", path,
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
  nxc_rule_texts *rows = NULL;
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
