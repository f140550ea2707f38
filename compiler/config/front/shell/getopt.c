/* SPDX-License-Identifier: Apache-2.0 */
/* getopt of util-linux: arguments put in order, as a text that a shell reads again. */
#include "compiler/config/front/shell/shell.h"

#include <string.h>

typedef struct order {
  nxc_shell *s;
  const char *letters, *names; /* -o and -l; colons behind those that take a value */
  bool bare;                   /* -u, or the old form: nothing is quoted */
  bool single;                 /* -a: one dash begins a name too */
  nxc_text options, rest;
  size_t at;
} order;

static void put(const order *o, nxc_text *to, const char *bytes, size_t n_bytes) {
  nxc_text text = nxc_text_from(o->s->arena, bytes, n_bytes, o->at, 0);
  nxc_text_append(o->s->arena, to, &text);
}

/* A word behind a blank, in quotes that eval takes away. */
static void put_word(const order *o, nxc_text *to, const char *word) {
  put(o, to, o->bare ? " " : " '", o->bare ? 1 : 2);
  for (; *word != '\0'; word++) {
    if (*word == '\'' && !o->bare) put(o, to, "'\\''", 4);
    else put(o, to, word, 1);
  }
  if (!o->bare) put(o, to, "'", 1);
}

/* The entry of the list of names that this is, or the only one that it begins; NULL: none, or several. */
static const char *find_name(const order *o, const char *name, size_t n_bytes, size_t *n_entry) {
  const char *found = NULL;
  for (const char *entry = o->names; *entry != '\0';) {
    size_t n = strcspn(entry, ":, \t\n"), whole = strcspn(entry, ", \t\n");
    if (n >= n_bytes && n > 0 && strncmp(entry, name, n_bytes) == 0) {
      bool same = n == n_bytes;
      if (found != NULL && !same) return NULL;
      found = entry, *n_entry = n;
      if (same) return found;
    }
    entry += whole + strspn(entry + whole, ", \t\n");
  }
  return found;
}

/* --name, --name=value and --name value; gives how many words it took. */
static size_t take_name(order *o, const char *word, const char *next) {
  size_t n_bytes = strcspn(word, "="), n_entry = 0;
  const char *entry = find_name(o, word, n_bytes, &n_entry), *value = NULL;
  if (entry == NULL) return 1; /* it complains, and goes on without */
  bool wants = entry[n_entry] == ':', may = wants && entry[n_entry + 1] == ':';
  if (word[n_bytes] == '=') value = word + n_bytes + 1;
  bool takes = wants && !may && value == NULL;
  if (takes) value = next;
  if ((wants && !may && value == NULL) || (!wants && value != NULL)) return 1;
  put(o, &o->options, " --", 3);
  put(o, &o->options, entry, n_entry);
  if (wants) put_word(o, &o->options, value ? value : "");
  return takes ? 2 : 1;
}

/* -abVALUE and -a -b VALUE. */
static size_t take_letters(order *o, const char *word, const char *next) {
  for (; *word != '\0'; word++) {
    const char *found = *word == ':' ? NULL : strchr(o->letters, *word);
    bool wants = found != NULL && found[1] == ':', may = wants && found[2] == ':';
    bool takes = wants && !may && word[1] == '\0';
    if (found == NULL || (takes && next == NULL)) continue;
    put(o, &o->options, " -", 2);
    put(o, &o->options, word, 1);
    if (!wants) continue;
    put_word(o, &o->options, takes ? next : word + 1);
    return takes ? 2 : 1;
  }
  return 1;
}

static void take_words(order *o, const nxc_text *words, size_t n_words) {
  bool first_ends = *o->letters == '+', in_place = *o->letters == '-', over = false;
  o->letters += first_ends || in_place;
  for (size_t i = 0; i < n_words;) {
    const char *word = nxc_text_string(o->s->arena, &words[i]);
    const char *next = i + 1 < n_words ? nxc_text_string(o->s->arena, &words[i + 1]) : NULL;
    size_t n_entry, n_taken = 1;
    bool option = !over && word[0] == '-' && word[1] != '\0', named = option && word[1] == '-';
    bool single = option && !named && o->single && find_name(o, word + 1, strcspn(word + 1, "="), &n_entry);
    if (named && word[2] == '\0') over = true;
    else if (named || single) n_taken = take_name(o, word + 1 + named, next);
    else if (option) n_taken = take_letters(o, word + 1, next);
    else put_word(o, in_place && !over ? &o->options : &o->rest, word), over = over || first_ends;
    i += n_taken;
  }
}

/* Its own options; gives the first word behind them, or 0: it is asked for something else. */
static size_t take_own(order *o, const nxc_text *words, size_t n_words) {
  static const char *const valued[] = {"-o", "--options", "-l", "--long", "--longoptions",
                                       "-n", "--name",    "-s", "--shell"};
  size_t i = 1;
  for (; i < n_words; i++) {
    const char *word = nxc_text_string(o->s->arena, &words[i]), *value = NULL;
    if (strcmp(word, "--") == 0) return i + 1;
    if (word[0] != '-') break;
    size_t n_name = word[1] == '-' ? strcspn(word, "=") : 2;
    bool known = false;
    for (size_t k = 0; k < sizeof valued / sizeof *valued; k++)
      known = known || (strlen(valued[k]) == n_name && strncmp(valued[k], word, n_name) == 0);
    if (known) {
      value = word[n_name] == '\0' ? NULL : word + n_name + (word[n_name] == '=');
      if (value == NULL && ++i < n_words) value = nxc_text_string(o->s->arena, &words[i]);
      if (value == NULL) return 0;
      if (strncmp(word, "-o", 2) == 0 || strncmp(word, "--o", 3) == 0) o->letters = value;
      if (strncmp(word, "-l", 2) == 0 || strncmp(word, "--l", 3) == 0)
        o->names = *o->names ? nxc_arena_printf(o->s->arena, "%s,%s", o->names, value) : value;
    } else if (strcmp(word, "-u") == 0 || strcmp(word, "--unquoted") == 0) {
      o->bare = true;
    } else if (strcmp(word, "-a") == 0 || strcmp(word, "--alternative") == 0) {
      o->single = true;
    } else if (strcmp(word, "-q") != 0 && strcmp(word, "--quiet") != 0) {
      return 0;
    }
  }
  if (o->letters != NULL) return i;
  o->bare = i == 1; /* the old form: getopt LETTERS WORD... */
  if (i < n_words) o->letters = nxc_text_string(o->s->arena, &words[i]);
  return o->letters ? i + 1 + (i + 1 < n_words && nxc_text_is(&words[i + 1], "--")) : 0;
}

bool nxc_shell_order_options(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at,
                             nxc_text *output) {
  order o = {.s = s, .names = "", .at = at};
  for (size_t i = 0; i < n_words; i++)
    if (nxc_text_any(&words[i], NXC_MARK_UNKNOWN)) return false;
  size_t from = take_own(&o, words, n_words);
  if (from == 0 || o.letters == NULL) return false;
  if (!s->state.arguments_known) s->assumes = nxc_shell_ask(s, 1);
  take_words(&o, words + from, n_words - from);
  *output = o.options;
  put(&o, output, " --", 3);
  nxc_text_append(s->arena, output, &o.rest);
  put(&o, output, "\n", 1);
  return true;
}
