/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow of a shell text. A test that can be told decides; where it cannot, the first part is taken and
 * a note says so. for runs through its words, a function's body is read where it is called, and a while loop
 * that cannot be told is left out. */
#include "compiler/config/front/words_shell.h"

#include <fnmatch.h>
#include <string.h>

enum { TURNS_MAX = 4096 };

static const char *read_commands(nxc_shell *s, bool taken, nxc_truth *last);

/* -- words that are not expanded ------------------------------------------------------------------------- */

/* The bare word here, without reading it; its length, 0 where something else stands here. */
static size_t bare_length(const nxc_shell *s) {
  size_t n_bytes = 0;
  while (s->at + n_bytes < s->n_bytes && !nxc_shell_ends_word(s->text[s->at + n_bytes])) {
    if (strchr("'\"\\$`", s->text[s->at + n_bytes])) return 0;
    n_bytes++;
  }
  return n_bytes;
}

static bool is_here(const nxc_shell *s, const char *word) {
  size_t n_bytes = strlen(word);
  return bare_length(s) == n_bytes && strncmp(s->text + s->at, word, n_bytes) == 0;
}

static bool take(nxc_shell *s, const char *word) {
  if (!is_here(s, word)) return false;
  s->at += strlen(word);
  return true;
}

static bool take_sign(nxc_shell *s, const char *sign) {
  size_t n_bytes = strlen(sign);
  if (s->n_bytes - s->at < n_bytes || strncmp(s->text + s->at, sign, n_bytes) != 0) return false;
  s->at += n_bytes;
  return true;
}

/* -- what is said ---------------------------------------------------------------------------------------- */

static void note(nxc_shell *s, size_t at, const char *text) {
  if (!s->failed)
    nxc_report(s->sink, "NX5914", NXC_SEVERITY_NOTE, nxc_shell_place(s, at, 1), NULL, "%s", text);
}

static bool enter(nxc_shell *s, size_t at) {
  if (++s->nesting > NESTING_MAX) nxc_shell_fail(s, at, "this is nested too deeply to be followed");
  return !s->failed;
}

/* A part that must be there. */
static void expect(nxc_shell *s, const char *found, const char *wanted, size_t start, const char *problem) {
  if (!s->failed && (found == NULL || strcmp(found, wanted) != 0)) nxc_shell_fail(s, start, problem);
}

/* -- if -------------------------------------------------------------------------------------------------- */

static void read_if(nxc_shell *s, bool taken, size_t start) {
  static const char problem[] = "this if does not end with fi";
  bool open = taken;
  const char *found;
  do {
    nxc_truth test = NXC_YES;
    expect(s, read_commands(s, open, &test), "then", start, problem);
    bool part = open && test != NXC_NO;
    if (part && test == NXC_MAYBE)
      note(s, start, "nothing here tells whether this test holds: it is read as if it did");
    found = read_commands(s, part, NULL);
    open = open && !part;
  } while (!s->failed && found != NULL && strcmp(found, "elif") == 0);
  if (!s->failed && found != NULL && strcmp(found, "else") == 0) found = read_commands(s, open, NULL);
  expect(s, found, "fi", start, problem);
}

/* -- case ------------------------------------------------------------------------------------------------ */

/* PATTERN | PATTERN ): whether one fits. */
static nxc_truth read_patterns(nxc_shell *s, const nxc_word *subject) {
  const char *value = subject ? nxc_shell_tested(subject) : "";
  nxc_truth fits = NXC_NO;
  nxc_shell_skip_blanks(s, true);
  take_sign(s, "(");
  while (!s->failed && s->at < s->n_bytes && s->text[s->at] != ')') {
    nxc_words patterns = {0};
    size_t before = s->at;
    nxc_shell_skip_blanks(s, true);
    nxc_shell_read_word(s, &patterns);
    for (size_t i = 0; i < patterns.n_items; i++) {
      bool same = value != NULL && fnmatch(patterns.items[i].text, value, 0) == 0;
      bool any = strcmp(patterns.items[i].text, "*") == 0;
      fits = nxc_truth_or(fits, same || any ? NXC_YES : value == NULL ? NXC_MAYBE : NXC_NO);
    }
    nxc_shell_skip_blanks(s, true);
    take_sign(s, "|");
    if (s->at == before) s->at++;
  }
  take_sign(s, ")");
  return fits;
}

