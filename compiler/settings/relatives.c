/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/relatives.h"

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/diagnostics/nearest.h"
#include "compiler/hash.h"

#include <stddef.h>
#include <string.h>

static const nxc_relative relatives[] = {
#define RELATIVE(system, name, marks, own) {#system, name, marks, own, false},
#include "schema/relatives.def"
};

typedef struct sign {
  const char *name, *option, *word;
} sign;

static const sign signs[] = {
#define RELATIVE_SIGN(system, name, option, word) {name, option, word},
#include "schema/relatives.def"
};

static const struct {
  const char *name, *option, *word, *known;
} relative_words[] = {
#define RELATIVE_WORD(name, option, word, known) {name, option, word, known},
#include "schema/relatives.def"
};

static const struct {
  const char *name, *option, *word, *freed;
} frees[] = {
#define RELATIVE_FREES(name, option, word, freed) {name, option, word, freed},
#include "schema/relatives.def"
};

static const nxc_relative_meaning meanings[] = {
#define RELATIVE_MEANS(name, option, word, setting, value) {name, option, word, setting, value},
#include "schema/relatives.def"
};

typedef struct named_words {
  const char *name, *words;
} named_words;

static const named_words listed[] = {
#define RELATIVE_LISTS(name, options) {name, options},
#include "schema/relatives.def"
};

static const named_words numbers[] = {
#define RELATIVE_NUMBERS(name, options) {name, options},
#include "schema/relatives.def"
};

static const named_words lacked[] = {
#define RELATIVE_LACKS(name, options) {name, options},
#include "schema/relatives.def"
};

static const char *const old[] = {
#define RELATIVE_OLD(name) name,
#include "schema/relatives.def"
};

static const named_words ran[] = {
#define RELATIVE_PROGRAMS(name, programs) {name, programs},
#include "schema/relatives.def"
};

typedef struct option_words {
  const char *name, *option, *words;
} option_words;

static const option_words spared[] = {
#define RELATIVE_SPARES(name, option, rules) {name, option, rules},
#include "schema/relatives.def"
};

static const option_words inert_beside[] = {
#define RELATIVE_INERT_BESIDE(name, option, others) {name, option, others},
#include "schema/relatives.def"
};

static const option_words said_beside[] = {
#define RELATIVE_SAID_BESIDE(name, option, others) {name, option, others},
#include "schema/relatives.def"
};

static const option_words tasks[] = {
#define RELATIVE_TASK(name, option, task) {name, option, task},
#include "schema/relatives.def"
};

static const named_words inert[] = {
#define RELATIVE_INERT(name, options) {name, options},
#include "schema/relatives.def"
};

static const named_words said[] = {
#define RELATIVE_SAID(name, options) {name, options},
#include "schema/relatives.def"
};

static const named_words past_inert[] = {
#define PAST_INERT(system, options) {#system, options},
#include "schema/relatives.def"
};

static const nxc_past_option past_options[] = {
#define PAST(system, option, until, now) {#system, option, until, now},
#include "schema/relatives.def"
};

static const struct {
  const char *system, *month, *options;
} born[] = {
#define BORN(system, month, options) {#system, month, options},
#include "schema/relatives.def"
};

