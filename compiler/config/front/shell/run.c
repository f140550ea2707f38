/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a shell text, followed one after the other. */
#include "compiler/document/names.h"
#include "compiler/config/front/shell/parse.h"
#include "compiler/config/front/shell/shell.h"

#include <ctype.h>
#include <string.h>

/* -- assignments ----------------------------------------------------------------------------------------- */

static nxc_text for_keeping(nxc_shell *s, const nxc_text *text, bool many) {
  nxc_text kept = nxc_text_copy(s->arena, text);
  for (size_t i = 0; i < kept.n_bytes; i++) {
    kept.marks[i] &= (unsigned char)~NXC_MARK_QUOTED;
    if (many && (kept.marks[i] & NXC_MARK_UNKNOWN)) kept.marks[i] |= NXC_MARK_MANY;
  }
  return kept;
}

static size_t next_index(const nxc_shell_value *value) {
  size_t index = 0;
  const char *key = value->n_items ? value->items[value->n_items - 1].key : NULL;
  for (; key != NULL && isdigit((unsigned char)*key) && index < 100000000; key++)
    index = index * 10 + (size_t)(*key - '0');
  return value->n_items ? index + 1 : 0;
}

static void copy_items(nxc_shell *s, nxc_shell_value *value, const nxc_shell_value *from) {
  value->items = NULL;
  value->n_items = 0;
  for (size_t i = 0; i < from->n_items; i++) {
    value->items = nxc_arena_grow(s->arena, value->items, value->n_items, sizeof *value->items);
    value->items[value->n_items++] = from->items[i];
  }
  nxc_shell_spend(s, from->n_items, from->at);
}

/* The array that a name has, as one that may be changed. What was not read may have begun it. */
static nxc_shell_value array_of(nxc_shell *s, const char *name, size_t at) {
  const nxc_shell_value *before = nxc_shell_find(s, name);
  nxc_shell_value value = {.kind = NXC_SHELL_ARRAY, .at = at};
  if (before == NULL && s->sources)
    nxc_shell_put_item(s, &value, "0",
                       nxc_text_from(s->arena, name, strlen(name), at, NXC_MARK_UNKNOWN | NXC_MARK_MANY));
  if (before == NULL) return value;
  if (before->kind == NXC_SHELL_TABLE) value.kind = NXC_SHELL_TABLE;
  if (before->kind == NXC_SHELL_TEXT) nxc_shell_put_item(s, &value, "0", before->text);
  else copy_items(s, &value, before);
  return value;
}

static const char *key_text(nxc_shell *s, const nxc_shell_word *subscript, bool table) {
  nxc_text text = nxc_shell_expand_one(s, subscript);
  int64_t index;
  if (nxc_text_any(&text, NXC_MARK_UNKNOWN)) return NULL;
  if (table) return nxc_text_string(s->arena, &text);
  return nxc_shell_sum(s, &text, subscript->at, &index) && index >= 0 && index < 100000000
             ? nxc_arena_printf(s->arena, "%lld", (long long)index)
             : NULL;
}

static void assign_array(nxc_shell *s, const nxc_shell_assignment *a, nxc_shell_value *value) {
  const nxc_shell_value *before = nxc_shell_find(s, a->name);
  bool table = before != NULL && before->kind == NXC_SHELL_TABLE;
  if (a->appends) *value = array_of(s, a->name, a->at);
  else *value = (nxc_shell_value){.kind = table ? NXC_SHELL_TABLE : NXC_SHELL_ARRAY, .at = a->at};
  for (size_t i = 0; i < a->n_items && !s->failed; i++) {
    nxc_shell_fields fields = {0};
    if (a->subscripts[i] != NULL) {
      const char *key = key_text(s, a->subscripts[i], table);
      nxc_text text = nxc_shell_expand_one(s, &a->items[i]);
      if (key != NULL) nxc_shell_put_item(s, value, key, for_keeping(s, &text, true));
      continue;
    }
    nxc_shell_expand(s, &a->items[i], &fields);
    for (size_t k = 0; k < fields.n_items; k++)
      nxc_shell_put_item(s, value, nxc_arena_printf(s->arena, "%zu", next_index(value)),
                         for_keeping(s, &fields.items[k], false));
  }
}

