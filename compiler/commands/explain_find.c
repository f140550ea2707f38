/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/explain.h"
#include "compiler/diagnostics/nearest.h"
#include "compiler/render/screen.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* -- matches -------------------------------------------------------------------------------------------- */

/* An option of a dialect, or a setting (nx). */
typedef struct match {
  const nxc_dialect *dialect;
  const nxc_option_row *row;
} match;

static match *find_ends(nxc_explain_search *s, const char *end, size_t *n_matches) {
  match *matches = NULL;
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    bool settings = strcmp(dialect->name, "nx") == 0 && s->only == NULL;
    for (size_t j = 0; (settings || nxc_explain_searches(s, dialect)) && j < dialect->n_options; j++) {
      if (!nxc_name_ends_in(dialect->options[j].name, end)) continue;
      matches = nxc_arena_grow(s->arena, matches, *n_matches, sizeof *matches);
      matches[(*n_matches)++] = (match){dialect, &dialect->options[j]};
    }
  }
  return matches;
}

static const char *first_sentence(nxc_arena *arena, const char *doc) {
  if (doc == NULL) return "";
  const char *end = strstr(doc, ". ");
  size_t n_bytes = end ? (size_t)(end - doc) : strlen(doc);
  if (n_bytes > 0 && doc[n_bytes - 1] == '.') n_bytes--;
  return nxc_arena_printf(arena, "%.*s", (int)n_bytes, doc);
}

static void print_match(nxc_arena *arena, const match *one) {
  bool setting = strcmp(one->dialect->name, "nx") == 0;
  const char *system = setting ? "setting" : one->dialect->name;
  nxc_print_filled(stdout, 14, nxc_arena_printf(arena, "  %-9s %-40s  ", system, one->row->name), 0,
                   first_sentence(arena, one->row->doc), "");
}

/* -- by words -------------------------------------------------------------------------------------------- */

/* clipping is meant by clip, too. */
static size_t stem_bytes(const char *word, size_t n_bytes) {
  if (n_bytes < 6 || strncmp(word + n_bytes - 3, "ing", 3) != 0) return n_bytes;
  n_bytes -= 3;
  return n_bytes - (word[n_bytes - 1] == word[n_bytes - 2]);
}

static bool has_word(const char *text, const char *word, size_t n_bytes) {
  for (const char *at = text; at != NULL && *at != '\0'; at++) {
    bool starts = at == text || !isalnum((unsigned char)at[-1]);
    if (starts && strncasecmp(at, word, n_bytes) == 0) return true;
  }
  return false;
}

/* Whether each of the words begins a word of the name, or, where that is wanted, of the text. */
static bool has_words(const nxc_option_row *row, const char *words, bool in_text) {
  for (const char *at = words + strspn(words, " "); *at != '\0'; at += strspn(at, " ")) {
    size_t n_word = strcspn(at, " "), n_stem = stem_bytes(at, n_word);
    if (!has_word(row->name, at, n_stem) && !(in_text && has_word(row->doc, at, n_stem))) return false;
    at += n_word;
  }
  return true;
}

typedef struct wording {
  const char *words;
  bool in_text;      /* in first sentences and what follows, too */
  const char *title; /* above the list */
  const char *but;   /* not names that end so; NULL: all */
} wording;

static bool is_meant(const wording *w, const nxc_option_row *row) {
  bool ends = w->but != NULL && nxc_name_ends_in(row->name, w->but);
  return row->alias_of == NULL && !ends && has_words(row, w->words, w->in_text);
}

static size_t list_words_of(nxc_explain_search *s, const nxc_dialect *dialect, const wording *w,
                            size_t n_listed) {
  for (size_t i = 0; i < dialect->n_options; i++) {
    if (!is_meant(w, &dialect->options[i])) continue;
    if (n_listed++ == 0) {
      nxc_explain_separate(s);
      puts(w->title);
    }
    print_match(s->arena, &(match){dialect, &dialect->options[i]});
  }
  return n_listed;
}

/* Settings first. */
static size_t list_words(nxc_explain_search *s, const wording *w) {
  size_t n_listed = 0;
  if (s->only == NULL) n_listed = list_words_of(s, nxc_dialect_find("nx"), w, 0);
  for (size_t i = 0; i < nxc_n_dialects; i++)
    if (nxc_explain_searches(s, &nxc_dialects[i])) n_listed = list_words_of(s, &nxc_dialects[i], w, n_listed);
  return n_listed;
}

void nxc_explain_words(nxc_explain_search *s, const char *words) {
  wording w = {.words = words, .in_text = strchr(words, ' ') != NULL};
  w.title = nxc_arena_printf(s->arena, "%s is no name; these speak of it", words);
  if (list_words(s, &w) > 0) return;
  w.in_text = true;
  list_words(s, &w);
}

static bool takes(const nxc_option_row *row, const char *word) {
  bool found = false;
  for (size_t i = 0; row->alias_of == NULL && i < row->domain.n_values; i++)
    found |= strcasecmp(row->domain.values[i], word) == 0;
  return found;
}

void nxc_explain_values(nxc_explain_search *s, const char *word) {
  size_t n_listed = 0;
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    bool settings = strcmp(dialect->name, "nx") == 0 && s->only == NULL;
    for (size_t j = 0; (settings || nxc_explain_searches(s, dialect)) && j < dialect->n_options; j++) {
      if (!takes(&dialect->options[j], word)) continue;
      if (n_listed++ == 0) {
        nxc_explain_separate(s);
        printf("%s is a value of\n", word);
      }
      print_match(s->arena, &(match){dialect, &dialect->options[j]});
    }
  }
}