/* Whether it is one of the words that blanks part. */
static bool is_among(const char *words, const char *word) {
  size_t n_word = strlen(word);
  for (const char *at = words; n_word > 0 && (at = strstr(at, word)) != NULL; at++) {
    bool begins = at == words || at[-1] == ' ', ends = at[n_word] == '\0' || at[n_word] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

/* Whether it is one of them, or begins as one that ends in * does. */
static bool is_one_of(const char *words, const char *word) {
  for (const char *end = words; (end = strchr(end, '*')) != NULL; end++) {
    const char *begin = end;
    while (begin > words && begin[-1] != ' ') begin--;
    if (strncmp(begin, word, (size_t)(end - begin)) == 0) return true;
  }
  return is_among(words, word);
}

enum { N_SIGNS = sizeof signs / sizeof *signs };

/* Found once, since a file may have many options. */
typedef struct own_signs {
  const sign *items[N_SIGNS];
  size_t n;
} own_signs;

static void signs_find(const nxc_relative *relative, own_signs *own) {
  own->n = 0;
  for (size_t i = 0; i < N_SIGNS; i++)
    if (strcmp(signs[i].name, relative->name) == 0) own->items[own->n++] = &signs[i];
}

static bool is_marked(const nxc_relative *relative, const own_signs *own, const char *option,
                      const char *word) {
  bool marked = is_among(relative->marks, option);
  for (size_t i = 0; i < own->n && !marked; i++)
    marked = strcmp(own->items[i]->option, option) == 0 && strcmp(own->items[i]->word, word) == 0;
  return marked;
}

bool nxc_relative_is_marked(const nxc_relative *relative, const char *option, const char *word) {
  own_signs own;
  signs_find(relative, &own);
  return is_marked(relative, &own, option, word);
}

/* How well it tells a file: by the options that both have and the system has not, and where those are as many
 * as another's, by a mark. A mark of another may be an option of its own that the other has too. */
static size_t fit_of(const nxc_relative *relative, const nxc_relative_given *given, size_t n_given) {
  own_signs own;
  size_t n = 0;
  bool any = false;
  signs_find(relative, &own);
  for (size_t i = 0; i < n_given; i++) {
    bool marked = is_marked(relative, &own, given[i].option, given[i].word);
    any = any || marked;
    n += marked || (!given[i].of_system && nxc_relative_has(relative, given[i].option));
  }
  return 2 * n + any;
}

/* Options that may be marks, by their hashes: most files have thousands of others, or none. */
typedef struct may_mark {
  bool has[1 << 14];
} may_mark;

static bool *may_mark_at(may_mark *may, const char *option, size_t n_bytes) {
  return &may->has[nxc_hash_bytes(option, n_bytes) % (sizeof may->has / sizeof *may->has)];
}

static void may_mark_add(may_mark *may, const char *words) {
  for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
    size_t n = strcspn(at, " ");
    *may_mark_at(may, at, n) = true;
    at += n;
  }
}

static bool is_any_marked(const char *system, const nxc_relative_given *given, size_t n_given) {
  may_mark may = {0};
  bool marked = false;
  for (size_t i = 0; i < sizeof relatives / sizeof *relatives; i++)
    if (strcmp(relatives[i].system, system) == 0) may_mark_add(&may, relatives[i].marks);
  for (size_t i = 0; i < N_SIGNS; i++) may_mark_add(&may, signs[i].option);
  for (size_t i = 0; i < n_given && !marked; i++) {
    if (!*may_mark_at(&may, given[i].option, strlen(given[i].option))) continue;
    for (size_t k = 0; k < sizeof relatives / sizeof *relatives && !marked; k++)
      marked = strcmp(relatives[k].system, system) == 0 &&
               nxc_relative_is_marked(&relatives[k], given[i].option, given[i].word);
  }
  return marked;
}

const nxc_relative *nxc_relative_of_options(const char *system, const nxc_relative_given *given,
                                            size_t n_given) {
  const nxc_relative *found = NULL;
  if (!is_any_marked(system, given, n_given)) return NULL;
  size_t most = 0;
  for (size_t i = 0; i < sizeof relatives / sizeof *relatives; i++) {
    size_t n = strcmp(relatives[i].system, system) == 0 ? fit_of(&relatives[i], given, n_given) : 0;
    if (n > most) found = &relatives[i];
    if (n > most) most = n;
  }
  return found;
}

static bool has_word(const named_words *rows, size_t n_rows, const nxc_relative *relative, const char *word) {
  for (size_t i = 0; i < n_rows; i++)
    if (strcmp(rows[i].name, relative->name) == 0 && is_among(rows[i].words, word)) return true;
  return false;
}

bool nxc_relative_lists(const nxc_relative *relative, const char *option) {
  return has_word(listed, sizeof listed / sizeof *listed, relative, option);
}

bool nxc_relative_takes_numbers(const nxc_relative *relative, const char *option) {
  return has_word(numbers, sizeof numbers / sizeof *numbers, relative, option);
}

bool nxc_relative_is_old(const nxc_relative *relative) {
  bool is_old = relative->past;
  for (size_t i = 0; i < sizeof old / sizeof *old && !is_old; i++)
    is_old = strcmp(old[i], relative->name) == 0;
  return is_old;
}

bool nxc_relative_lacks(const nxc_relative *relative, const char *option) {
  return has_word(lacked, sizeof lacked / sizeof *lacked, relative, option);
}

/* NAME, NAME* or NAME=WORD. */
static bool names_option(const char *words, const char *option, const char *word) {
  size_t n = strlen(option);
  if (is_one_of(words, option)) return true;
  for (const char *at = words; (at = strstr(at, option)) != NULL; at++) {
    const char *value = at + n + 1;
    size_t n_value = strcspn(value, " ");
    if ((at == words || at[-1] == ' ') && at[n] == '=' && strlen(word) == n_value &&
        strncmp(value, word, n_value) == 0)
      return true;
  }
  return false;
}

static bool names_any(const named_words *rows, size_t n_rows, const char *name, const char *option,
                      const char *word) {
  for (size_t i = 0; i < n_rows; i++)
    if (strcmp(rows[i].name, name) == 0 && names_option(rows[i].words, option, word)) return true;
  return false;
}

bool nxc_relative_is_inert(const nxc_relative *relative, const char *option, const char *word) {
  return names_any(inert, sizeof inert / sizeof *inert, relative->name, option, word) ||
         names_any(past_inert, sizeof past_inert / sizeof *past_inert, relative->system, option, word);
}

bool nxc_relative_is_said(const nxc_relative *relative, const char *option, const char *word) {
  return names_any(said, sizeof said / sizeof *said, relative->name, option, word);
}

bool nxc_relative_runs(const nxc_relative *relative, const char *program) {
  return has_word(ran, sizeof ran / sizeof *ran, relative, program);
}

/* What a row says of this option. NULL: there is none. */
static const char *words_of(const option_words *rows, size_t n_rows, const nxc_relative *relative,
                            const char *option) {
  for (size_t i = 0; i < n_rows; i++)
    if (strcmp(rows[i].name, relative->name) == 0 && is_one_of(rows[i].option, option)) return rows[i].words;
  return NULL;
}

const char *nxc_relative_inert_beside(const nxc_relative *relative, const char *option) {
  return words_of(inert_beside, sizeof inert_beside / sizeof *inert_beside, relative, option);
}

const char *nxc_relative_said_beside(const nxc_relative *relative, const char *option) {
  return words_of(said_beside, sizeof said_beside / sizeof *said_beside, relative, option);
}

const char *nxc_relative_task(const nxc_relative *relative, const char *option) {
  return words_of(tasks, sizeof tasks / sizeof *tasks, relative, option);
}

bool nxc_relative_spares(const nxc_relative *relative, const char *option, const char *rule) {
  const char *rules = words_of(spared, sizeof spared / sizeof *spared, relative, option);
  return rules != NULL && is_among(rules, rule);
}

const char *nxc_option_born(const char *system, const char *option) {
  for (size_t i = 0; i < sizeof born / sizeof *born; i++)
    if (strcmp(born[i].system, system) == 0 && is_among(born[i].options, option)) return born[i].month;
  return "";
}

const nxc_past_option *nxc_past_option_find(const char *system, const char *option) {
  for (size_t i = 0; i < sizeof past_options / sizeof *past_options; i++) {
    const nxc_past_option *past = &past_options[i];
    if (past->option[0] == option[0] && strcmp(past->option, option) == 0 &&
        strcmp(past->system, system) == 0)
      return past;
  }
  return NULL;
}

/* They grew out of what the system was. */
bool nxc_relative_has(const nxc_relative *relative, const char *option) {
  return is_among(relative->marks, option) || is_one_of(relative->own, option) ||
         nxc_past_option_find(relative->system, option) != NULL;
}

static size_t add_names(nxc_arena *arena, const char *words, const char **names) {
  size_t n_names = 0;
  for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
    size_t n = strcspn(at, " ");
    if (at[n - 1] != '*') names[n_names++] = nxc_arena_strndup(arena, at, n);
    at += n;
  }
  return n_names;
}

