/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of codes that grew out of a system, and options that the system had once. */
#include "compiler/config/binding/dialect.h"
#include "compiler/config/binding/dialect_words.h"
#include "compiler/document/repair.h"
#include "compiler/document/scalar.h"

#include <string.h>

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};

/* "2023-09" */
static const char *month_of(nxc_arena *arena, const char *until) {
  int month = (until[5] - '0') * 10 + until[6] - '0';
  return nxc_arena_printf(arena, "%s %.4s", months[month - 1], until);
}

/* The month of what it lost first. NULL: it has all of them still, or something else says the same now: a key
 * that has only another name is a mistake as often as it is old. */
static const char *first_lost(const nxc_dialect *dialect, const nxc_node *root) {
  const char *first = NULL;
  bool gone = false;
  for (size_t i = 0; i < root->n_children; i++) {
    const char *key = root->children[i]->key;
    const nxc_past_option *past = key ? nxc_past_option_find(dialect->name, key) : NULL;
    if (past != NULL && (first == NULL || strcmp(past->until, first) < 0)) first = past->until;
    gone = gone || (past != NULL && past->now[0] == '\0');
  }
  return gone ? first : NULL;
}

const nxc_relative *nxc_past_system(nxc_arena *arena, const nxc_dialect *dialect, const char *oldest,
                                    const nxc_document *document) {
  const nxc_node *root = document->root;
  const char *lost = first_lost(dialect, root);
  for (size_t i = 0; i < root->n_children && lost != NULL; i++) {
    const char *key = root->children[i]->key;
    const nxc_option_row *row = key ? nxc_option_find(dialect, key) : NULL;
    if (row == NULL) continue;
    bool young = !nxc_in_version(row->versions, row->n_versions, oldest) ||
                 strcmp(nxc_option_born(dialect->name, key), lost) > 0;
    if (young) lost = NULL;
  }
  if (lost == NULL) return NULL;
  nxc_relative *past = nxc_arena_alloc(arena, sizeof *past);
  const char *system = nxc_system_name(dialect->name);
  *past = (nxc_relative){.system = dialect->name,
                         .name = nxc_arena_printf(arena, "%s of %s or before", system, month_of(arena, lost)),
                         .marks = "",
                         .own = "",
                         .past = true};
  return past;
}

static nxc_relative_given given_by(const nxc_node *node) {
  bool word = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING;
  return (nxc_relative_given){.option = node->key ? node->key : "", .word = word ? node->value.text : ""};
}

static bool marks(const nxc_relative *relative, const nxc_node *node) {
  nxc_relative_given given = given_by(node);
  return nxc_relative_is_marked(relative, given.option, given.word);
}

const nxc_relative *nxc_relative_of(nxc_arena *arena, const nxc_dialect *dialect,
                                    const nxc_document *document) {
  const nxc_node *root = document->root;
  nxc_relative_given *given = nxc_arena_array(arena, root->n_children, sizeof *given);
  for (size_t i = 0; i < root->n_children; i++) {
    given[i] = given_by(root->children[i]);
    given[i].of_system = nxc_option_find(dialect, given[i].option) != NULL;
  }
  return nxc_relative_of_options(dialect->name, given, root->n_children);
}

bool nxc_binding_may_have(const nxc_binding *binding, const nxc_option_row *row) {
  if (binding->options[row - binding->dialect->options].given) return true;
  bool lacks = binding->relative != NULL && nxc_relative_lacks(binding->relative, row->name);
  return !lacks && nxc_in_version(row->versions, row->n_versions, binding->version);
}

/* The first, or the next behind `after`. NULL: nothing more that is known here. */
static const nxc_relative_meaning *meaning_of(const nxc_binding *binding, const nxc_node *node,
                                              const nxc_relative_meaning *after) {
  if (node->key == NULL || binding->relative == NULL) return NULL;
  const char *word = node->value.kind == NXC_STRING ? node->value.text : "";
  return nxc_relative_means(binding->relative, node->key, word, after);
}

static void take(nxc_binding *binding, const nxc_node *node, const nxc_relative_meaning *means) {
  const nxc_value *value = &node->value;
  nxc_setting_id id = nxc_setting_find(means->setting);
  const nxc_provenance *before = nxc_settings_from(binding->settings, id);
  if (strcmp(means->value, "?") == 0) { /* it says so elsewhere, unless this says it, too */
    if (before->kind <= NXC_FROM_DIALECT_DEFAULT)
      nxc_settings_forget(binding->settings, id, node->key, node->at);
    return;
  }
  const char *said = *means->value == '=' ? "" : means->value; /* an expression is over the option's own */
  const char *text = *said ? said : value->kind == NXC_STRING ? value->text : NULL;
  if (text != NULL) value = nxc_scalar_of(binding->arena, text); /* arguments are texts */
  if (*means->value == '=')
    value = nxc_binding_evaluate(binding, &(nxc_bound){.value = value}, means->value + 1);
  if (value == NULL) {
    nxc_settings_forget(binding->settings, id, node->key, node->at);
    return;
  }
  nxc_provenance_kind kind =
      before->kind > NXC_FROM_FILE ? before->kind : NXC_FROM_FILE; /* or it is in vain */
  const nxc_provenance from = {.kind = kind, .at = node->at, .option = node->key};
  bool decided = before->option != NULL && strchr(before->option, '.') != NULL; /* by a section's file */
  if (!decided) nxc_settings_set(binding->settings, id, value, &from, nxc_sink_new(binding->arena));
}

