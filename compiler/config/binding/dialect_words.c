/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/binding/dialect_words.h"

#include "compiler/config/binding/dialect.h"

#include <string.h>

static const struct {
  const char *dialect, *system;
} systems[] = {{"megatron", "Megatron-LM"},
               {"neox", "GPT-NeoX"},
               {"nxdt", "NxDT"},
               {"xorl", "xorl"},
               {"hf_config", "Hugging Face's config.json"}};
enum { N_SYSTEMS = sizeof systems / sizeof *systems };

const char *nxc_system_name(const char *dialect) {
  for (size_t i = 0; i < N_SYSTEMS; i++)
    if (strcmp(systems[i].dialect, dialect) == 0) return systems[i].system;
  return NULL;
}

static bool same_letter(char a, char b) {
  return a == b || (a != '\0' && b != '\0' && strchr("-_", a) && strchr("-_", b));
}

bool nxc_same_folded(const char *a, const char *b) {
  while (*a != '\0' && same_letter(*a, *b)) a++, b++;
  return *a == *b;
}

/* Last steps without a joint (name, path, seed) mean something everywhere. */
static bool is_telling(const char *name) {
  return strpbrk(nxc_name_last(name), "-_") != NULL;
}

static bool is_section(const nxc_dialect *dialect, const nxc_option_row *row) {
  return row->domain.type == NXC_TYPE_MAP || row->domain.type == NXC_TYPE_ANY ||
         nxc_dialect_has_section(dialect, row->name);
}

/* How much of two names must be the same: all, all of the option's, the last step of each. */
enum { LAST_STEPS, WHOLE_OPTION, WHOLE_NAMES };

static const nxc_option_row *find_in(const nxc_dialect *dialect, const char *name, bool map, int alike) {
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    if (!nxc_same_folded(alike >= WHOLE_OPTION ? row->name : nxc_name_last(row->name),
                         alike == WHOLE_NAMES ? name : nxc_name_last(name)))
      continue;
    if (row->alias_of != NULL) row = nxc_option_find(dialect, row->alias_of);
    if (is_section(dialect, row) || !map) return row;
  }
  return NULL;
}

/* How it sets this; NULL: it does not. */
static const char *expression_for(const nxc_option_row *row, nxc_setting_id id) {
  for (size_t i = 0; i < row->n_sets; i++)
    if (row->sets[i].setting == id) return row->sets[i].expression;
  return NULL;
}

/* How many letters two names have in common at the beginning, or the end, of their last steps. */
static size_t likeness(const char *a, const char *b) {
  a = nxc_name_last(a), b = nxc_name_last(b);
  size_t first = 0, last = 0, n_a = strlen(a), n_b = strlen(b);
  while (first < n_a && same_letter(a[first], b[first])) first++;
  while (last < n_a && last < n_b && same_letter(a[n_a - last - 1], b[n_b - last - 1])) last++;
  return first > last ? first : last;
}

/* What kind a value is, whatever its bounds. */
static const char kinds[] = {
    [NXC_TYPE_INT] = 'n',      [NXC_TYPE_FLOAT] = 'n',      [NXC_TYPE_INT_OR_FLOAT] = 'n',
    [NXC_TYPE_BOOL] = 'b',     [NXC_TYPE_BIT] = '1',        [NXC_TYPE_STR] = 't',
    [NXC_TYPE_PATH] = 'p',     [NXC_TYPE_ENUM] = 'e',       [NXC_TYPE_LIST] = 's',
    [NXC_TYPE_LIST_INT] = 'l', [NXC_TYPE_LIST_FLOAT] = 'l', [NXC_TYPE_LIST_STR] = 's',
    [NXC_TYPE_MAP] = 'm',      [NXC_TYPE_ANY] = '*'};

