/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the shell itself, as far as they change or end something. */
#include "compiler/config/front/shell/shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct call {
  const nxc_shell_command *command;
  const nxc_text *words;
  size_t n_words;
} call;

static const char *string(nxc_shell *s, const nxc_text *text) {
  return nxc_text_string(s->arena, text);
}

static bool is_name(const char *text) {
  if (*text == '\0' || isdigit((unsigned char)*text)) return false;
  for (; *text != '\0'; text++)
    if (!isalnum((unsigned char)*text) && *text != '_') return false;
  return true;
}

void nxc_shell_print(nxc_shell *s, const nxc_text *text) {
  if (!s->captures || text->n_bytes == 0) return;
  nxc_text output = nxc_text_copy(s->arena, &s->state.output);
  if (!nxc_shell_spend(s, output.n_bytes + text->n_bytes, text->origins[0])) return;
  nxc_text_append(s->arena, &output, text);
  for (size_t i = 0; i < output.n_bytes; i++) output.marks[i] &= (unsigned char)~NXC_MARK_QUOTED;
  s->state.output = output;
}

/* -- variables ------------------------------------------------------------------------------------------- */

static void mark_exported(nxc_shell *s, const char *name) {
  const nxc_shell_value *value = nxc_shell_find(s, name);
  if (value == NULL) return;
  nxc_shell_value exported = *value;
  exported.exported = true;
  nxc_shell_set(s, name, exported);
}

/* export, declare, local and their like. */
static void declare(nxc_shell *s, const call *c) {
  const nxc_shell_command *command = c->command;
  bool exported = nxc_text_is(&c->words[0], "export"),
       local = !exported && !nxc_text_is(&c->words[0], "readonly");
  bool table = false, array = false, integer = false;
  for (size_t i = 1; i < c->n_words; i++) {
    const char *text = string(s, &c->words[i]);
    if (*text != '-') continue;
    if (local && strchr(text, 'x') != NULL) exported = true;
    table = table || strchr(text, 'A') != NULL;
    array = array || strchr(text, 'a') != NULL;
    integer = integer || strchr(text, 'i') != NULL;
    if (strchr(text, 'g') != NULL) local = false;
  }
  for (size_t i = 1; i < c->n_words; i++) {
    const char *name = string(s, &c->words[i]);
    if (!is_name(name)) continue;
    if (local) nxc_shell_set_local(s, name);
    if (exported) mark_exported(s, name);
    const nxc_shell_value *before = nxc_shell_find(s, name);
    if (integer && before != NULL) {
      nxc_shell_value counted = *before;
      counted.integer = true;
      nxc_shell_set(s, name, counted);
    }
    bool kind = table || array || integer;
    if (kind && nxc_shell_find(s, name) == NULL)
      nxc_shell_set(s, name,
                    (nxc_shell_value){.kind = table   ? NXC_SHELL_TABLE
                                              : array ? NXC_SHELL_ARRAY
                                                      : NXC_SHELL_TEXT,
                                      .integer = integer,
                                      .at = command->at});
  }
  for (size_t i = 0; i < command->n_words; i++) {
    if (command->declared[i] == NULL) continue;
    const char *name = command->declared[i]->name;
    if (table) nxc_shell_set(s, name, (nxc_shell_value){.kind = NXC_SHELL_TABLE, .at = command->at});
    nxc_shell_assign(s, command->declared[i], exported, local);
    if (integer) {
      nxc_shell_value value = *nxc_shell_find(s, name);
      int64_t number;
      value.integer = true;
      if (value.kind == NXC_SHELL_TEXT && nxc_shell_sum(s, &value.text, command->at, &number)) {
        const char *shown = nxc_arena_printf(s->arena, "%lld", (long long)number);
        value.text = nxc_text_from(s->arena, shown, strlen(shown), command->at, 0);
      }
      nxc_shell_set(s, name, value);
    }
  }
}

static void unset_item(nxc_shell *s, const char *text, size_t at) {
  const char *open = strchr(text, '[');
  const char *name = nxc_arena_strndup(s->arena, text, (size_t)(open - text));
  const char *key = nxc_arena_strndup(s->arena, open + 1, strcspn(open + 1, "]"));
  const nxc_shell_value *before = nxc_shell_find(s, name);
  if (before == NULL || before->kind < NXC_SHELL_ARRAY) return;
  nxc_shell_value value = {.kind = before->kind, .at = at};
  for (size_t i = 0; i < before->n_items; i++)
    if (strcmp(before->items[i].key, key) != 0)
      nxc_shell_put_item(s, &value, before->items[i].key, before->items[i].text);
  nxc_shell_set(s, name, value);
}

