/* SPDX-License-Identifier: Apache-2.0 */
/* Simple commands of a shell text: assignments, redirections, and which command is the training. */
#include "compiler/config/front/words_shell.h"

#include <ctype.h>
#include <string.h>

static bool is_word(const nxc_words *words, size_t i, const char *text) {
  return i < words->n_items && strcmp(words->items[i].text, text) == 0;
}

/* -- commands -------------------------------------------------------------------------------------------- */

/* The length of NAME= or NAME+= here; 0 when there is none. */
static size_t assignment_length(const nxc_shell *s) {
  size_t n_bytes = 0;
  const char *at = s->text + s->at;
  size_t n_left = s->n_bytes - s->at;
  while (n_bytes < n_left && nxc_shell_is_name(at[n_bytes])) n_bytes++;
  if (n_bytes == 0 || isdigit((unsigned char)*at)) return 0;
  if (n_bytes < n_left && at[n_bytes] == '=') return n_bytes + 1;
  return n_bytes + 1 < n_left && at[n_bytes] == '+' && at[n_bytes + 1] == '=' ? n_bytes + 2 : 0;
}

static void read_array(nxc_shell *s, nxc_words *words) {
  size_t start = s->at++;
  for (;;) {
    nxc_shell_skip_blanks(s, true);
    if (s->failed || s->at >= s->n_bytes || s->text[s->at] == ')') break;
    size_t before = s->at;
    nxc_shell_read_word(s, words);
    if (s->at == before) s->at++;
  }
  if (s->at >= s->n_bytes) nxc_shell_fail(s, start, "this array does not end");
  s->at++;
}

static void keep_assigned(nxc_shell *s, const char *name, nxc_span at, const nxc_words *words, bool array,
                          bool appends) {
  nxc_assigned *assigned = nxc_shell_assign(s->script, name, at);
  if (!appends) assigned->words = (nxc_words){0};
  for (size_t i = 0; i < words->n_items; i++) nxc_shell_keep(s, &assigned->words, words->items[i]);
  assigned->array = array || (appends && assigned->array) || assigned->words.n_items > 1;
}

void nxc_shell_set(nxc_shell *s, const char *name, nxc_span at, const nxc_word *value, bool taken) {
  nxc_word item = *value;
  s->script->is_script = true;
  s->loop_assigns = true;
  if (taken) keep_assigned(s, name, at, &(nxc_words){&item, 1}, false, false);
}

static void read_assignment(nxc_shell *s, size_t n_head, bool exported, bool taken) {
  bool appends = s->text[s->at + n_head - 2] == '+';
  size_t n_name = n_head - 1 - appends;
  const char *name = nxc_arena_strndup(s->script->arena, s->text + s->at, n_name);
  nxc_span at = nxc_shell_place(s, s->at, n_name);
  s->at += n_head;
  bool array = s->at < s->n_bytes && s->text[s->at] == '(';
  nxc_words words = {0};
  if (array) read_array(s, &words);
  else nxc_shell_read_word(s, &words); /* one word, whatever variables put into it */
  s->script->is_script = true;
  s->loop_assigns = true;
  if (!taken) return;
  keep_assigned(s, name, at, &words, array, appends);
  if (exported) nxc_shell_assign(s->script, name, at)->exported = true;
}

/* > FILE and its like, which are no arguments; << takes lines. */
static void skip_redirection(nxc_shell *s, nxc_words *words) {
  nxc_word *last = words->n_items ? &words->items[words->n_items - 1] : NULL;
  bool number = last && strspn(last->text, "0123456789") == strlen(last->text) && s->at > 0 &&
                isdigit((unsigned char)s->text[s->at - 1]);
  if (number) words->n_items--;
  bool here = strncmp(s->text + s->at, "<<", 2) == 0 && strncmp(s->text + s->at, "<<<", 3) != 0;
  if (here) {
    s->at += 2;
    nxc_shell_open_here(s, words);
    return;
  }
  while (s->at < s->n_bytes && strchr("<>&", s->text[s->at])) s->at++;
  nxc_shell_skip_blanks(s, false);
  nxc_words target = {0};
  nxc_shell_read_word(s, &target);
}

/* export, local and their like, with options such as -a: assignments may follow. */
static bool declares(const nxc_words *words) {
  static const char *const names[] = {"export", "local", "declare", "readonly", "typeset"};
  bool found = words->n_items == 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) found = found || is_word(words, 0, names[i]);
  for (size_t i = 1; found && i < words->n_items; i++) found = *words->items[i].text == '-';
  return found;
}

