/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a shell text: assignments, branches, and which command is the training. */
#include "compiler/config/words_shell.h"

#include <ctype.h>
#include <string.h>

/* -- branches -------------------------------------------------------------------------------------------- */

static bool is_taken(const nxc_shell *s) {
  return s->n_branches == 0 ||
         (s->branches[s->n_branches - 1].taken && !s->branches[s->n_branches - 1].testing);
}

static bool is_word(const nxc_words *words, size_t i, const char *text) {
  return i < words->n_items && strcmp(words->items[i].text, text) == 0;
}

/* What a test compares: a variable of the environment that is not set is empty, what only a run would tell is
 * unknown (NULL). */
static const char *tested(const nxc_word *word) {
  if (word->unset == NULL) return word->text;
  const char *name = word->unset + strspn(word->unset, "${");
  bool variable = *word->unset == '$' && (isalpha((unsigned char)*name) || *name == '_');
  return variable && strcmp(word->text, word->unset) == 0 ? "" : NULL;
}

static nxc_truth negate(nxc_truth value) {
  return value == NXC_MAYBE ? NXC_MAYBE : value == NXC_YES ? NXC_NO : NXC_YES;
}

/* [ -n A ], [[ A == B ]] and their like; anything else may be so or not. */
static nxc_truth judge_test(const nxc_words *words, size_t from) {
  size_t end = words->n_items;
  bool negated = false;
  for (; from < end; from++) {
    if (is_word(words, from, "!")) negated = !negated;
    else if (!is_word(words, from, "[") && !is_word(words, from, "[[") && !is_word(words, from, "test"))
      break;
  }
  while (end > from && (is_word(words, end - 1, "]") || is_word(words, end - 1, "]]"))) end--;
  nxc_truth found = NXC_MAYBE;
  if (end - from == 2) {
    const char *value = tested(&words->items[from + 1]);
    if (value != NULL && is_word(words, from, "-n")) found = *value != '\0' ? NXC_YES : NXC_NO;
    if (value != NULL && is_word(words, from, "-z")) found = *value == '\0' ? NXC_YES : NXC_NO;
  } else if (end - from == 3) {
    const char *a = tested(&words->items[from]), *b = tested(&words->items[from + 2]);
    bool equal = a != NULL && b != NULL && strcmp(a, b) == 0;
    bool known = a != NULL && b != NULL && strpbrk(b, "*?[") == NULL;
    bool asks_equal =
        is_word(words, from + 1, "=") || is_word(words, from + 1, "==") || is_word(words, from + 1, "-eq");
    bool asks_other = is_word(words, from + 1, "!=") || is_word(words, from + 1, "-ne");
    if (known && asks_equal) found = equal ? NXC_YES : NXC_NO;
    if (known && asks_other) found = equal ? NXC_NO : NXC_YES;
  }
  return negated ? negate(found) : found;
}

static void add_test(nxc_branch *in, nxc_truth value, char joint) {
  nxc_truth before = in->result;
  if (in->joint == '|')
    in->result = before == NXC_YES || value == NXC_YES ? NXC_YES
                 : before == NXC_NO && value == NXC_NO ? NXC_NO
                                                       : NXC_MAYBE;
  else if (in->joint == '&')
    in->result = before == NXC_NO || value == NXC_NO     ? NXC_NO
                 : before == NXC_YES && value == NXC_YES ? NXC_YES
                                                         : NXC_MAYBE;
  else in->result = value;
  in->joint = joint;
}

static void open_branch(nxc_shell *s) {
  bool outside = is_taken(s);
  s->branches = nxc_arena_grow(s->script->arena, s->branches, s->n_branches, sizeof *s->branches);
  s->branches[s->n_branches++] = (nxc_branch){.outside = outside, .testing = true};
}

/* A word that opens, divides or closes a branch ends its command, so that what follows is one of its own. */
static bool is_keyword(const char *text) {
  static const char *const words[] = {"then", "else", "fi", "do", "done", "{", "}"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(text, words[i]) == 0) return true;
  return false;
}