static void unset(nxc_shell *s, const call *c) {
  for (size_t i = 1; i < c->n_words; i++) {
    const char *name = string(s, &c->words[i]);
    if (strcmp(name, "-f") == 0) return;
    if (strchr(name, '[') != NULL) unset_item(s, name, c->command->at);
    else if (is_name(name))
      nxc_shell_set(s, name, (nxc_shell_value){.kind = NXC_SHELL_UNSET, .at = c->command->at});
  }
}

static void set(nxc_shell *s, const call *c) {
  for (size_t i = 1; i < c->n_words; i++) {
    const char *word = string(s, &c->words[i]);
    bool ends = strcmp(word, "--") == 0;
    if (!ends && (*word == '-' || *word == '+')) {
      if (strchr(word, 'o') != NULL) i++; /* -o pipefail */
      continue;
    }
    s->state.arguments = c->words + i + ends;
    s->state.n_arguments = c->n_words - i - ends;
    s->state.arguments_known = true;
    for (size_t k = 0; k < s->state.n_arguments; k++)
      if (nxc_text_all(&s->state.arguments[k], NXC_MARK_UNKNOWN | NXC_MARK_MANY))
        s->state.arguments_known = false;
    return;
  }
}

static void set_shell_options(nxc_shell *s, const call *c) {
  bool sets = c->n_words > 1 && nxc_text_is(&c->words[1], "-s");
  bool changes = sets || (c->n_words > 1 && nxc_text_is(&c->words[1], "-u"));
  for (size_t i = 2; i < c->n_words; i++)
    if (changes && nxc_text_is(&c->words[i], "nullglob")) s->state.drops_patterns = sets;
  s->state.status = changes ? NXC_YES : NXC_MAYBE;
}

enum { MOST_SHIFTED = 1000 };

static void shift(nxc_shell *s, const call *c) {
  size_t n = c->n_words > 1 ? strtoul(string(s, &c->words[1]), NULL, 10) : 1, n_asked = n;
  if (n > s->state.n_arguments) n = s->state.n_arguments;
  bool loops = s->frame != NULL && s->frame->loop; /* who knows how often */
  if (!s->state.arguments_known && !loops && n_asked <= MOST_SHIFTED) s->state.n_shifted += n_asked - n;
  if (n > 0) s->state.arguments += n;
  s->state.n_arguments -= n;
}

/* -- read ------------------------------------------------------------------------------------------------ */

static void assign_fields(nxc_shell *s, const char *const *names, size_t n_names, const nxc_text *line,
                          size_t at) {
  nxc_text rest = *line;
  const char *ifs = nxc_shell_ifs(s);
  for (size_t i = 0; i < n_names; i++) {
    while (rest.n_bytes > 0 && strchr(" \t\n", rest.bytes[0]) && strchr(ifs, rest.bytes[0]))
      rest = nxc_text_part(&rest, 1, rest.n_bytes - 1);
    size_t n = 0;
    while (n < rest.n_bytes && (i + 1 == n_names || strchr(ifs, rest.bytes[n]) == NULL)) n++;
    size_t n_kept = n;
    while (i + 1 == n_names && n_kept > 0 && strchr(" \t\n", rest.bytes[n_kept - 1]) &&
           strchr(ifs, rest.bytes[n_kept - 1]))
      n_kept--;
    nxc_text value = nxc_text_part(&rest, 0, n_kept);
    nxc_shell_set_text(s, names[i], nxc_text_copy(s->arena, &value), at);
    rest = nxc_text_part(&rest, n + (n < rest.n_bytes), rest.n_bytes);
  }
}

static void assign_list(nxc_shell *s, const char *name, const nxc_text *line, size_t at, bool lines) {
  nxc_shell_fields fields = {0};
  nxc_shell_value value = {.kind = NXC_SHELL_ARRAY, .at = at};
  if (lines) {
    for (size_t i = 0, from = 0; i < line->n_bytes; i++) {
      if (line->bytes[i] != '\n') continue;
      nxc_text one = nxc_text_part(line, from, i - from);
      nxc_shell_put(s, &fields, &one, true);
      nxc_shell_finish(s, &fields);
      from = i + 1;
    }
  } else {
    nxc_shell_put_divided(s, &fields, line, true);
    nxc_shell_finish(s, &fields);
  }
  for (size_t i = 0; i < fields.n_items; i++) {
    for (size_t k = 0; k < fields.items[i].n_bytes; k++)
      fields.items[i].marks[k] &= (unsigned char)~NXC_MARK_QUOTED;
    nxc_shell_put_item(s, &value, nxc_arena_printf(s->arena, "%zu", i), fields.items[i]);
  }
  nxc_shell_set(s, name, value);
}