/* Inside [[ ]] signs are words. */
static bool put_sign(nxc_shell *s, nxc_words *words) {
  bool inside = is_word(words, 0, "[[") || (is_word(words, 0, "!") && is_word(words, 1, "[["));
  if (!inside || is_word(words, words->n_items - 1, "]]") || s->text[s->at] == '\n') return false;
  char c = s->text[s->at];
  size_t n_bytes = s->at + 1 < s->n_bytes && s->text[s->at + 1] == c && strchr("&|", c) ? 2 : 1;
  nxc_shell_keep(s, words, (nxc_word){.text = nxc_arena_strndup(s->script->arena, s->text + s->at, n_bytes),
                                      .at = nxc_shell_place(s, s->at, n_bytes)});
  s->at += n_bytes;
  return true;
}

/* (( ... )): a test of numbers. */
static bool skip_arithmetic(nxc_shell *s, const nxc_words *words, nxc_truth *truth) {
  int64_t value;
  nxc_draft used = {0};
  if (words->n_items > 0 || strncmp(s->text + s->at, "((", 2) != 0) return false;
  const char *end = strstr(s->text + s->at, "))");
  if (end == NULL || end > s->text + s->n_bytes - 2) return false;
  size_t from = s->at + 2;
  bool known = nxc_shell_compute(s, s->text + from, (size_t)(end - s->text) - from, from, &used, &value);
  *truth = !known ? NXC_MAYBE : value ? NXC_YES : NXC_NO;
  s->at = (size_t)(end - s->text) + 2;
  return true;
}

/* export NAME: of a value that was assigned before. */
static void export_names(nxc_shell *s, const nxc_words *words) {
  for (size_t i = 1; is_word(words, 0, "export") && i < words->n_items; i++) {
    const char *name = words->items[i].text;
    const nxc_assigned *known = nxc_script_find(s->script, name, strlen(name));
    if (known != NULL) nxc_shell_assign(s->script, known->name, known->at)->exported = true;
  }
}

static void keep_command(nxc_shell *s, const nxc_words *words) {
  export_names(s, words);
  if (is_word(words, 0, "source") || is_word(words, 0, "."))
    nxc_report(s->sink, "NX5914", NXC_SEVERITY_NOTE, words->items[0].at, NULL,
               "what %s assigns is not read here", words->n_items > 1 ? words->items[1].text : "this");
  s->commands = nxc_arena_grow(s->script->arena, s->commands, s->n_commands, sizeof *s->commands);
  s->commands[s->n_commands++] = (nxc_command){*words};
}

nxc_truth nxc_shell_read_command(nxc_shell *s, bool taken) {
  nxc_words words = {0};
  nxc_truth truth = NXC_YES;
  for (;;) {
    nxc_shell_skip_blanks(s, false);
    if (s->failed || s->at >= s->n_bytes) break;
    char c = s->text[s->at];
    size_t n_head = declares(&words) ? assignment_length(s) : 0;
    bool duplicates = c == '&' && s->at + 1 < s->n_bytes && s->text[s->at + 1] == '>';
    if (n_head > 0) read_assignment(s, n_head, is_word(&words, 0, "export"), taken);
    else if (nxc_shell_ends_word(c) && put_sign(s, &words)) continue;
    else if (c == '<' || c == '>' || duplicates) skip_redirection(s, &words);
    else if (c == '(' && skip_arithmetic(s, &words, &truth)) return truth;
    else if (nxc_shell_ends_word(c)) break;
    else nxc_shell_read_word(s, &words);
  }
  if (words.n_items == 0 || s->failed) return NXC_YES;
  if (nxc_shell_call(s, &words, taken)) return NXC_MAYBE;
  if (taken) keep_command(s, &words);
  return nxc_shell_judge(&words);
}

/* -- what is what ---------------------------------------------------------------------------------------- */

static bool ends_in_py(const char *text) {
  size_t n_bytes = strlen(text);
  return n_bytes > 3 && strcmp(text + n_bytes - 3, ".py") == 0;
}

/* The first word that names a Python program; n_items when there is none. */
static size_t find_program(const nxc_words *words) {
  size_t i = 0;
  while (i < words->n_items && !ends_in_py(words->items[i].text)) i++;
  return i;
}