static void read_case(nxc_shell *s, bool taken, size_t start) {
  nxc_words subject = {0};
  nxc_shell_skip_blanks(s, false);
  nxc_shell_read_word(s, &subject);
  nxc_shell_skip_blanks(s, true);
  if (!take(s, "in")) nxc_shell_fail(s, start, "this case has no in");
  bool open = taken;
  const char *found = "";
  while (!s->failed && found != NULL && strcmp(found, "esac") != 0) {
    nxc_shell_skip_blanks(s, true);
    if (take(s, "esac")) return;
    nxc_truth fits = read_patterns(s, subject.n_items ? &subject.items[0] : NULL);
    bool part = open && fits != NXC_NO;
    if (part && fits == NXC_MAYBE)
      note(s, start, "nothing here tells which part of this case is meant: the first is read");
    found = read_commands(s, part, NULL);
    open = open && !part;
  }
  expect(s, found, "esac", start, "this case does not end with esac");
}

/* -- loops ----------------------------------------------------------------------------------------------- */

/* The body behind do, from where the shell stands; it ends behind done. */
static void read_body(nxc_shell *s, bool taken, size_t start) {
  expect(s, read_commands(s, taken, NULL), "done", start, "this loop does not end with done");
}

static void read_while(nxc_shell *s, bool taken, size_t start) {
  nxc_truth test = NXC_MAYBE;
  expect(s, read_commands(s, false, &test), "do", start, "this loop has no do");
  s->loop_assigns = false;
  read_body(s, false, start);
  if (taken && s->loop_assigns)
    note(s, start, "this loop is not run: what it assigns keeps the value from before");
}

static void read_for(nxc_shell *s, bool taken, size_t start) {
  nxc_words words = {0};
  nxc_shell_skip_blanks(s, false);
  size_t n_name = bare_length(s), name_at = s->at;
  const char *name = nxc_arena_strndup(s->script->arena, s->text + s->at, n_name);
  s->at += n_name;
  nxc_shell_skip_blanks(s, true);
  bool listed = n_name > 0 && take(s, "in");
  while (listed && !s->failed && s->at < s->n_bytes) {
    nxc_shell_skip_blanks(s, false);
    if (s->at >= s->n_bytes || nxc_shell_ends_word(s->text[s->at])) break;
    nxc_shell_read_word(s, &words);
  }
  while (!s->failed && s->at < s->n_bytes && !is_here(s, "do")) { /* ; or ((...)) */
    s->at++;
    nxc_shell_skip_blanks(s, true);
  }
  if (!take(s, "do")) nxc_shell_fail(s, start, "this loop has no do");
  size_t body = s->at;
  if (!listed && taken) note(s, start, "this loop is not run: nothing here tells how often it turns");
  if (words.n_items == 0 || !taken) {
    read_body(s, false, start);
    return;
  }
  for (size_t i = 0; i < words.n_items && i < TURNS_MAX && !s->failed; i++) {
    s->at = body;
    nxc_shell_set(s, name, nxc_shell_place(s, name_at, n_name), &words.items[i], true);
    read_body(s, true, start);
  }
}

/* -- functions ------------------------------------------------------------------------------------------- */

/* NAME() { or function NAME {: the length of all before the brace; 0: no function begins here. */
static size_t function_head(const nxc_shell *s, size_t *name_at, size_t *n_name) {
  nxc_shell look = *s;
  bool word = take(&look, "function");
  if (word) nxc_shell_skip_blanks(&look, false);
  *name_at = look.at;
  *n_name = bare_length(&look);
  look.at += *n_name;
  bool round = take_sign(&look, "()");
  if (!round) {
    nxc_shell_skip_blanks(&look, false);
    round = take_sign(&look, "()");
  }
  nxc_shell_skip_blanks(&look, true);
  return *n_name > 0 && (word || round) && is_here(&look, "{") ? look.at - s->at : 0;
}

