/* SPDX-License-Identifier: Apache-2.0 */
/* What all that follows a script asks for: places in its texts, findings, and how deep and how far it may go.
 */
#include "compiler/config/front/shell/parse.h"
#include "compiler/config/front/shell/shell.h"
#include "compiler/document/names.h"

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

/* A word of a launch, or what stands behind = in it, for nxc_script_file. */
static void keep_path(nxc_shell *s, const nxc_text *word) {
  const char *equals = memchr(word->bytes, '=', word->n_bytes);
  size_t from = equals ? (size_t)(equals + 1 - word->bytes) : 0;
  nxc_text *path = nxc_arena_alloc(s->arena, sizeof *path);
  *path = nxc_text_part(word, from, word->n_bytes);
  const char *name = nxc_text_string(s->arena, path);
  *nxc_names_slot(s->paths, name, strlen(name)) = path;
}

nxc_launch_word nxc_shell_word_of(nxc_shell *s, const nxc_text *text, size_t at) {
  nxc_launch_word word = {.text = nxc_text_string(s->arena, text)};
  size_t first = text->n_bytes ? text->origins[0] : at,
         last = text->n_bytes ? text->origins[text->n_bytes - 1] : at;
  word.at = nxc_shell_place(s, first, last >= first ? last - first + 1 : 1);
  if (nxc_text_any(text, NXC_MARK_FOLDER)) keep_path(s, text);
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

const nxc_shell_source *nxc_shell_text_at(const nxc_shell *s, size_t offset) {
  size_t i = s->n_texts - 1;
  while (i > 0 && s->texts[i].base > offset) i--;
  return &s->texts[i];
}