static size_t count_options(const nxc_words *words, size_t from) {
  size_t n_options = 0;
  for (size_t i = from; i < words->n_items; i++) n_options += strncmp(words->items[i].text, "--", 2) == 0;
  return n_options;
}

/* bash -c "python ...": the command inside is one as well. */
static void open_texts(nxc_shell *s) {
  for (size_t i = 0, n_commands = s->n_commands; i < n_commands && !s->failed; i++) {
    const nxc_words words = s->commands[i].words;
    size_t n_searched = find_program(&words) == words.n_items ? words.n_items : 0;
    for (size_t k = 0; k < n_searched; k++) {
      const nxc_word *word = &words.items[k];
      nxc_command inside = {0};
      if (strchr(word->text, ' ') == NULL || strstr(word->text, ".py ") == NULL) continue;
      nxc_shell_split(s, word, &inside.words);
      s->commands = nxc_arena_grow(s->script->arena, s->commands, s->n_commands, sizeof *s->commands);
      s->commands[s->n_commands++] = inside;
    }
  }
}

/* The command that runs a program with the most options is the training. */
static bool take_training(nxc_shell *s) {
  open_texts(s);
  const nxc_words *best = NULL;
  size_t n_best = 0;
  for (size_t i = 0; i < s->n_commands; i++) {
    const nxc_words *words = &s->commands[i].words;
    size_t program = find_program(words), n_options = count_options(words, program);
    if (program == words->n_items || n_options < n_best) continue;
    best = words;
    n_best = n_options;
  }
  if (best == NULL) return false;
  size_t program = find_program(best);
  for (size_t i = 0; i < best->n_items; i++)
    if (i != program)
      nxc_shell_keep(s, i < program ? &s->script->launcher : &s->script->arguments, best->items[i]);
  return s->script->is_script = true;
}

/* Without a command that runs a program: every variable that holds options, and every bare option. */
static void take_all(nxc_shell *s) {
  nxc_script *script = s->script;
  for (size_t i = 0; i < script->n_assigned; i++) {
    const nxc_assigned *assigned = &script->assigned[i];
    bool launcher = strstr(assigned->name, "DISTRIBUTED") || strstr(assigned->name, "LAUNCH") ||
                    strstr(assigned->name, "TORCHRUN");
    nxc_words words = {0};
    for (size_t j = 0; j < assigned->words.n_items; j++) {
      nxc_draft word = {.open = assigned->array};
      nxc_shell_put_assigned(s, &word, &words, &assigned->words.items[j], assigned->array, 0);
      nxc_shell_finish(s, &word, &words, 0);
    }
    if (words.n_items == 0 || strncmp(words.items[0].text, "--", 2) != 0) continue;
    for (size_t j = 0; j < words.n_items; j++)
      nxc_shell_keep(s, launcher ? &script->launcher : &script->arguments, words.items[j]);
  }
  for (size_t i = 0; i < s->n_commands; i++) {
    const nxc_words *words = &s->commands[i].words;
    if (script->is_script && strncmp(words->items[0].text, "--", 2) != 0) continue;
    for (size_t j = 0; j < words->n_items; j++) nxc_shell_keep(s, &script->arguments, words->items[j]);
  }
}

/* An option that begins a command of a script: the line above did not continue, so that the training never
 * gets it. */
static void report_lost(nxc_shell *s) {
  for (size_t i = 0; i < s->n_commands; i++) {
    const nxc_word *word = &s->commands[i].words.items[0];
    if (strncmp(word->text, "--", 2) != 0) continue;
    nxc_report(s->sink, "NX5915", NXC_SEVERITY_ERROR, word->at,
               "let the line above end with a backslash, and nothing behind it; no comment may stand between",
               "%s begins a command of its own here, and never reaches the training", word->text);
  }
}

bool nxc_script_read(nxc_arena *arena, const nxc_source *source, nxc_sink *sink, nxc_script *script) {
  *script = (nxc_script){.arena = arena};
  nxc_shell s = {
      .script = script, .source = source, .sink = sink, .text = source->text, .n_bytes = source->n_bytes};
  if (strlen(source->text) != source->n_bytes) {
    nxc_shell_fail(&s, strlen(source->text), "arguments hold no NUL bytes");
    return false;
  }
  nxc_shell_read_all(&s);
  if (s.failed) return false;
  if (take_training(&s)) report_lost(&s);
  else take_all(&s);
  return !s.failed;
}