/* Whether an expression turns a number or a switch into another, and not in some cases alone. */
static bool computes(const char *expression) {
  static const char else_value[] = ": value";
  size_t n = strlen(expression), n_else = sizeof else_value - 1;
  if (n > n_else && strcmp(expression + n - n_else, else_value) == 0) return false;
  static const char *const signs[] = {"not value", "value != true", "value /", "value *", "value +",
                                      "value -",   "/ value",       "* value", "+ value", "- value"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (strstr(expression, signs[i]) != NULL) return true;
  return false;
}

/* Whether a text is what a setting becomes, if not always: "value", "value == '' ? null : value". */
static bool passes_text(const char *expression) {
  static const char word[] = "value";
  for (const char *at = expression; (at = strstr(at, word)) != NULL; at++) {
    const char *end = at + sizeof word - 1;
    bool begins = at == expression || (at > expression + 1 && at[-1] == ' ' && strchr("?:", at[-2]));
    if (begins && (*end == '\0' || strncmp(end, " :", 2) == 0)) return true;
  }
  return false;
}

/* What a word says: a setting, from a value of a kind. */
typedef struct meaning {
  nxc_setting_id id;
  const char *expression;
  char kind;
} meaning;

static meaning meaning_of(nxc_setting_id id, const nxc_domain *domain, const char *expression) {
  return (meaning){id, expression, kinds[domain->type]};
}

static bool same_kind(char a, char b) {
  return a == b || a == '*' || b == '*' || (a == 't' && strchr("ep", b)) || (b == 't' && strchr("ep", a));
}

static bool keeps_value(meaning m) {
  if (m.kind != 'n' && m.kind != 'b') return passes_text(m.expression);
  return m.kind == kinds[nxc_setting_rows[m.id].domain.type] && !computes(m.expression);
}

/* Each system has words and sections of its own; of all else the same value must mean the same. */
static bool say_the_same(meaning a, meaning b) {
  if (!same_kind(a.kind, b.kind)) return false;
  size_t n = strcspn(a.expression, ":");
  bool same = n == strcspn(b.expression, ":") && strncmp(a.expression, b.expression, n) == 0;
  return same || strchr("em*", a.kind) || strchr("e*", b.kind) || (keeps_value(a) && keeps_value(b));
}

/* Of lists and sections nobody knows how. */
static bool say_it_otherwise(meaning a, meaning b) {
  static const char single[] = "nb1et";
  return strchr(single, a.kind) != NULL && strchr(single, b.kind) != NULL;
}

/* The option that says this, or, loosely, says it with another value; among several the one that is most like
 * the foreign word, then the shortest. */
static const char *option_for(const nxc_dialect *dialect, const char *version, const char *foreign,
                              meaning meant, bool loosely) {
  const nxc_setting_row *setting = &nxc_setting_rows[meant.id];
  if (strcmp(dialect->name, "nx") == 0) {
    const meaning own = meaning_of(meant.id, &setting->domain, "value");
    return (loosely ? say_it_otherwise : say_the_same)(own, meant) ? setting->path : NULL;
  }
  const char *best = NULL;
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    const char *expression = expression_for(row, meant.id);
    bool here = expression && !row->alias_of && nxc_in_version(row->versions, row->n_versions, version);
    if (!here) continue;
    const meaning own = meaning_of(meant.id, &row->domain, expression);
    bool namesake =
        same_kind(own.kind, meant.kind) && nxc_same_folded(nxc_name_last(row->name), nxc_name_last(foreign));
    if (!namesake && !(loosely ? say_it_otherwise : say_the_same)(own, meant)) continue;
    size_t like = likeness(row->name, foreign), known = best ? likeness(best, foreign) : 0;
    if (best == NULL || like > known || (like == known && strlen(row->name) < strlen(best))) best = row->name;
  }
  return best;
}

static bool is_word_of_nx(const nxc_dialect *dialect, const char *version, const char *name, bool map,
                          nxc_foreign_word *word) {
  if (strcmp(dialect->name, "nx") == 0) return false;
  size_t n_bytes = strlen(name);
  for (size_t i = 0; i < NX_N_SETTINGS; i++) {
    const nxc_setting_row *setting = &nxc_setting_rows[i];
    const char *path = setting->path;
    bool same = map ? strncmp(path, name, n_bytes) == 0 && path[n_bytes] == '.' : strcmp(path, name) == 0;
    if (!same) continue;
    const char *here =
        option_for(dialect, version, path, meaning_of((nxc_setting_id)i, &setting->domain, "value"), false);
    *word = (nxc_foreign_word){"nx", name, here, NULL};
    if (!map || word->here != NULL) return true;
  }
  return false;
}

/* What the row's first setting with a name here is called here; of a map, one that it holds. */
static const char *name_here(const nxc_dialect *other, const nxc_option_row *row, const nxc_dialect *dialect,
                             const char *version, bool map) {
  const char *here = NULL;
  for (size_t j = 0; here == NULL && j < row->n_sets; j++) {
    const nxc_assignment *set = &row->sets[j];
    here = option_for(dialect, version, row->name, meaning_of(set->setting, &row->domain, set->expression),
                      false);
  }
  size_t i, end = nxc_dialect_section(other, row->name, &i);
  for (; map && here == NULL && i < end; i++)
    here = name_here(other, &other->options[i], dialect, version, true);
  return here;
}

/* Where a word says one thing alone, the option that says it in another way. */
static const char *otherwise_here(const nxc_option_row *row, const nxc_dialect *dialect,
                                  const char *version) {
  if (row == NULL || row->n_sets != 1) return NULL;
  const meaning meant = meaning_of(row->sets[0].setting, &row->domain, row->sets[0].expression);
  return option_for(dialect, version, row->name, meant, true);
}

bool nxc_foreign_word_find(const nxc_dialect *dialect, const char *version, const char *name, bool map,
                           nxc_foreign_word *word) {
  if (is_word_of_nx(dialect, version, name, map, word)) return true;
  bool found = false; /* rather one of a system whose word says something here */
  for (int alike = WHOLE_NAMES; alike >= LAST_STEPS && !found; alike--) {
    for (size_t i = 0; i < N_SYSTEMS && (alike == WHOLE_NAMES || is_telling(name)); i++) {
      const nxc_dialect *other = nxc_dialect_find(systems[i].dialect);
      if (other == NULL || other == dialect) continue;
      const nxc_option_row *row = find_in(other, name, map, alike);
      const char *here = row ? name_here(other, row, dialect, version, map) : NULL;
      bool known = row != NULL || (map && nxc_dialect_has_section(other, name));
      if (known && (!found || here != NULL))
        *word = (nxc_foreign_word){systems[i].system, row ? row->name : name, here,
                                   here ? NULL : otherwise_here(row, dialect, version)};
      found = found || known;
      if (here != NULL) return true;
    }
  }
  return found;
}