static void assign_text(nxc_shell *s, const nxc_shell_assignment *a, nxc_shell_value *value) {
  nxc_text given = nxc_shell_expand_one(s, &a->value);
  const nxc_shell_value *before = nxc_shell_find(s, a->name);
  bool number = before != NULL && before->integer;
  nxc_text text = for_keeping(s, &given, true), whole = {0};
  *value = (nxc_shell_value){.kind = NXC_SHELL_TEXT, .at = a->at, .integer = number};
  bool array = before != NULL && (before->kind == NXC_SHELL_ARRAY || before->kind == NXC_SHELL_TABLE);
  const char *key = a->subscript ? key_text(s, a->subscript, before && before->kind == NXC_SHELL_TABLE) : "0";
  const nxc_shell_item *item = array && key ? nxc_shell_item_of(before, key) : NULL;
  int64_t sum;
  if (number && !a->appends && nxc_shell_sum(s, &text, a->at, &sum)) {
    const char *shown = nxc_arena_printf(s->arena, "%lld", (long long)sum);
    text = nxc_text_from(s->arena, shown, strlen(shown), a->at, 0);
  }
  if (a->appends) {
    if (item != NULL) nxc_text_append(s->arena, &whole, &item->text);
    else if (before != NULL && before->kind == NXC_SHELL_TEXT)
      nxc_text_append(s->arena, &whole, &before->text);
    int64_t x, y;
    if (number && nxc_shell_sum(s, &whole, a->at, &x) && nxc_shell_sum(s, &text, a->at, &y)) {
      const char *shown = nxc_arena_printf(s->arena, "%lld", (long long)(x + y));
      text = nxc_text_from(s->arena, shown, strlen(shown), a->at, 0);
    } else {
      if (!nxc_shell_spend(s, whole.n_bytes, a->at)) return;
      nxc_text_append(s->arena, &whole, &text);
      text = whole;
    }
  }
  if (array || a->subscript != NULL) {
    *value = array_of(s, a->name, a->at);
    if (key != NULL) nxc_shell_put_item(s, value, key, text);
    else
      nxc_shell_put_item(
          s, value, "99999999",
          (nxc_text_from(s->arena, a->name, strlen(a->name), a->at, NXC_MARK_UNKNOWN | NXC_MARK_MANY)));
  } else {
    value->text = text;
  }
}

void nxc_shell_assign(nxc_shell *s, const nxc_shell_assignment *a, bool exported, bool local) {
  nxc_shell_value value;
  if (a->array) assign_array(s, a, &value);
  else assign_text(s, a, &value);
  value.exported = exported;
  if (local) nxc_shell_set_local(s, a->name);
  if (!s->failed) nxc_shell_set(s, a->name, value);
}

/* -- simple commands ------------------------------------------------------------------------------------- */

/* The blanks around the = behind a name go. */
static nxc_repair without_blanks(nxc_shell *s, nxc_span name) {
  if (name.source == NULL) return (nxc_repair){0};
  size_t begin = nxc_span_offset(name, true), end = begin;
  const char *text = name.source->text;
  end += strspn(text + end, " \t");
  if (text[end] != '=') return (nxc_repair){0};
  end++;
  end += strspn(text + end, " \t");
  const nxc_edit edit = {name.source, begin, end, "="};
  return nxc_repair_copy(s->arena, &(nxc_repair){&edit, 1, true});
}