const char *nxc_relative_nearest(nxc_arena *arena, const nxc_relative *relative, const char *option) {
  size_t n_room = strlen(relative->marks) + strlen(relative->own) + 1;
  const char **names = nxc_arena_array(arena, n_room, sizeof *names);
  size_t n_names = add_names(arena, relative->marks, names);
  n_names += add_names(arena, relative->own, names + n_names);
  nxc_near near = nxc_near_find(option, names, n_names);
  return near.certain ? near.name : NULL;
}

const char *nxc_relative_word(const nxc_relative *relative, const char *option, const char *word) {
  for (size_t i = 0; i < sizeof relative_words / sizeof *relative_words; i++)
    if (strcmp(relative_words[i].name, relative->name) == 0 &&
        strcmp(relative_words[i].option, option) == 0 && strcmp(relative_words[i].word, word) == 0)
      return relative_words[i].known;
  return NULL;
}

bool nxc_relative_frees(const nxc_relative *relative, const char *option, const char *word,
                        const char *freed) {
  for (size_t i = 0; i < sizeof frees / sizeof *frees; i++)
    if (strcmp(frees[i].name, relative->name) == 0 && strcmp(frees[i].option, option) == 0 &&
        strcmp(frees[i].word, word) == 0 && strcmp(frees[i].freed, freed) == 0)
      return true;
  return false;
}

const nxc_relative_meaning *nxc_relative_means(const nxc_relative *relative, const char *option,
                                               const char *word, const nxc_relative_meaning *after) {
  for (size_t i = after ? (size_t)(after - meanings) + 1 : 0; i < sizeof meanings / sizeof *meanings; i++) {
    const nxc_relative_meaning *one = &meanings[i];
    const char *whose = relative->past ? relative->system : relative->name;
    bool here = strcmp(one->name, whose) == 0 && strcmp(one->option, option) == 0;
    if (here && (*one->word == '\0' || strcmp(one->word, word) == 0)) return one;
  }
  return NULL;
}
