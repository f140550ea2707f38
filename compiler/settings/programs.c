/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/programs.h"

#include <assert.h>
#include <fnmatch.h>
#include <string.h>

static const nxc_program_row programs[] = {
#define PROGRAM(system, pattern, use, kind, what, model, own) \
  {#system, pattern, NXC_PROGRAM_##use, kind, what, model, own},
#include "schema/programs.def"
#undef PROGRAM
};

static const struct group {
  const char *name, *options;
} groups[] = {
#define OPTIONS(name, options) {#name, options},
#include "schema/program_options.def"
#undef OPTIONS
};

const nxc_program_row *nxc_program_row_find(const char *name) {
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    if (fnmatch(programs[i].pattern, name, 0) == 0) return &programs[i];
  return NULL;
}

const char *nxc_program_of_kind(const char *system, const char *kind) {
  for (size_t i = 0; i < sizeof programs / sizeof *programs && *kind != '\0'; i++) {
    const nxc_program_row *row = &programs[i];
    const char *name = row->pattern + strspn(row->pattern, "*");
    bool alone = strpbrk(name, "*/ ") == NULL && *row->own == '\0';
    if (alone && row->use == NXC_PROGRAM_TRAINS && strcmp(row->system, system) == 0 &&
        strcmp(row->kind, kind) == 0)
      return name;
  }
  return NULL;
}

/* The next of the words that blanks part, its length in *n_bytes; NULL: none is left. */
static const char *next_word(const char **at, size_t *n_bytes) {
  const char *word = *at + strspn(*at, " ");
  *n_bytes = strcspn(word, " ");
  *at = word + *n_bytes;
  return *n_bytes > 0 ? word : NULL;
}

static const char *options_of(const char *name, size_t n_bytes) {
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    if (strlen(groups[i].name) == n_bytes && memcmp(groups[i].name, name, n_bytes) == 0)
      return groups[i].options;
  assert(n_bytes == 1 && *name == '*');
  return "";
}

static nxc_type type_of(const char *text, size_t n_bytes) {
  static const struct {
    const char *name;
    nxc_type type;
  } types[] = {{"switch", NXC_TYPE_BOOL},
               {"int", NXC_TYPE_INT},
               {"float", NXC_TYPE_FLOAT},
               {"list", NXC_TYPE_LIST}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strlen(types[i].name) == n_bytes && memcmp(types[i].name, text, n_bytes) == 0) return types[i].type;
  return NXC_TYPE_STR;
}

/* What the option's row says behind its name, its length in *n_bytes; NULL: it has no such option. */
static const char *find_option(const nxc_program_row *program, const char *option, size_t *n_bytes) {
  const char *own = program->own, *group, *word;
  size_t n_group, n_word, n_option = strlen(option);
  while ((group = next_word(&own, &n_group)) != NULL) {
    const char *options = options_of(group, n_group);
    while ((word = next_word(&options, &n_word)) != NULL) {
      bool starts = n_word >= n_option && memcmp(word, option, n_option) == 0, alone = n_word == n_option;
      if (!starts || (!alone && word[n_option] != ':')) continue;
      *n_bytes = alone ? 0 : n_word - n_option - 1;
      return word + n_option + !alone;
    }
  }
  return NULL;
}

bool nxc_program_row_has(const nxc_program_row *program, const char *option) {
  size_t n_type;
  return find_option(program, option, &n_type) != NULL;
}

nxc_domain nxc_program_row_domain(nxc_arena *arena, const nxc_program_row *program, const char *option) {
  size_t n_type;
  const char *type = find_option(program, option, &n_type);
  assert(type != NULL);
  if (memchr(type, '|', n_type) == NULL) return (nxc_domain){.type = type_of(type, n_type)};
  nxc_domain domain = {.type = NXC_TYPE_ENUM};
  const char **words = NULL;
  for (const char *end = type + n_type, *next = type; next <= end; next++) {
    const char *bar = memchr(next, '|', (size_t)(end - next));
    words = nxc_arena_grow(arena, words, domain.n_values, sizeof *words);
    words[domain.n_values++] = nxc_arena_strndup(arena, next, (size_t)((bar ? bar : end) - next));
    next = bar ? bar : end;
  }
  domain.values = words;
  return domain;
}

bool nxc_program_row_has_any(const nxc_program_row *program) {
  return strchr(program->own, '*') != NULL;
}

size_t nxc_program_row_names(nxc_arena *arena, const nxc_program_row *program, const char ***names) {
  const char *own = program->own, *group, *word;
  size_t n_group, n_word, n_names = 0;
  *names = NULL;
  while ((group = next_word(&own, &n_group)) != NULL) {
    const char *options = options_of(group, n_group);
    while ((word = next_word(&options, &n_word)) != NULL) {
      const char *colon = memchr(word, ':', n_word);
      *names = nxc_arena_grow(arena, *names, n_names, sizeof **names);
      (*names)[n_names++] = nxc_arena_strndup(arena, word, colon ? (size_t)(colon - word) : n_word);
    }
  }
  return n_names;
}

const nxc_program_row *nxc_program_row_of(nxc_program_use use, const char *const *options, size_t n_options) {
  const nxc_program_row *best = NULL;
  size_t most = 0;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    size_t n_had = 0;
    if (programs[i].use != use) continue;
    for (size_t k = 0; k < n_options; k++) n_had += nxc_program_row_has(&programs[i], options[k]);
    if (n_had <= most) continue;
    most = n_had;
    best = &programs[i];
  }
  return best;
}

const nxc_program_row *nxc_program_row_with(const char *system, const char *const *options,
                                            size_t n_options) {
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    size_t n_had = 0;
    if (programs[i].use != NXC_PROGRAM_SHARES || strcmp(programs[i].system, system) != 0) continue;
    for (size_t k = 0; k < n_options; k++) n_had += nxc_program_row_has(&programs[i], options[k]);
    if (n_options > 0 && n_had == n_options) return &programs[i];
  }
  return NULL;
}