/* A = 8 is a command named A; bash finds none. */
static bool is_spaced_assignment(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words,
                                 size_t n_words) {
  const char *name = nxc_text_string(s->arena, &words[0]);
  bool plain = *name != '\0' && !isdigit((unsigned char)*name) && n_words >= 2 &&
               !nxc_text_any(&words[0], NXC_MARK_UNKNOWN);
  for (const char *c = name; plain && *c != '\0'; c++) plain = nxc_shell_is_name(*c);
  if (!plain || words[1].n_bytes == 0 || words[1].bytes[0] != '=' ||
      nxc_names_find(s->functions, name, strlen(name)))
    return false;
  const char *value =
      n_words > 2 ? nxc_text_string(s->arena, &words[2]) : nxc_text_string(s->arena, &words[1]) + 1;
  nxc_span at = nxc_shell_place(s, command->at, strlen(name));
  nxc_report_repair(s->sink, "NX5919", NXC_SEVERITY_ERROR, at,
                    nxc_arena_printf(s->arena, "write %s=%s, without blanks", name, value),
                    n_words <= 3 ? without_blanks(s, at) : (nxc_repair){0},
                    "this runs a command named %s: bash assigns only where no blank stands around =", name);
  nxc_shell_set_unknown(s, name, command->at);
  s->state.status = NXC_NO;
  return true;
}

