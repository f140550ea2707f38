/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/catalogue.h"

#include <stdlib.h>
#include <string.h>

const nxc_dialect *nxc_dialect_find(const char *name) {
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    if (strcmp(nxc_dialects[i].name, name) == 0) return &nxc_dialects[i];
  }
  return NULL;
}

static const nxc_option_row *find_exact(const nxc_dialect *dialect, const char *name) {
  size_t low = 0, high = dialect->n_options;
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(name, dialect->names + dialect->name_at[middle]);
    if (order == 0) return &dialect->options[middle];
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return NULL;
}

const nxc_fixed_row *nxc_fixed_find(const nxc_dialect *dialect, nxc_setting_id id) {
  for (size_t i = 0; i < dialect->n_fixed; i++)
    if (dialect->fixed[i].setting == id) return &dialect->fixed[i];
  return NULL;
}

const nxc_option_row *nxc_option_find(const nxc_dialect *dialect, const char *name) {
  enum { NAME_MAX_BYTES = 256 };
  const nxc_option_row *row = find_exact(dialect, name);
  char section[NAME_MAX_BYTES + 3];
  size_t n_bytes = strlen(name);
  if (row != NULL || n_bytes > NAME_MAX_BYTES) return row;
  memcpy(section, name, n_bytes);
  while (row == NULL && n_bytes > 0) {
    while (n_bytes > 0 && section[n_bytes - 1] != '.') n_bytes--;
    if (n_bytes == 0) break;
    memcpy(section + n_bytes, "*", 2);
    row = find_exact(dialect, section);
    n_bytes--;
  }
  return row;
}

/* Above 0: later than the version that ends there. Numbers count as such: 0.9 is before 0.10. What is named
 * by a word is later than every number. */
static int beyond(const char *version, const char *other, const char *end) {
  while (*version != '\0' && other < end) {
    size_t n = strspn(version, "0123456789"), n_other = strspn(other, "0123456789");
    if (n > 0 && n_other > 0 && n != n_other) return n > n_other ? 1 : -1;
    if (*version != *other) return (unsigned char)*version - (unsigned char)*other;
    version++, other++;
  }
  return *version != '\0' ? 1 : other < end ? -1 : 0;
}

/* One version, or those of a span: "2024-03-06..", "..2025-05-08", or both ends. */
static bool has_version(const char *span, const char *version) {
  const char *dots = strstr(span, "..");
  if (dots == NULL) return strcmp(span, version) == 0;
  const char *end = dots + strlen(dots);
  bool late_enough = dots == span || beyond(version, span, dots) >= 0;
  return late_enough && (dots[2] == '\0' || beyond(version, dots + 2, end) <= 0);
}

bool nxc_in_version(const char *const *versions, size_t n_versions, const char *version) {
  for (size_t i = 0; i < n_versions && version != NULL; i++)
    if (has_version(versions[i], version)) return true;
  return n_versions == 0 || version == NULL;
}

static bool is_past(const char *span, const char *version) {
  const char *dots = strstr(span, "..");
  return dots != NULL && dots[2] != '\0' && beyond(version, dots + 2, dots + strlen(dots)) > 0;
}

bool nxc_option_is_past(const nxc_option_row *row, const char *version) {
  size_t n_past = 0;
  for (size_t i = 0; i < row->n_versions && version != NULL; i++)
    n_past += is_past(row->versions[i], version);
  return n_past > 0 && n_past == row->n_versions;
}

bool nxc_rule_is_of(const nxc_rule_row *rule, const char *dialect, const char *version) {
  if (rule->dialect == NULL)
    return rule->except == NULL || dialect == NULL || strcmp(rule->except, dialect) != 0;
  return dialect != NULL && strcmp(rule->dialect, dialect) == 0 &&
         nxc_in_version(rule->versions, rule->n_versions, version);
}

const nxc_versioned *nxc_option_word(const nxc_option_row *row, const char *word) {
  for (size_t i = 0; i < row->n_words_in; i++)
    if (strcmp(row->words_in[i].value->text, word) == 0) return &row->words_in[i];
  return NULL;
}

const nxc_value *nxc_option_default(const nxc_option_row *row, const char *version) {
  for (size_t i = 0; i < row->n_defaults_in && version != NULL; i++)
    if (nxc_in_version(row->defaults_in[i].versions, row->defaults_in[i].n_versions, version))
      return row->defaults_in[i].value;
  return row->initial;
}