static void read_input(nxc_shell *s, const call *c) {
  const char **names = NULL, *array = NULL;
  size_t n_names = 0;
  bool whole = false, lines = !nxc_text_is(&c->words[0], "read");
  for (size_t i = 1; i < c->n_words; i++) {
    const char *word = string(s, &c->words[i]);
    if (*word == '-' && word[1] != '\0') {
      char last = word[strlen(word) - 1];
      bool takes = strchr(lines ? "dnOsuCc" : "adinNptu", last) != NULL;
      if (takes && i + 1 < c->n_words && last == 'a' && !lines) array = string(s, &c->words[i + 1]);
      whole = whole || last == 'd';
      i += takes;
    } else if (is_name(word)) {
      names = nxc_arena_grow(s->arena, names, n_names, sizeof *names);
      names[n_names++] = word;
    }
  }
  if (lines) array = n_names > 0 ? names[0] : "MAPFILE";
  bool known = s->input != NULL && !nxc_text_all(s->input, NXC_MARK_UNKNOWN) && s->input->n_bytes > 0;
  s->state.status = known && !whole ? NXC_YES : NXC_MAYBE;
  for (size_t i = 0; !known && i < n_names; i++) nxc_shell_set_unknown(s, names[i], c->command->at);
  if (!known && array != NULL) nxc_shell_set_unknown(s, array, c->command->at);
  if (!known) return;
  const char *end = memchr(s->input->bytes, '\n', s->input->n_bytes);
  bool all = whole || lines || end == NULL;
  nxc_text line = nxc_text_part(s->input, 0, all ? s->input->n_bytes : (size_t)(end - s->input->bytes));
  if (array != NULL) assign_list(s, array, &line, c->command->at, lines);
  else if (n_names > 0) assign_fields(s, names, n_names, &line, c->command->at);
}

/* -- leaving --------------------------------------------------------------------------------------------- */

static nxc_truth status_of(nxc_shell *s, const call *c) {
  if (c->n_words < 2) return s->state.status;
  if (nxc_text_any(&c->words[1], NXC_MARK_UNKNOWN)) return NXC_MAYBE;
  return strtol(string(s, &c->words[1]), NULL, 10) == 0 ? NXC_YES : NXC_NO;
}

static void leave(nxc_shell *s, const call *c) {
  nxc_shell_frame *frame = s->frame;
  bool again = nxc_text_is(&c->words[0], "continue"), loop = again || nxc_text_is(&c->words[0], "break");
  size_t levels = loop && c->n_words > 1 ? strtoul(string(s, &c->words[1]), NULL, 10) : 1;
  if (!loop) s->state.status = status_of(s, c);
  if (loop)
    while (frame != NULL && frame->loop && levels-- > 1 && frame->outer != NULL && frame->outer->loop)
      frame = frame->outer;
  else
    while (frame != NULL && frame->loop) frame = frame->outer;
  bool exits = nxc_text_is(&c->words[0], "exit");
  if (loop && (frame == NULL || !frame->loop)) return;
  if (frame != NULL && !exits) nxc_shell_join(s, again ? &frame->again : &frame->leaves);
  s->ended = true;
  s->gave_up = exits && (s->state.status != NXC_YES || nxc_shell_n_launches(s) == 0);
}

/* -- running --------------------------------------------------------------------------------------------- */

static void evaluate(nxc_shell *s, const call *c) {
  nxc_text text = {0};
  for (size_t i = 1; i < c->n_words; i++) {
    if (i > 1) nxc_text_put(s->arena, &text, ' ', c->command->at, 0);
    nxc_text_append(s->arena, &text, &c->words[i]);
  }
  for (size_t i = 0; i < text.n_bytes; i++) text.marks[i] &= (unsigned char)~NXC_MARK_QUOTED;
  nxc_shell_spend(s, text.n_bytes, c->command->at);
  nxc_shell_run_text(s, &text, c->command->at, false);
}