/* What a setting cannot be is left alone: the code may have words of its own. */
void nxc_binding_take_relative(nxc_binding *binding) {
  const nxc_node *root = binding->document->root;
  for (size_t i = 0; i < root->n_children; i++) {
    const nxc_node *node = root->children[i];
    const nxc_relative_meaning *means = NULL;
    if (node->kind != NXC_NODE_SCALAR || node->failed) continue;
    while ((means = meaning_of(binding, node, means)) != NULL) take(binding, node, means);
  }
}

/* What it has of its own there: an option, or a word of an option of both. NULL: nothing. */
static const char *own_of(const nxc_binding *binding, const nxc_node *node) {
  if (node->key == NULL) return NULL;
  bool mark = nxc_relative_is_marked(binding->relative, node->key, "");
  if (mark || nxc_option_find(binding->dialect, node->key) == NULL)
    return mark || nxc_relative_has(binding->relative, node->key) ? node->key : NULL;
  if (nxc_relative_lists(binding->relative, node->key)) return node->key; /* and means more by it */
  const char *word = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING
                         ? nxc_relative_word(binding->relative, node->key, node->value.text)
                         : NULL;
  bool own = word != NULL && *word == '\0';
  if (!own && !marks(binding->relative, node)) return NULL;
  return nxc_arena_printf(binding->arena, "%s %s", node->key, node->value.text);
}

/* As it stands there, or as it was bound. */
static const char *word_of(const nxc_binding *binding, const nxc_node *node) {
  const char *raw = node->raw ? nxc_arena_strndup(binding->arena, node->raw, node->raw_bytes) : "";
  return node->value.kind == NXC_STRING ? node->value.text : raw;
}

/* Whether the document gives each of these options, parted by blanks; NAME=WORD with this word. */
static bool gives_all(const nxc_binding *binding, const char *options) {
  for (const char *at = options; *at != '\0'; at += strspn(at, " ")) {
    size_t n = strcspn(at, " "), equals = strcspn(at, "= ");
    const nxc_node *node =
        nxc_node_lookup(binding->document->root, nxc_arena_strndup(binding->arena, at, equals));
    if (node == NULL) return false;
    const char *word = equals < n ? nxc_arena_strndup(binding->arena, at + equals + 1, n - equals - 1) : NULL;
    if (word != NULL && strcmp(word_of(binding, node), word) != 0) return false;
    at += n;
  }
  return true;
}

static bool is_inert(const nxc_binding *binding, const nxc_node *node, const char *name) {
  const char *word = word_of(binding, node);
  const char *others = nxc_relative_inert_beside(binding->relative, name);
  return nxc_relative_is_inert(binding->relative, name, word) ||
         (others != NULL && gives_all(binding, others));
}

static bool is_said(const nxc_binding *binding, const nxc_node *node) {
  const char *others = nxc_relative_said_beside(binding->relative, node->key);
  return nxc_relative_is_said(binding->relative, node->key, word_of(binding, node)) ||
         (others != NULL && gives_all(binding, others));
}

/* What it trains for, as ", and trains ..."; "": as the system does. */
static const char *task_of(const nxc_binding *binding) {
  const nxc_node *root = binding->document->root;
  for (size_t i = 0; i < root->n_children; i++) {
    const char *key = root->children[i]->key;
    const char *task = key ? nxc_relative_task(binding->relative, key) : NULL;
    if (task != NULL) return nxc_arena_printf(binding->arena, " and %s", task);
  }
  return "";
}

/* How far what is its own is in the way of a run. */
typedef enum hurdle { IS_INERT, IS_SAID, IS_UNKNOWN } hurdle;

static const char *listed(const nxc_binding *binding, const char *names, const char *name) {
  return nxc_arena_printf(binding->arena, "%s%s%s", names, *names ? ", " : "", name);
}

/* Of a section's own: options of the system are judged as such. */
static hurdle hurdle_within(const nxc_binding *binding, const nxc_node *section, const char *name,
                            const char **unknown) {
  hurdle worst = IS_SAID;
  for (size_t i = 0; i < section->n_children; i++) {
    const nxc_node *node = section->children[i];
    const char *inside = nxc_arena_printf(binding->arena, "%s.%s", name, node->key);
    if (nxc_option_find(binding->dialect, inside) != NULL || is_inert(binding, node, inside)) continue;
    bool map = node->kind == NXC_NODE_MAP;
    if (!map) *unknown = listed(binding, *unknown, inside);
    if (!map || hurdle_within(binding, node, inside, unknown) == IS_UNKNOWN) worst = IS_UNKNOWN;
  }
  return worst;
}

