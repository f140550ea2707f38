/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/rule_check.h"

#include <stdarg.h>
#include <string.h>

typedef const nxc_text_check *checker;

static void report(checker c, nxc_text_fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report(checker c, nxc_text_fault fault, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fault.problem = nxc_arena_vprintf(c->arena, format, args);
  va_end(args);
  c->report(c->context, &fault);
}

const char *nxc_name_mark(nxc_name_kind kind) {
  static const char *const marks[] = {[NXC_NAME_SETTING] = "",
                                      [NXC_NAME_OPTION] = "@",
                                      [NXC_NAME_MODEL_CONFIG] = "@hf.",
                                      [NXC_NAME_VALUE] = ""};
  return marks[kind];
}

static void check_name(checker c, const char *field, const nxc_name *name) {
  if (c->exists(c->context, name)) return;
  report(c, (nxc_text_fault){.field = field, .name = name}, "%s: there is no %s%s", field,
         nxc_name_mark(name->kind), name->path);
}

static const nxc_expression *parse(checker c, const char *field, const char *text, size_t offset) {
  const char *error;
  size_t error_at;
  const nxc_expression *expression = nxc_expression_parse(c->arena, text, &error, &error_at);
  if (expression == NULL)
    report(c, (nxc_text_fault){.field = field, .offset = offset + error_at}, "%s: %s", field, error);
  return expression;
}

void nxc_check_expression(checker c, const char *field, const char *text, size_t offset) {
  const nxc_expression *expression = text ? parse(c, field, text, offset) : NULL;
  for (size_t i = 0; expression != NULL && i < expression->n_names; i++)
    check_name(c, field, &expression->names[i]);
}

static void check_braces(checker c, const char *field, const char *inside, size_t offset) {
  bool value = *inside == '=';
  const nxc_expression *expression = parse(c, field, inside + value, offset + value);
  if (expression == NULL) return;
  for (size_t i = 0; i < expression->n_names; i++) check_name(c, field, &expression->names[i]);
  if (!value && expression->n_names != 1)
    report(c, (nxc_text_fault){.field = field, .fix = "write {=...} for a value"}, "%s: {%s} is no name",
           field, inside);
}

/* {path}, {@path} and {=expression} of messages and fixes. */
static void check_template(checker c, const char *field, const char *text) {
  for (const char *at = text; at != NULL && (at = strchr(at, '{')) != NULL;) {
    size_t n_bytes = strcspn(++at, "}"), offset = (size_t)(at - text);
    if (at[n_bytes] == '\0') {
      report(c, (nxc_text_fault){.field = field, .offset = offset - 1}, "%s: a { without a }", field);
      return;
    }
    check_braces(c, field, nxc_arena_strndup(c->arena, at, n_bytes), offset);
    at += n_bytes;
  }
}

bool nxc_assignment_split(const char *text, size_t *n_bytes, const char **expression) {
  *n_bytes = strcspn(text, " =");
  const char *at = text + *n_bytes + strspn(text + *n_bytes, " ");
  if (*n_bytes == 0 || *at != '=' || at[1] == '=') return false;
  *expression = at + 1 + strspn(at + 1, " ");
  return true;
}

static void check_derive(checker c, const char *text) {
  size_t n_bytes;
  const char *expression;
  if (!nxc_assignment_split(text, &n_bytes, &expression)) {
    report(c, (nxc_text_fault){.field = "derive", .fix = "write derive: SETTING = EXPRESSION"},
           "derive is no assignment");
    return;
  }
  const nxc_name name = {.kind = NXC_NAME_SETTING, .path = nxc_arena_strndup(c->arena, text, n_bytes)};
  check_name(c, "derive", &name);
  nxc_check_expression(c, "derive", expression, (size_t)(expression - text));
}

static void check_severity(checker c, const char *word) {
  static const char *const words[] = {"error", "warning", "note"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (word == NULL || strcmp(words[i], word) == 0) return;
  report(c, (nxc_text_fault){.field = "severity"}, "severity is error, warning or note, not %s", word);
}

#define CHECK(row, kind, member, key) CHECK_##kind(key, row->member)
#define CHECK_TEXT(key, text)
#define CHECK_TEXTS(key, texts)
#define CHECK_OWN(key, text)
#define CHECK_FLAG(key, text)
#define CHECK_EXPRESSION(key, text) nxc_check_expression(c, key, text, 0);
#define CHECK_TEMPLATE(key, text) check_template(c, key, text);

void nxc_check_rule(checker c, const nxc_rule_texts *row) {
  check_severity(c, row->severity);
  if (row->require != NULL && row->derive != NULL)
    report(c, (nxc_text_fault){.field = "derive", .fix = "make two rules of it"},
           "a rule demands or derives, not both");
  if (row->require == NULL && row->derive == NULL)
    report(c, (nxc_text_fault){.fix = "add require: EXPRESSION"}, "the rule demands nothing");
  if (row->message == NULL && row->derive == NULL)
    report(c, (nxc_text_fault){.fix = "add message: TEXT"}, "the rule has no message");
  if (row->derive != NULL) check_derive(c, row->derive);
  NXC_RULE_FIELDS(CHECK, row)
}