static void read_other(nxc_shell *s, const call *c) {
  s->state.status = NXC_YES;
  if (c->n_words > 1 && nxc_shell_source_file(s, c->words + 1, c->n_words - 1, c->command->at)) return;
  nxc_report(s->sink, "NX5914", NXC_SEVERITY_NOTE, nxc_shell_place(s, c->command->at, 1), NULL,
             "what %s assigns is not read here", c->n_words > 1 ? string(s, &c->words[1]) : "this");
  s->sources = true;
  const nxc_text *name = c->n_words > 1 ? &c->words[1] : NULL;
  if (name != NULL && name->n_bytes > 3 && memcmp(name->bytes + name->n_bytes - 3, ".sh", 3) == 0)
    s->script->reads_script = true;
}

static void run_rest(nxc_shell *s, const call *c) {
  bool asks = c->n_words > 1 && c->words[1].n_bytes > 0 && c->words[1].bytes[0] == '-' &&
              nxc_text_is(&c->words[0], "command");
  s->state.status = asks ? NXC_MAYBE : NXC_YES;
  if (asks || c->n_words < 2) return;
  nxc_shell_run_words(s, c->command, c->words + 1, c->n_words - 1);
  if (nxc_text_is(&c->words[0], "exec")) s->ended = true;
}

static void judge(nxc_shell *s, const call *c) {
  size_t n = c->n_words - 1;
  if (nxc_text_is(&c->words[0], "[") && n > 0 && nxc_text_is(&c->words[n], "]")) n--;
  s->state.status = nxc_shell_test(s, c->words + 1, n, false);
}

static void let(nxc_shell *s, const call *c) {
  int64_t value = 0;
  bool known = true;
  for (size_t i = 1; i < c->n_words; i++)
    known = nxc_shell_sum(s, &c->words[i], c->command->at, &value) && known;
  s->state.status = !known ? NXC_MAYBE : value ? NXC_YES : NXC_NO;
}

static void take_option(nxc_shell *s, const call *c) {
  nxc_shell_take_option(s, c->words, c->n_words, c->command->at);
}

static void succeed(nxc_shell *s, const call *c) {
  (void)c;
  s->state.status = NXC_YES;
}

static void fail(nxc_shell *s, const call *c) {
  (void)c;
  s->state.status = NXC_NO;
}

/* cd - and popd go back, nobody follows where. */
static void change_folder(nxc_shell *s, const call *c) {
  size_t i = 1;
  while (i < c->n_words && c->words[i].n_bytes > 1 && c->words[i].bytes[0] == '-') i++;
  nxc_text unknown = nxc_text_from(s->arena, "$(pwd)", 6, c->command->at, NXC_MARK_UNKNOWN);
  nxc_shell_change_folder(s, i < c->n_words && !nxc_text_is(&c->words[i], "-") ? &c->words[i] : &unknown);
  s->state.status = NXC_YES;
}

static void do_nothing(nxc_shell *s, const call *c) {
  (void)c;
  s->state.status = NXC_MAYBE;
}

static const struct {
  const char *name;
  void (*run)(nxc_shell *s, const call *c);
} builtins[] = {
    {":", succeed},
    {"true", succeed},
    {"false", fail},
    {"cd", change_folder},
    {"pushd", change_folder},
    {"popd", change_folder},
    {"export", declare},
    {"declare", declare},
    {"typeset", declare},
    {"local", declare},
    {"readonly", declare},
    {"unset", unset},
    {"set", set},
    {"shift", shift},
    {"read", read_input},
    {"mapfile", read_input},
    {"readarray", read_input},
    {"return", leave},
    {"exit", leave},
    {"break", leave},
    {"continue", leave},
    {"eval", evaluate},
    {"source", read_other},
    {".", read_other},
    {"exec", run_rest},
    {"command", run_rest},
    {"builtin", run_rest},
    {"[", judge},
    {"test", judge},
    {"let", let},
    {"getopts", take_option},
    {"trap", succeed},
    {"wait", do_nothing},
    {"ulimit", succeed},
    {"umask", succeed},
    {"alias", succeed},
    {"shopt", set_shell_options},
    {"hash", do_nothing},
    {"type", do_nothing},
    {"which", do_nothing},
};

bool nxc_shell_builtin(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words,
                       size_t n_words) {
  const call c = {command, words, n_words};
  for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
    if (!nxc_text_is(&words[0], builtins[i].name)) continue;
    builtins[i].run(s, &c);
    return true;
  }
  return false;
}