static const char *show_span(nxc_arena *arena, const char *span) {
  const char *dots = strstr(span, "..");
  if (dots == NULL) return span;
  if (dots == span) return nxc_arena_printf(arena, "until %s", dots + 2);
  const char *first = nxc_arena_strndup(arena, span, (size_t)(dots - span));
  return dots[2] == '\0' ? nxc_arena_printf(arena, "since %s", first)
                         : nxc_arena_printf(arena, "%s to %s", first, dots + 2);
}

const char *nxc_versions_show(nxc_arena *arena, const char *const *versions, size_t n_versions) {
  const char *text = "";
  for (size_t i = 0; i < n_versions; i++) {
    const char *joint = i == 0 ? "" : i + 1 < n_versions ? ", " : " and ";
    text = nxc_arena_printf(arena, "%s%s%s", text, joint, show_span(arena, versions[i]));
  }
  return text;
}

const char *nxc_version_of_span(nxc_arena *arena, const char *span) {
  const char *dots = strstr(span, "..");
  return dots == NULL      ? span
         : dots[2] != '\0' ? dots + 2
                           : nxc_arena_strndup(arena, span, (size_t)(dots - span));
}

bool nxc_name_ends_in(const char *name, const char *end) {
  size_t n_name = strlen(name), n_end = strlen(end);
  return n_name > n_end && name[n_name - n_end - 1] == '.' && strcmp(name + n_name - n_end, end) == 0;
}

static int compare_rule(const void *id, const void *row) {
  return strcmp(id, ((const nxc_rule_row *)row)->id);
}

const nxc_rule_row *nxc_rule_find(const char *id) {
  return bsearch(id, nxc_rules, nxc_n_rules, sizeof *nxc_rules, compare_rule);
}

static int compare_diagnostic(const void *id, const void *row) {
  return strcmp(id, ((const nxc_diagnostic_row *)row)->id);
}

const nxc_diagnostic_row *nxc_diagnostic_find(const char *id) {
  return bsearch(id, nxc_diagnostics, nxc_n_diagnostics, sizeof *nxc_diagnostics, compare_diagnostic);
}

const char *nxc_type_name(nxc_type type) {
  static const char *const names[] = {
      [NXC_TYPE_INT] = "an integer",
      [NXC_TYPE_FLOAT] = "a number",
      [NXC_TYPE_INT_OR_FLOAT] = "an integer or a number with a fraction",
      [NXC_TYPE_BOOL] = "true or false",
      [NXC_TYPE_BIT] = "'0' or '1' in quotes",
      [NXC_TYPE_STR] = "text",
      [NXC_TYPE_PATH] = "a path",
      [NXC_TYPE_ENUM] = "one of a few words",
      [NXC_TYPE_LIST] = "a list",
      [NXC_TYPE_LIST_INT] = "a list of integers",
      [NXC_TYPE_LIST_FLOAT] = "a list of numbers",
      [NXC_TYPE_LIST_STR] = "a list of texts",
      [NXC_TYPE_MAP] = "a section",
      [NXC_TYPE_ANY] = "anything",
  };
  return names[type];
}

const char *nxc_message_readable(nxc_arena *arena, const char *text) {
  const char *shown = "";
  while (text != NULL) {
    size_t n_plain = strcspn(text, "{");
    shown = nxc_arena_printf(arena, "%s%.*s", shown, (int)n_plain, text);
    if (text[n_plain] == '\0') break;
    text += n_plain + 1;
    int n_inside = (int)strcspn(text, "}");
    if (*text == '=') shown = nxc_arena_printf(arena, "%s<%.*s>", shown, n_inside - 1, text + 1);
    else shown = nxc_arena_printf(arena, "%s%.*s", shown, n_inside - (*text == '@'), text + (*text == '@'));
    text += n_inside + 1;
  }
  return shown;
}

const char *nxc_changes_name(nxc_changes changes) {
  static const char *const names[] = {
      [NXC_CHANGES_SETTINGS] = "changes its settings alone",
      [NXC_CHANGES_ESTIMATE] = "estimated alone",
      [NXC_CHANGES_OUTSIDE] = "not part of the training",
      [NXC_CHANGES_PLACE] = "where it runs",
      [NXC_CHANGES_NOTHING_KEPT] = "restart-safe",
      [NXC_CHANGES_DATA_ORDER] = "changes data order",
      [NXC_CHANGES_OPTIMIZER_STATE] = "changes optimizer state",
      [NXC_CHANGES_UNFOLLOWED] = "changes the training, by an option that nxcfg does not follow further",
      [NXC_CHANGES_CHECKPOINT] = "incompatible checkpoint",
  };
  return names[changes];
}
