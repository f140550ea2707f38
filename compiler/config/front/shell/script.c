/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/shell/script.h"

#include "compiler/document/names.h"
#include "compiler/config/front/shell/parse.h"
#include "compiler/config/front/shell/shell.h"

#include <string.h>

/* Places are asked for in any order; lines are found by halving. */
nxc_span nxc_shell_place(nxc_shell *s, size_t offset, size_t n_bytes) {
  const nxc_shell_source *text = nxc_shell_text_at(s, offset);
  const nxc_source *source = text->source;
  uint32_t low = 0, high = source->n_lines;
  offset -= text->base;
  if (offset > source->n_bytes) offset = source->n_bytes;
  while (low + 1 < high) {
    uint32_t middle = low + (high - low) / 2;
    if (source->line_start[middle] <= offset) low = middle;
    else high = middle;
  }
  size_t from = source->line_start[low];
  nxc_span at = {.source = source, .line = low + 1, .column = 1};
  if (s->placed.source == source && s->placed.line == at.line && s->placed_offset <= offset) {
    from = s->placed_offset;
    at.column = s->placed.column;
  }
  for (size_t i = from; i < offset; i++) at.column += ((unsigned char)source->text[i] & 0xC0) != 0x80;
  s->placed = at;
  s->placed_offset = offset;
  for (size_t i = offset; i < offset + n_bytes && i < source->n_bytes && source->text[i] != '\n'; i++)
    at.length += ((unsigned char)source->text[i] & 0xC0) != 0x80;
  if (at.length == 0) at.length = 1;
  return at;
}

void nxc_shell_fail(nxc_shell *s, size_t at, const char *problem) {
  if (!s->failed)
    nxc_report(s->sink, "NX5909", NXC_SEVERITY_ERROR, nxc_shell_place(s, at, 1),
               "write it as bash reads it, or put the launch into a script of its own", "%s", problem);
  s->failed = true;
}

void nxc_shell_note(nxc_shell *s, size_t at, const char *text) {
  const char *key = nxc_arena_printf(s->arena, "%zu", at);
  void **noted = nxc_names_slot(s->noted, key, strlen(key));
  if (*noted == NULL && !s->failed)
    nxc_report(s->sink, "NX5914", NXC_SEVERITY_NOTE, nxc_shell_place(s, at, 1), NULL, "%s", text);
  *noted = s;
}

bool nxc_shell_enter(nxc_shell *s, size_t at) {
  if (s->failed) return false;
  if (s->depth >= NXC_SHELL_DEPTH_MAX) {
    nxc_shell_fail(s, at, "this is nested too deeply to be followed");
    return false;
  }
  s->depth++;
  return true;
}

bool nxc_shell_spend(nxc_shell *s, size_t n_bytes, size_t at) {
  s->n_expanded += n_bytes;
  if (s->n_expanded > NXC_SHELL_BYTES_MAX)
    nxc_shell_fail(s, at, "variables make more text of this than arguments may be");
  return !s->failed;
}

bool nxc_shell_ask(nxc_shell *s, size_t number) {
  if (number > s->script->n_asked) s->script->n_asked = number;
  return true;
}