/* unknown: where to list, by their names, those whose meaning no setting says. */
static hurdle hurdle_of(const nxc_binding *binding, const nxc_node *node, const char *own,
                        const char **unknown) {
  bool scalar = node->kind == NXC_NODE_SCALAR, map = node->kind == NXC_NODE_MAP;
  if (scalar && is_inert(binding, node, node->key)) return IS_INERT;
  const nxc_relative_meaning *means = meaning_of(binding, node, NULL);
  bool unread = scalar && means != NULL && strcmp(means->value, "?") == 0;
  bool said = !unread && is_said(binding, node);
  if (said && map) return hurdle_within(binding, node, node->key, unknown);
  bool part = node->failed && nxc_relative_lists(binding->relative, node->key); /* of what it lists */
  if (said && scalar && !part) return IS_SAID;
  *unknown = listed(binding, *unknown, own);
  return IS_UNKNOWN;
}

static const nxc_remark *remarks_of(nxc_binding *binding, const char *names, const char *counted,
                                    hurdle worst, const char *unknown, size_t *n_remarks) {
  nxc_remark *remarks = nxc_arena_array(binding->arena, 3, sizeof *remarks);
  const char *what = binding->relative->past ? "what is no more" : "of its own";
  remarks[0].text = nxc_arena_printf(binding->arena, "%s: %s", what, names);
  remarks[1].text = nxc_arena_printf(binding->arena, "estimates count %s", counted);
  *n_remarks = *counted ? 2 : 1;
  static const char *const why[] = {"none of that changes what is trained", "settings say what that changes"};
  if (worst != IS_UNKNOWN)
    remarks[(*n_remarks)++].text = why[worst];
  else if (binding->for_nxrun)
    remarks[(*n_remarks)++].text = nxc_arena_printf(binding->arena, "in the way of a run: %s", unknown);
  return remarks;
}

static void report_relative(nxc_binding *binding, const nxc_node *at, bool runs, const nxc_remark *remarks,
                            size_t n_remarks) {
  const nxc_relative *relative = binding->relative;
  const char *system = nxc_system_name(relative->system);
  const char *grown =
      nxc_arena_printf(binding->arena,
                       "this is for %s, which grew out of %s%s: what it has of its own is not "
                       "known here, and the rest is judged as %s judges it",
                       relative->name, system, task_of(binding), system);
  const char *past = nxc_arena_printf(binding->arena,
                                      "this is for %s: it is judged as version %s, the oldest that is known "
                                      "here",
                                      relative->name, binding->version);
  const char *named = nxc_arena_printf(
      binding->arena,
      "name the version that it is for now, such as --dialect %s@0.16: it says what is no more",
      relative->system);
  nxc_sink_report(binding->sink,
                  &(nxc_finding){
                      .id = relative->past ? "NX1325" : "NX1324",
                      .severity = binding->for_nxrun && !runs ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING,
                      .at = nxc_node_span(at),
                      .fix = relative->past ? named : "have that code itself judge what is its own",
                      .remarks = remarks,
                      .n_remarks = n_remarks,
                      .message = relative->past ? past : grown,
                  });
}

void nxc_binding_report_relative(nxc_binding *binding) {
  const nxc_relative *relative = binding->relative;
  const nxc_node *root = binding->document->root, *first = NULL;
  const char *names = "", *counted = "", *unknown = "";
  hurdle worst = IS_INERT;
  for (size_t i = 0; relative != NULL && i < root->n_children; i++) {
    const nxc_node *node = root->children[i];
    const nxc_relative_meaning *means = meaning_of(binding, node, NULL);
    if (means != NULL && (strcmp(means->value, "?") != 0 || node->kind == NXC_NODE_MAP))
      counted = listed(binding, counted, node->key);
    const char *own = own_of(binding, node);
    if (own == NULL) continue;
    names = listed(binding, names, own);
    hurdle one = hurdle_of(binding, node, own, &unknown);
    if (one > worst) worst = one;
    if (first == NULL || !marks(relative, first)) first = node;
  }
  if (first == NULL) return;
  size_t n_remarks;
  const nxc_remark *remarks = remarks_of(binding, names, counted, worst, unknown, &n_remarks);
  report_relative(binding, first, worst != IS_UNKNOWN, remarks, n_remarks);
}

bool nxc_binding_report_past(nxc_binding *binding, const nxc_node *node, const char *name, bool open) {
  const nxc_past_option *past = nxc_past_option_find(binding->dialect->name, name);
  if (past == NULL) return false;
  bool gone = past->now[0] == '\0';
  nxc_repair repair = gone ? nxc_repair_remove(binding->arena, node, false)
                           : nxc_binding_rename(binding, node, name, past->now, false);
  const char *fix = gone ? "leave it out" : nxc_arena_printf(binding->arena, "write %s", past->now);
  nxc_severity severity = open ? NXC_SEVERITY_WARNING : NXC_SEVERITY_ERROR;
  nxc_report_repair(binding->sink, open ? "NX1302" : "NX1301", severity, nxc_node_span(node), fix, repair,
                    "unknown key %s; %s had it until %s", name, nxc_system_name(past->system),
                    month_of(binding->arena, past->until));
  return true;
}
