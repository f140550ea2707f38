/* SPDX-License-Identifier: Apache-2.0 */
/* Other scripts: those that a script reads with `source`, those that it runs (bash x.sh, sbatch x.sh), and
 * texts that it hands to a shell.
 *
 * Every text has a base: the bytes of all of them have one row of numbers, so that whatever is made of them
 * knows where it was written. */
#include "compiler/config/front/shell/parse.h"
#include "compiler/config/front/shell/shell.h"

#include <string.h>

enum { TEXTS_MAX = 200 };

static const char *folder_of(nxc_arena *arena, const char *name) {
  const char *slash = strrchr(name, '/');
  if (slash == NULL) return ".";
  return slash == name ? "/" : nxc_arena_strndup(arena, name, (size_t)(slash - name));
}

nxc_shell_source *nxc_shell_add_source(nxc_shell *s, const nxc_source *source) {
  const nxc_shell_source *last = s->n_texts > 0 ? &s->texts[s->n_texts - 1] : NULL;
  size_t base = last ? last->base + last->source->n_bytes + 1 : 0;
  s->texts = nxc_arena_grow(s->arena, s->texts, s->n_texts, sizeof *s->texts);
  nxc_shell_source *added = &s->texts[s->n_texts++];
  *added = (nxc_shell_source){.source = source, .base = base, .folder = folder_of(s->arena, source->name)};
  added->text = nxc_text_from(s->arena, source->text, source->n_bytes, 0, 0);
  for (size_t i = 0; i < source->n_bytes; i++) added->text.origins[i] = (uint32_t)(base + i);
  return added;
}

/* NULL: it cannot be read, or is being followed already. */
static nxc_shell_source *open_file(nxc_shell *s, const char *path) {
  for (size_t i = 0; i < s->n_texts; i++)
    if (strcmp(s->texts[i].source->name, path) == 0) return s->texts[i].open ? NULL : &s->texts[i];
  if (s->n_texts == TEXTS_MAX) return NULL;
  const nxc_source *source = nxc_source_read_file(s->arena, path, NXC_SHELL_BYTES_MAX);
  if (source == NULL || strlen(source->text) != source->n_bytes) return NULL;
  return nxc_shell_add_source(s, source);
}

/* The commands of a text; NULL (noted): bash cannot read them. */
static nxc_shell_command *read_commands(nxc_shell *s, const nxc_text *text, const char *name, size_t at) {
  nxc_shell_parser parser = {.arena = s->arena, .text = *text};
  nxc_shell_command *commands = nxc_shell_parse(&parser);
  if (parser.problem == NULL && parser.n_here == 0) return commands;
  const char *problem = parser.problem ? parser.problem : "the text behind << does not end";
  nxc_shell_note(s, at, nxc_arena_printf(s->arena, "%s is not followed: %s", name, problem));
  return NULL;
}

static nxc_shell_command *open_commands(nxc_shell *s, const nxc_text *path, size_t at, size_t *text) {
  const char *name = nxc_shell_find_file(s, path);
  nxc_shell_source *found = name ? open_file(s, name) : NULL;
  if (found == NULL || !nxc_shell_spend(s, found->text.n_bytes, at)) return NULL;
  *text = (size_t)(found - s->texts);
  return read_commands(s, &found->text, name, at);
}

/* -- source ---------------------------------------------------------------------------------------------- */

bool nxc_shell_source_file(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at) {
  size_t text;
  nxc_shell_command *commands = open_commands(s, &words[0], at, &text);
  if (commands == NULL || !nxc_shell_enter(s, at)) return s->failed;
  nxc_shell_frame frame = {.outer = s->frame};
  const nxc_shell_state before = s->state;
  s->frame = &frame;
  s->texts[text].open = true;
  if (n_words > 1) {
    s->state.arguments = words + 1;
    s->state.n_arguments = n_words - 1;
    s->state.arguments_known = true;
  }
  nxc_shell_run(s, commands);
  nxc_shell_join(s, &frame.leaves);
  nxc_shell_take(s, &frame.leaves);
  if (n_words > 1) {
    s->state.arguments = before.arguments;
    s->state.n_arguments = before.n_arguments;
    s->state.arguments_known = before.arguments_known;
  }
  s->texts[text].open = false;
  s->frame = frame.outer;
  s->depth--;
  return true;
}