nxc_launch_word nxc_shell_word_of(nxc_shell *s, const nxc_text *text, size_t at) {
  nxc_launch_word word = {.text = nxc_text_string(s->arena, text)};
  size_t first = text->n_bytes ? text->origins[0] : at,
         last = text->n_bytes ? text->origins[text->n_bytes - 1] : at;
  word.at = nxc_shell_place(s, first, last >= first ? last - first + 1 : 1);
  if (nxc_text_any(text, NXC_MARK_FOLDER)) nxc_shell_keep_path(s, text);
  word.from_environment = nxc_text_any(text, NXC_MARK_ENVIRONMENT);
  word.maybe = nxc_text_any(text, NXC_MARK_MAYBE);
  word.many = !word.maybe && nxc_text_all(text, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
  word.expected = true;
  word.argument = nxc_text_any(text, NXC_MARK_ARGUMENT);
  size_t from = 0, n = 0;
  for (size_t i = 0; i < text->n_bytes; i++) {
    if (!(text->marks[i] & NXC_MARK_UNKNOWN) || (text->marks[i] & NXC_MARK_MAYBE)) continue;
    if (!(text->marks[i] & (NXC_MARK_UNDEFINED | NXC_MARK_ARGUMENT))) word.expected = false;
    if (n == 0) from = i;
    if (from + n == i) n++;
  }
  if (n > 0) word.unset = nxc_arena_strndup(s->arena, text->bytes + from, n);
  return word;
}

nxc_shell_command *nxc_shell_read_text(nxc_shell *s, const nxc_text *text, size_t at) {
  nxc_shell_parser parser = {.arena = s->arena, .text = *text, .bare_options = s->depth <= 1};
  nxc_shell_command *command = nxc_shell_parse(&parser);
  if (parser.problem == NULL && parser.n_here > 0) {
    parser.problem = "the text behind << does not end";
    parser.problem_at = at;
  }
  if (parser.problem == NULL) return command;
  nxc_shell_fail(s, parser.problem_at, parser.problem);
  return NULL;
}

static nxc_shell *new_shell(nxc_arena *arena, const nxc_source *source, nxc_sink *sink, nxc_script *script) {
  nxc_shell *s = nxc_arena_alloc(arena, sizeof *s);
  *s = (nxc_shell){.script = script, .sink = sink, .arena = arena};
  s->names = nxc_names_new(arena);
  s->functions = nxc_names_new(arena);
  s->expected = nxc_names_new(arena);
  s->undefined = nxc_names_new(arena);
  s->noted = nxc_names_new(arena);
  s->paths = nxc_names_new(arena);
  nxc_shell_add_source(s, source ? source : nxc_source_new(arena, "", "", 0))->open = true;
  s->state.status = NXC_YES;
  script->shell = s;
  return s;
}

/* The words of a text, in which {} and ends of lines mean nothing. */
static nxc_shell_fields split_words(nxc_shell *s, const nxc_text *text) {
  nxc_shell_parser p = {.arena = s->arena, .text = *text};
  nxc_shell_fields fields = {0};
  s->plain = true;
  while (p.problem == NULL && p.at < p.text.n_bytes) {
    bool blank = nxc_shell_is_blank(nxc_shell_peek(&p, 0));
    nxc_shell_word word = {0};
    if (blank) p.at++;
    else if (nxc_shell_ends_word(nxc_shell_peek(&p, 0))) nxc_shell_put_literal(&p, &word, false, p.at++);
    else word = nxc_shell_parse_word(&p, NXC_END_BLANK);
    nxc_shell_expand(s, &word, &fields);
  }
  if (p.problem != NULL) nxc_shell_fail(s, p.problem_at, p.problem);
  s->plain = false;
  return fields;
}

static void take_arguments(nxc_shell *s, const nxc_source *arguments) {
  const nxc_text text = nxc_shell_add_source(s, arguments)->text;
  nxc_shell_fields fields = split_words(s, &text);
  s->state.arguments = fields.items;
  s->state.n_arguments = fields.n_items;
  s->state.arguments_known = true;
}

bool nxc_script_read(nxc_arena *arena, const nxc_source *source, const nxc_source *arguments, nxc_sink *sink,
                     nxc_script *script) {
  *script = (nxc_script){.arena = arena};
  nxc_shell *s = new_shell(arena, source, sink, script);
  if (arguments != NULL) take_arguments(s, arguments);
  if (strlen(source->text) != source->n_bytes) {
    nxc_shell_fail(s, strlen(source->text), "arguments hold no NUL bytes");
    return false;
  }
  nxc_shell_read_job(s, &s->texts[0].text);
  nxc_shell_run_text(s, &s->texts[0].text, 0, false);
  if (!s->failed) nxc_shell_end_launches(s);
  return !s->failed;
}

bool nxc_script_split(nxc_arena *arena, const nxc_source *source, nxc_sink *sink, nxc_launch_words *words) {
  nxc_script script = {.arena = arena};
  nxc_shell *s = new_shell(arena, source, sink, &script);
  nxc_shell_fields fields = split_words(s, &s->texts[0].text);
  for (size_t i = 0; i < fields.n_items; i++) {
    words->items = nxc_arena_grow(arena, words->items, words->n_items, sizeof *words->items);
    words->items[words->n_items++] = nxc_shell_word_of(s, &fields.items[i], 0);
  }
  return !s->failed;
}

/* -- texts of YAML --------------------------------------------------------------------------------------- */

nxc_launch_word nxc_script_expand(nxc_script *script, const char *text, nxc_span at) {
  nxc_shell *s = script->shell;
  if (s == NULL) s = new_shell(script->arena, at.source, nxc_sink_new(script->arena), script);
  nxc_shell_parser parser = {.arena = script->arena,
                             .text = nxc_text_from(script->arena, text, strlen(text), 0, 0)};
  nxc_shell_word word = {0};
  nxc_shell_parse_quoted(&parser, &word, NXC_END_TEXT, true);
  nxc_text value = parser.text;
  if (parser.problem == NULL) value = nxc_shell_expand_one(s, &word);
  nxc_launch_word made = nxc_shell_word_of(s, &value, 0);
  made.at = at;
  return made;
}

void nxc_script_assign(nxc_script *script, const char *name, nxc_launch_word value) {
  nxc_shell *s = script->shell;
  unsigned char marks = value.unset ? NXC_MARK_UNKNOWN | NXC_MARK_UNDEFINED : 0;
  if (s == NULL) s = new_shell(script->arena, value.at.source, nxc_sink_new(script->arena), script);
  nxc_text text = nxc_text_from(script->arena, value.text, strlen(value.text), 0,
                                (unsigned char)(marks | (value.from_environment ? NXC_MARK_ENVIRONMENT : 0)));
  nxc_shell_set(s, name, (nxc_shell_value){.kind = NXC_SHELL_TEXT, .text = text, .exported = true});
  nxc_launch *launch = nxc_script_collect(script);
  nxc_assigned *all = NULL, one = {.name = name, .at = value.at, .exported = true};
  one.words.items = nxc_arena_alloc(script->arena, sizeof value);
  one.words.items[0] = value;
  one.words.n_items = 1;
  for (size_t i = 0; i < launch->n_assigned; i++) {
    all = nxc_arena_grow(script->arena, all, i, sizeof *all);
    all[i] = launch->assigned[i];
  }
  all = nxc_arena_grow(script->arena, all, launch->n_assigned, sizeof *all);
  all[launch->n_assigned++] = one;
  launch->assigned = all;
}

nxc_launch *nxc_script_collect(nxc_script *script) {
  if (script->n_launches == 0)
    script->launches = nxc_arena_grow(script->arena, NULL, script->n_launches++, sizeof *script->launches);
  return &script->launches[0];
}
