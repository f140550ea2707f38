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

static bool same_folded(const char *a, const char *b) {
  for (; *a != '\0' && *b != '\0'; a++, b++)
    if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b))) return false;
  return *a == *b;
}

static const char *last_part(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot ? dot + 1 : name;
}

/* Last steps without a joint (name, path, seed) mean something everywhere. */
static bool is_telling(const char *name) {
  return strpbrk(last_part(name), "-_") != NULL;
}

static bool is_section(const nxc_dialect *dialect, const nxc_option_row *row) {
  size_t first;
  return row->domain.type == NXC_TYPE_MAP || row->domain.type == NXC_TYPE_ANY ||
         nxc_dialect_section(dialect, row->name, &first) > first;
}

/* How much of two names must be the same: all, all of the option's, the last step of each. */
enum { LAST_STEPS, WHOLE_OPTION, WHOLE_NAMES };

static const nxc_option_row *find_in(const nxc_dialect *dialect, const char *name, bool map, int alike) {
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    if (!same_folded(alike >= WHOLE_OPTION ? row->name : last_part(row->name),
                     alike == WHOLE_NAMES ? name : last_part(name)))
      continue;
    if (row->alias_of != NULL) row = nxc_option_find(dialect, row->alias_of);
    if (is_section(dialect, row) || !map) return row;
  }
  return NULL;
}

static bool sets(const nxc_option_row *row, nxc_setting_id id) {
  for (size_t i = 0; i < row->n_sets; i++)
    if (row->sets[i].setting == id) return true;
  return false;
}

/* How many letters two names have in common at the beginning of their last steps. */
static size_t likeness(const char *a, const char *b) {
  a = last_part(a), b = last_part(b);
  size_t n = 0;
  while (a[n] != '\0' && (a[n] == b[n] || (strchr("-_", a[n]) && b[n] != '\0' && strchr("-_", b[n])))) n++;
  return n;
}

/* The option that sets this; among several the one that is most like the foreign word, then the shortest. */
static const char *option_for(const nxc_dialect *dialect, const char *version, nxc_setting_id id,
                              const char *foreign) {
  if (strcmp(dialect->name, "nx") == 0) return nxc_setting_rows[id].path;
  const char *best = NULL;
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    bool here = row->alias_of == NULL && nxc_in_version(row->versions, row->n_versions, version);
    if (!here || !sets(row, id)) continue;
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
    const char *path = nxc_setting_rows[i].path;
    bool same = map ? strncmp(path, name, n_bytes) == 0 && path[n_bytes] == '.' : strcmp(path, name) == 0;
    if (!same) continue;
    *word = (nxc_foreign_word){"nx", name, option_for(dialect, version, (nxc_setting_id)i, path)};
    if (!map || word->here != NULL) return true;
  }
  return false;
}

/* What the row's first setting with a name here is called here; of a section, one that it holds. */
static const char *name_here(const nxc_dialect *other, const nxc_option_row *row, const nxc_dialect *dialect,
                             const char *version) {
  const char *here = NULL;
  for (size_t j = 0; here == NULL && j < row->n_sets; j++)
    here = option_for(dialect, version, row->sets[j].setting, row->name);
  size_t i, end = nxc_dialect_section(other, row->name, &i);
  for (; here == NULL && i < end; i++) here = name_here(other, &other->options[i], dialect, version);
  return here;
}

/* A section that has no row of its own. */
static bool is_bare_section(const nxc_dialect *other, const char *name) {
  size_t first;
  return nxc_dialect_section(other, name, &first) > first;
}

bool nxc_foreign_word_find(const nxc_dialect *dialect, const char *version, const char *name, bool map,
                           nxc_foreign_word *word) {
  if (is_word_of_nx(dialect, version, name, map, word)) return true;
  for (int alike = WHOLE_NAMES; alike >= LAST_STEPS; alike--) {
    for (size_t i = 0; i < N_SYSTEMS && (alike == WHOLE_NAMES || is_telling(name)); i++) {
      const nxc_dialect *other = nxc_dialect_find(systems[i].dialect);
      if (other == NULL || other == dialect) continue;
      const nxc_option_row *row = find_in(other, name, map, alike);
      const char *here = row ? name_here(other, row, dialect, version) : NULL;
      *word = (nxc_foreign_word){systems[i].system, row ? row->name : name, here};
      if (row != NULL || (map && is_bare_section(other, name))) return true;
    }
  }
  return false;
}