/* Whether the command was about branches alone. */
static bool take_branch(nxc_shell *s, const nxc_words *words, char joint) {
  nxc_branch *in = s->n_branches ? &s->branches[s->n_branches - 1] : NULL;
  if (is_word(words, 0, "if")) {
    open_branch(s);
    add_test(&s->branches[s->n_branches - 1], judge_test(words, 1), joint);
  } else if (in != NULL && is_word(words, 0, "elif")) {
    in->testing = true;
    in->joint = 0;
    add_test(in, judge_test(words, 1), joint);
  } else if (in != NULL && is_word(words, 0, "then")) {
    in->testing = false;
    in->taken = in->outside && !in->done && in->result != NXC_NO;
    in->done = in->done || in->taken;
  } else if (in != NULL && is_word(words, 0, "else")) {
    in->taken = in->outside && !in->done;
    in->done = true;
  } else if (in != NULL && is_word(words, 0, "fi")) {
    s->n_branches--;
  } else if (in != NULL && in->testing) {
    add_test(in, judge_test(words, 0), joint);
  } else {
    return is_keyword(words->items[0].text);
  }
  return true;
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

static void read_assignment(nxc_shell *s, size_t n_head, bool exported) {
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
  if (!is_taken(s)) return;
  nxc_assigned *assigned = nxc_shell_assign(s->script, name, at);
  if (!appends) assigned->words = (nxc_words){0};
  for (size_t i = 0; i < words.n_items; i++) nxc_shell_keep(s, &assigned->words, words.items[i]);
  assigned->exported = assigned->exported || exported;
  assigned->array = array || (appends && assigned->array) || assigned->words.n_items > 1;
}

/* > FILE and its like, which are no arguments. */
static void skip_redirection(nxc_shell *s, nxc_words *words) {
  nxc_word *last = words->n_items ? &words->items[words->n_items - 1] : NULL;
  bool number = last && strspn(last->text, "0123456789") == strlen(last->text) && s->at > 0 &&
                isdigit((unsigned char)s->text[s->at - 1]);
  if (number) words->n_items--;
  while (s->at < s->n_bytes && strchr("<>&", s->text[s->at])) s->at++;
  nxc_shell_skip_blanks(s, false);
  nxc_words target = {0};
  nxc_shell_read_word(s, &target);
}

/* One command, to the end of its line or to what separates it from the next. */
static void read_command(nxc_shell *s) {
  nxc_command read = {0};
  char joint = 0;
  for (;;) {
    nxc_shell_skip_blanks(s, false);
    if (s->failed || s->at >= s->n_bytes) break;
    char c = s->text[s->at];
    bool leading =
        read.words.n_items == 0 ||
        (read.words.n_items == 1 && (is_word(&read.words, 0, "export") || is_word(&read.words, 0, "local") ||
                                     is_word(&read.words, 0, "declare")));
    size_t n_head = leading ? assignment_length(s) : 0;
    bool duplicates = c == '&' && s->at + 1 < s->n_bytes && s->text[s->at + 1] == '>';
    if (n_head > 0) {
      read_assignment(s, n_head, is_word(&read.words, 0, "export"));
    } else if (c == '<' || c == '>' || duplicates) {
      skip_redirection(s, &read.words);
    } else if (nxc_shell_ends_word(c)) {
      s->at++;
      if ((c == '|' || c == '&') && s->at < s->n_bytes && s->text[s->at] == c) {
        joint = c;
        s->at++;
      }
      break;
    } else {
      nxc_shell_read_word(s, &read.words);
      if (read.words.n_items == 1 && is_keyword(read.words.items[0].text)) break;
    }
  }
  if (read.words.n_items == 0) return;
  if (take_branch(s, &read.words, joint) || !is_taken(s)) return;
  s->commands = nxc_arena_grow(s->script->arena, s->commands, s->n_commands, sizeof *s->commands);
  s->commands[s->n_commands++] = read;
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

/* The command that runs a program with the most options is the training. */
static bool take_training(nxc_shell *s) {
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

bool nxc_script_read(nxc_arena *arena, const nxc_source *source, nxc_sink *sink, nxc_script *script) {
  *script = (nxc_script){.arena = arena};
  nxc_shell s = {
      .script = script, .source = source, .sink = sink, .text = source->text, .n_bytes = source->n_bytes};
  if (strlen(source->text) != source->n_bytes) {
    nxc_shell_fail(&s, strlen(source->text), "arguments hold no NUL bytes");
    return false;
  }
  while (s.at < s.n_bytes && !s.failed) {
    read_command(&s);
    nxc_shell_skip_blanks(&s, true);
  }
  if (!s.failed && !take_training(&s)) take_all(&s);
  return !s.failed;
}