static bool read_function(nxc_shell *s, bool taken) {
  size_t name_at, n_name, n_head = function_head(s, &name_at, &n_name), start = s->at;
  if (n_head == 0) return false;
  nxc_function function = {.name = nxc_arena_strndup(s->script->arena, s->text + name_at, n_name)};
  s->at += n_head + 1;
  function.from = s->at;
  expect(s, read_commands(s, false, NULL), "}", start, "this function does not end with }");
  function.end = s->at;
  if (taken) {
    s->functions = nxc_arena_grow(s->script->arena, s->functions, s->n_functions, sizeof *s->functions);
    s->functions[s->n_functions++] = function;
  }
  return true;
}

bool nxc_shell_call(nxc_shell *s, const nxc_words *words, bool taken) {
  size_t i = s->n_functions;
  while (i > 0 && strcmp(s->functions[i - 1].name, words->items[0].text) != 0) i--;
  if (i == 0) return false;
  size_t behind = s->at, n_bytes = s->n_bytes;
  if (taken && enter(s, s->at)) {
    s->at = s->functions[i - 1].from;
    s->n_bytes = s->functions[i - 1].end;
    read_commands(s, true, NULL);
  }
  if (taken) s->nesting--;
  s->at = behind;
  s->n_bytes = n_bytes;
  return true;
}

/* -- everything ------------------------------------------------------------------------------------------ */

/* A word that ends a part; it is read. NULL: none stands here. */
static const char *take_end(nxc_shell *s) {
  static const char *const words[] = {"then", "elif", "else", "fi", "do", "done", "esac", "}"};
  static const char *const signs[] = {";;&", ";;", ";&"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (take(s, words[i])) return words[i];
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (take_sign(s, signs[i])) return signs[i];
  return NULL;
}

/* One command of any kind; its truth. */
static nxc_truth read_any(nxc_shell *s, bool taken) {
  size_t start = s->at;
  bool compound = true;
  if (!enter(s, start)) return NXC_MAYBE;
  if (take(s, "if")) read_if(s, taken, start);
  else if (take(s, "case")) read_case(s, taken, start);
  else if (take(s, "while") || take(s, "until")) read_while(s, taken, start);
  else if (take(s, "for") || take(s, "select")) read_for(s, taken, start);
  else if (take(s, "{"))
    expect(s, read_commands(s, taken, NULL), "}", start, "this group does not end with }");
  else compound = read_function(s, taken);
  nxc_truth truth = compound ? NXC_MAYBE : nxc_shell_read_command(s, taken);
  s->nesting--;
  return truth;
}

/* COMMAND && COMMAND || COMMAND: what depends on a command before it is taken as that one succeeds. */
static nxc_truth read_list(nxc_shell *s, bool taken) {
  nxc_truth truth = read_any(s, taken);
  while (!s->failed) {
    nxc_shell_skip_blanks(s, false);
    bool both = take_sign(s, "&&"), either = !both && take_sign(s, "||");
    if (!both && !either) return truth;
    nxc_shell_skip_blanks(s, true);
    nxc_truth next = read_any(s, taken && (both ? truth != NXC_NO : truth == NXC_NO));
    truth = both ? nxc_truth_and(truth, next) : nxc_truth_or(truth, next);
  }
  return NXC_MAYBE;
}

/* Commands up to a word that ends this part, which is given; NULL at the end of the text. */
static const char *read_commands(nxc_shell *s, bool taken, nxc_truth *last) {
  while (!s->failed) {
    nxc_shell_skip_blanks(s, true);
    if (s->at >= s->n_bytes) return NULL;
    const char *end = take_end(s);
    if (end != NULL) return end;
    size_t before = s->at;
    nxc_truth truth = read_list(s, taken);
    if (last != NULL) *last = truth;
    if (++s->n_read > COMMANDS_MAX) nxc_shell_fail(s, before, "this script runs too long to be followed");
    bool sign = s->at < s->n_bytes && strchr(";&|()", s->text[s->at]) != NULL;
    if (sign && strncmp(s->text + s->at, ";;", 2) != 0) s->at++;
    if (s->at == before) s->at++;
  }
  return NULL;
}

void nxc_shell_read_all(nxc_shell *s) {
  while (!s->failed && s->at < s->n_bytes) read_commands(s, true, NULL); /* a stray fi ends nothing */
}