/* -- by the end of a name, and by group ------------------------------------------------------------------ */

void nxc_explain_ends(nxc_explain_search *s, const char *end) {
  size_t n_matches = 0;
  const match *matches = find_ends(s, end, &n_matches);
  if (n_matches == 0) return;
  nxc_explain_separate(s);
  bool setting = strcmp(matches[0].dialect->name, "nx") == 0;
  nxc_setting_id id = setting ? nxc_setting_find(matches[0].row->name) : NX_N_SETTINGS;
  if (n_matches == 1 && id < NX_N_SETTINGS) nxc_explain_setting(s->arena, id);
  else if (n_matches == 1) nxc_explain_option(s->arena, matches[0].dialect, matches[0].row);
  if (n_matches == 1) return;
  printf("%s is the end of %zu names\n", end, n_matches);
  for (size_t i = 0; i < n_matches; i++) print_match(s->arena, &matches[i]);
  const char *title = nxc_arena_printf(s->arena, "%s is a word of these, too", end);
  list_words(s, &(wording){.words = end, .title = title, .but = end});
}

void nxc_explain_group(nxc_explain_search *s, const char *name) {
  size_t n_listed = 0;
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    bool settings = strcmp(dialect->name, "nx") == 0 && s->only == NULL;
    size_t first = 0, end = 0;
    if (settings || nxc_explain_searches(s, dialect)) end = nxc_dialect_section(dialect, name, &first);
    for (size_t j = first; j < end; j++) {
      if (n_listed++ == 0) {
        nxc_explain_separate(s);
        printf("%s holds\n", name);
      }
      print_match(s->arena, &(match){dialect, &dialect->options[j]});
    }
  }
}

/* -- what is near ---------------------------------------------------------------------------------------- */

static const char *last_part(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot ? dot + 1 : name;
}

static const char *find_nearest(nxc_arena *arena, const char *name) {
  size_t n_names = 0, n_max = 2 * NX_N_SETTINGS + nxc_n_rules + nxc_n_diagnostics;
  for (size_t i = 0; i < nxc_n_dialects; i++) n_max += 2 * nxc_dialects[i].n_options;
  const char **names = nxc_arena_array(arena, n_max, sizeof *names);
  for (size_t i = 0; i < NX_N_SETTINGS; i++) names[n_names++] = nxc_setting_rows[i].path;
  for (size_t i = 0; i < nxc_n_rules; i++) names[n_names++] = nxc_rules[i].id;
  for (size_t i = 0; i < nxc_n_diagnostics; i++) names[n_names++] = nxc_diagnostics[i].id;
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    for (size_t j = 0; j < nxc_dialects[i].n_options; j++) {
      names[n_names++] = nxc_dialects[i].options[j].name;
      names[n_names++] = last_part(nxc_dialects[i].options[j].name);
    }
  }
  return nxc_nearest(name, names, n_names);
}

/* What rules and diagnostics begin with. */
static const char code_letters[] = "NX";

static bool is_code(const char *name) {
  size_t n_letters = strlen(code_letters), n_digits = strspn(name + (*name ? 1 : 0), "X0123456789");
  return strncmp(name, code_letters, n_letters) == 0 && strlen(name) == n_digits + 1;
}

/* Ids and titles of those that begin with these bytes. */
static size_t list_codes(const char *name, size_t n_bytes, bool print) {
  size_t n_listed = 0;
  for (size_t i = 0; i < nxc_n_diagnostics; i++) {
    if (strncmp(nxc_diagnostics[i].id, name, n_bytes) != 0) continue;
    n_listed++;
    if (print) fprintf(stderr, "  %s  %s\n", nxc_diagnostics[i].id, nxc_diagnostics[i].title);
  }
  for (size_t i = 0; i < nxc_n_rules; i++) {
    if (strncmp(nxc_rules[i].id, name, n_bytes) != 0) continue;
    n_listed++;
    if (print)
      fprintf(stderr, "  %s  a rule%s%s\n", nxc_rules[i].id, nxc_rules[i].dialect ? " of " : "",
              nxc_rules[i].dialect ? nxc_rules[i].dialect : "");
  }
  return n_listed;
}

/* Codes are numbered by subject: those are near that share the most digits. */
static void list_near_codes(const char *name) {
  size_t n_bytes = strlen(name), n_letters = strlen(code_letters);
  while (n_bytes > n_letters && list_codes(name, n_bytes, false) == 0) n_bytes--;
  if (n_bytes <= n_letters) {
    fputs("; nxcfg explain --names lists all\n", stderr);
    return;
  }
  fprintf(stderr, "; those of %.*s are\n", (int)n_bytes, name);
  list_codes(name, n_bytes, true);
}

void nxc_explain_nothing(const nxc_explain_search *s, const char *name) {
  fprintf(stderr, "nxcfg explain: there is no setting, option, rule or diagnostic %s", name);
  if (is_code(name)) {
    list_near_codes(name);
    return;
  }
  const char *nearest = find_nearest(s->arena, name);
  if (nearest != NULL && strcmp(nearest, name) == 0)
    fputs(" in this dialect, but in another: leave --dialect out", stderr);
  else if (nearest != NULL) fprintf(stderr, "; did you mean %s?", nearest);
  fputc('\n', stderr);
}
