/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/shell/script.h"

#include "compiler/document/names.h"
#include "compiler/config/front/shell/parse.h"
#include "compiler/config/front/shell/shell.h"

#include <string.h>

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

/* A backslash at a script's very end, without a line behind it, is read as nothing. */
static void end_text(nxc_text *text) {
  size_t n = 0;
  while (n < text->n_bytes && text->bytes[text->n_bytes - 1 - n] == '\\') n++;
  text->n_bytes -= n % 2;
}

/* bash takes CR for a letter of the word that it ends, and of what a backslash in front of it escapes. */
static void warn_of_returns(nxc_shell *s) {
  const nxc_source *source = s->texts[0].source;
  const char *at = strstr(source->text, "\r\n");
  if (at == NULL) return;
  nxc_report(s->sink, "NX5927", NXC_SEVERITY_WARNING,
             nxc_shell_place(s, s->texts[0].base + (size_t)(at - source->text), 1),
             "save it with lines that end in LF alone: sed -i 's/\\r$//' FILE",
             "lines end in CR LF, and bash takes the CR for a part of the last word");
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
  end_text(&s->texts[0].text);
  warn_of_returns(s);
  nxc_shell_read_job(s, &s->texts[0].text);
  nxc_shell_run_text(s, &s->texts[0].text, 0, false);
  if (!s->failed) nxc_shell_end_launches(s);
  return !s->failed;
}

bool nxc_script_read_kept(nxc_followed *kept, nxc_arena *arena, const nxc_source *source,
                          const nxc_source *arguments, nxc_sink *sink, nxc_script *script) {
  if (kept == NULL || kept->source != source) return nxc_script_read(arena, source, arguments, sink, script);
  if (kept->findings == NULL) {
    kept->findings = nxc_sink_new(kept->arena);
    kept->good = nxc_script_read(kept->arena, source, arguments, kept->findings, &kept->script);
  }
  nxc_sink_copy(sink, kept->findings);
  *script = kept->script; /* the reader strikes launches out */
  script->launches = nxc_arena_array(arena, script->n_launches, sizeof *script->launches);
  for (size_t i = 0; i < script->n_launches; i++) script->launches[i] = kept->script.launches[i];
  return kept->good;
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