/* -- scripts that are run -------------------------------------------------------------------------------- */

/* In a shell that has the exported variables alone. */
static void run_child(nxc_shell *s, const nxc_shell_command *commands, const nxc_text *arguments,
                      size_t n_arguments) {
  nxc_shell_state before = nxc_shell_snapshot(s);
  for (size_t i = 0; i < s->state.n_values; i++)
    if (before.values[i] != NULL && !before.values[i]->exported && *s->name_list[i] != NXC_SHELL_FILE)
      s->state.values[i] = NULL;
  s->state.arguments = arguments;
  s->state.n_arguments = n_arguments;
  s->state.arguments_known = true;
  nxc_shell_run_apart(s, commands);
  nxc_shell_come_back(s, before);
}

bool nxc_shell_run_child(nxc_shell *s, const nxc_text *given, size_t at) {
  nxc_text text = nxc_text_copy(s->arena, given);
  for (size_t i = 0; i < text.n_bytes; i++) text.marks[i] &= (unsigned char)~NXC_MARK_QUOTED;
  if (!nxc_shell_spend(s, text.n_bytes, at) || !nxc_shell_enter(s, at)) return true;
  nxc_shell_command *commands = read_commands(s, &text, "what a shell is given", at);
  if (commands != NULL) run_child(s, commands, NULL, 0);
  s->depth--;
  return true;
}

bool nxc_shell_ends_in_sh(const nxc_text *word) {
  static const char *const endings[] = {".sh", ".bash", ".slurm", ".sbatch"};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t n = strlen(endings[i]);
    if (word->n_bytes > n && memcmp(word->bytes + word->n_bytes - n, endings[i], n) == 0) return true;
  }
  return false;
}

static bool is_script(nxc_shell *s, const nxc_text *word) {
  if (word->n_bytes == 0 || word->bytes[0] == '-') return false;
  return nxc_shell_ends_in_sh(word) || nxc_shell_written_file(s, word) != NULL;
}

bool nxc_shell_run_script(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at) {
  size_t i = 0, text = 0;
  while (i < n_words && !is_script(s, &words[i])) i++;
  if (i == n_words || !nxc_shell_enter(s, at)) return false;
  const nxc_text *written = nxc_shell_written_file(s, &words[i]);
  nxc_shell_command *commands = written ? read_commands(s, written, "what was written", at)
                                        : open_commands(s, &words[i], at, &text);
  if (commands != NULL && !s->failed) {
    if (written == NULL) s->texts[text].open = true;
    nxc_launch_words job = s->job;
    if (nxc_text_is(&words[0], "sbatch")) nxc_shell_read_job(s, written ? written : &s->texts[text].text);
    run_child(s, commands, words + i + 1, n_words - i - 1);
    s->job = job;
    if (written == NULL) s->texts[text].open = false;
  }
  s->depth--;
  return commands != NULL;
}

/* The lines that a shell, or what hands in jobs, reads from its input. */
bool nxc_shell_run_input(nxc_shell *s, const nxc_text *words, size_t at) {
  static const char *const readers[] = {"bash", "sh", "sbatch", "qsub", "bsub", "ssh", "srun"};
  bool reads = false;
  for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
    reads = reads || nxc_text_is(words, readers[i]);
  if (!reads || s->input == NULL || nxc_text_all(s->input, NXC_MARK_UNKNOWN)) return false;
  nxc_text text = nxc_text_copy(s->arena, s->input);
  s->input = NULL;
  for (size_t i = 0; i < text.n_bytes; i++) text.marks[i] &= (unsigned char)~NXC_MARK_QUOTED;
  if (!nxc_shell_spend(s, text.n_bytes, at) || !nxc_shell_enter(s, at)) return true;
  nxc_shell_command *commands = read_commands(s, &text, "what it reads", at);
  nxc_launch_words job = s->job;
  nxc_shell_read_job(s, &text);
  if (commands != NULL) run_child(s, commands, NULL, 0);
  s->job = job;
  s->depth--;
  return true;
}