/* What sets things up is taken to succeed; of all else nothing is known. */
static nxc_truth outcome(const char *name) {
  static const char *const good[] = {"mkdir", "rm",   "cp",  "mv",   "ln",     "touch", "chmod",
                                     "sleep", "sync", "pip", "pip3", "module", "conda"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (strcmp(good[i], name) == 0) return NXC_YES;
  return NXC_MAYBE;
}

/* Of a text that holds arguments alone every command is one of them. */
static void keep_words(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words,
                       size_t n_words) {
  nxc_launch_words *kept = &s->options;
  for (size_t i = 0; i < n_words; i++) {
    kept->items = nxc_arena_grow(s->arena, kept->items, kept->n_items, sizeof *kept->items);
    kept->items[kept->n_items] = nxc_shell_word_of(s, &words[i], command->at);
    kept->items[kept->n_items++].first = i == 0;
  }
}

static bool call(nxc_shell *s, const char *name, const nxc_text *words, size_t n_words, size_t at) {
  const nxc_shell_command *body = nxc_names_find(s->functions, name, strlen(name));
  if (body == NULL) return false;
  if (!nxc_shell_enter(s, at)) return true;
  nxc_shell_frame frame = {.outer = s->frame};
  const nxc_text *arguments = s->state.arguments;
  size_t n_arguments = s->state.n_arguments;
  bool known = s->state.arguments_known;
  s->frame = &frame;
  s->state.arguments = words + 1;
  s->state.n_arguments = n_words - 1;
  s->state.arguments_known = true;
  nxc_shell_run(s, body);
  nxc_shell_join(s, &frame.leaves);
  nxc_shell_take(s, &frame.leaves);
  for (size_t i = 0; i < frame.n_locals; i++)
    if (frame.locals[i].name < s->state.n_values)
      s->state.values[frame.locals[i].name] = frame.locals[i].before;
  s->state.arguments = arguments;
  s->state.n_arguments = n_arguments;
  s->state.arguments_known = known;
  s->frame = frame.outer;
  s->depth--;
  return true;
}

void nxc_shell_run_words(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words,
                         size_t n_words) {
  if (n_words == 0 || s->failed) return;
  const char *name = nxc_text_string(s->arena, &words[0]);
  bool known = !nxc_text_any(&words[0], NXC_MARK_UNKNOWN);
  if (strncmp(name, "--", 2) == 0) {
    keep_words(s, command, words, n_words);
    return;
  }
  if (known && call(s, name, words, n_words, command->at)) return;
  if (known && nxc_shell_builtin(s, command, words, n_words)) return;
  if (known && nxc_shell_prints(s, words, n_words, command->at)) return;
  if (known && is_spaced_assignment(s, command, words, n_words)) return;
  keep_words(s, command, words, n_words);
  nxc_shell_launch(s, command, words, n_words);
  nxc_text unknown = nxc_text_from(s->arena, "$(...)", 6, command->at, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
  nxc_shell_print(s, &unknown);
  s->state.status = outcome(name);
}

static void run_with(nxc_shell *s, const nxc_shell_command *command, const nxc_shell_fields *fields) {
  const nxc_shell_value **before = nxc_arena_array(s->arena, command->n_assignments + 1, sizeof(void *));
  for (size_t i = 0; i < command->n_assignments; i++) {
    const nxc_shell_assignment *a = &command->assignments[i];
    nxc_shell_number(s, a->name);
    before[i] = nxc_shell_find(s, a->name);
    nxc_shell_assign(s, a, true, false);
  }
  nxc_shell_run_words(s, command, fields->items, fields->n_items);
  for (size_t i = command->n_assignments; i-- > 0;) {
    size_t number = nxc_shell_number(s, command->assignments[i].name);
    if (number < s->state.n_values) s->state.values[number] = before[i];
  }
}

static void run_simple(nxc_shell *s, const nxc_shell_command *command) {
  nxc_shell_fields fields = {0};
  s->state.status = NXC_YES;
  for (size_t i = 0; i < command->n_words; i++) {
    if (command->declared[i] != NULL) continue;
    nxc_shell_expand(s, &command->words[i], &fields);
  }
  if (s->failed) return;
  if (fields.n_items > 0) {
    run_with(s, command, &fields);
    return;
  }
  for (size_t i = 0; i < command->n_assignments; i++)
    nxc_shell_assign(s, &command->assignments[i], false, false);
  if (command->n_words == 0 && command->n_assignments == 0 && command->n_redirects > 0) { /* $(<file) */
    nxc_text unknown = nxc_text_from(s->arena, "$(<)", 4, command->at, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
    nxc_shell_print(s, &unknown);
  }
}

/* -- other kinds ----------------------------------------------------------------------------------------- */

static void run_pipe(nxc_shell *s, const nxc_shell_command *command) {
  const nxc_text *input = s->input;
  nxc_text *passed = NULL;
  bool captures = s->captures;
  for (size_t i = 0; i < command->n_children && !s->failed; i++) {
    bool last = i + 1 == command->n_children;
    if (command->n_children == 1) {
      nxc_shell_run(s, command->children[0]);
      break;
    }
    nxc_text output = s->state.output;
    if (passed != NULL) s->input = passed;
    s->captures = captures || !last;
    if (!last) s->state.output = (nxc_text){0};
    nxc_shell_run_apart(s, command->children[i]);
    if (last) break;
    passed = nxc_arena_alloc(s->arena, sizeof *passed);
    *passed = s->state.output;
    s->state.output = output;
  }
  s->input = input;
  s->captures = captures;
  if (command->negated) s->state.status = nxc_truth_not(s->state.status);
}

static void run_test(nxc_shell *s, const nxc_shell_command *command) {
  nxc_text *words = nxc_arena_array(s->arena, command->n_words + 1, sizeof *words);
  s->testing = true;
  for (size_t i = 0; i < command->n_words; i++) words[i] = nxc_shell_expand_one(s, &command->words[i]);
  s->testing = false;
  s->state.status = nxc_shell_test(s, words, command->n_words, true);
}

static void run_sum(nxc_shell *s, const nxc_shell_command *command) {
  int64_t value;
  nxc_text sum = nxc_shell_expand_one(s, &command->words[0]);
  bool known = nxc_shell_sum(s, &sum, command->at, &value);
  s->state.status = !known ? NXC_MAYBE : value ? NXC_YES : NXC_NO;
}

static void run_list(nxc_shell *s, const nxc_shell_command *command) {
  for (size_t i = 0; i < command->n_children && !s->ended && !s->failed; i++) {
    if (command->children[i]->background) nxc_shell_run_apart(s, command->children[i]);
    else nxc_shell_run(s, command->children[i]);
  }
}

static void run_kind(nxc_shell *s, const nxc_shell_command *command) {
  switch (command->kind) {
  case NXC_COMMAND_SIMPLE: run_simple(s, command); break;
  case NXC_COMMAND_LIST: run_list(s, command); break;
  case NXC_COMMAND_PIPE: run_pipe(s, command); break;
  case NXC_COMMAND_AND:
  case NXC_COMMAND_OR: nxc_shell_run_either(s, command); break;
  case NXC_COMMAND_IF: nxc_shell_run_if(s, command); break;
  case NXC_COMMAND_CASE: nxc_shell_run_case(s, command); break;
  case NXC_COMMAND_FOR: nxc_shell_run_for(s, command); break;
  case NXC_COMMAND_COUNT: nxc_shell_run_count(s, command); break;
  case NXC_COMMAND_WHILE: nxc_shell_run_while(s, command); break;
  case NXC_COMMAND_GROUP: nxc_shell_run(s, command->children[0]); break;
  case NXC_COMMAND_SUBSHELL: nxc_shell_run_apart(s, command->children[0]); break;
  case NXC_COMMAND_FUNCTION:
    *nxc_names_slot(s->functions, command->name, strlen(command->name)) = command->children[0];
    s->state.status = NXC_YES;
    break;
  case NXC_COMMAND_SUM: run_sum(s, command); break;
  case NXC_COMMAND_TEST: run_test(s, command); break;
  }
}

void nxc_shell_run(nxc_shell *s, const nxc_shell_command *command) {
  if (s->failed || s->ended) return;
  if (!nxc_shell_enter(s, command->at)) return;
  if (++s->n_followed == NXC_SHELL_COMMANDS_MAX)
    nxc_report(s->sink, "NX5914", NXC_SEVERITY_WARNING, nxc_shell_place(s, command->at, 1),
               "put the launch into a script of its own",
               "this script runs too long to be followed: what comes behind this is not judged");
  if (s->n_followed >= NXC_SHELL_COMMANDS_MAX) {
    s->ended = true;
    s->depth--;
    return;
  }
  const nxc_text *input = s->input;
  bool captures = s->captures;
  nxc_shell_redirect_input(s, command);
  nxc_text path = {0}, output = s->state.output;
  const nxc_shell_redirect *written = nxc_shell_written(s, command, &path);
  if (written != NULL) {
    s->captures = true;
    s->state.output = (nxc_text){0};
  }
  run_kind(s, command);
  if (written != NULL) {
    nxc_shell_keep_written(s, &path, &s->state.output, written->appends);
    s->state.output = output;
  }
  s->input = input;
  s->captures = captures;
  s->depth--;
}

nxc_text nxc_shell_run_taken(nxc_shell *s, const nxc_shell_command *command) {
  nxc_text before = s->state.output;
  bool captures = s->captures, testing = s->testing;
  s->state.output = (nxc_text){0};
  s->captures = true;
  s->testing = false;
  nxc_shell_run_apart(s, command);
  nxc_text output = s->state.output;
  s->state.output = before;
  s->captures = captures;
  s->testing = testing;
  while (output.n_bytes > 0 && output.bytes[output.n_bytes - 1] == '\n' &&
         !(output.marks[output.n_bytes - 1] & NXC_MARK_UNKNOWN))
    output.n_bytes--;
  return output;
}

void nxc_shell_run_text(nxc_shell *s, const nxc_text *text, size_t at, bool apart) {
  if (!nxc_shell_enter(s, at)) return;
  nxc_shell_command *command = nxc_shell_read_text(s, text, at);
  if (command != NULL && apart) nxc_shell_run_apart(s, command);
  else if (command != NULL) nxc_shell_run(s, command);
  s->depth--;
}
