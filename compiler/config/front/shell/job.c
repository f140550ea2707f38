/* SPDX-License-Identifier: Apache-2.0 */
/* What Slurm is told of the job that a command runs in: words of srun and sbatch around it, and #SBATCH
 * lines. They stand behind the words of the command's own launcher, which count more. */
#include "compiler/config/front/shell/shell.h"

#include <string.h>

static nxc_launch_words with_word(nxc_shell *s, nxc_launch_words words, const nxc_text *text, size_t at) {
  words.items = nxc_arena_grow(s->arena, words.items, words.n_items, sizeof *words.items);
  words.items[words.n_items++] = nxc_shell_word_of(s, text, at);
  return words;
}

nxc_launch_words nxc_shell_enter_job(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at) {
  nxc_launch_words before = s->job, job = {0};
  if (n_words == 0 || (!nxc_text_is(&words[0], "srun") && !nxc_text_is(&words[0], "sbatch"))) return before;
  for (size_t i = 1; i < n_words; i++) job = with_word(s, job, &words[i], at);
  for (size_t i = 0; i < before.n_items; i++) {
    job.items = nxc_arena_grow(s->arena, job.items, job.n_items, sizeof *job.items);
    job.items[job.n_items++] = before.items[i];
  }
  s->job = job;
  return before;
}

static void read_line(nxc_shell *s, const nxc_text *line) {
  for (size_t from = 0, i = 0; i <= line->n_bytes; i++) {
    if (i < line->n_bytes && strchr(" \t\r", line->bytes[i]) == NULL) continue;
    nxc_text word = nxc_text_part(line, from, i - from);
    if (word.n_bytes > 0) s->job = with_word(s, s->job, &word, word.origins[0]);
    from = i + 1;
  }
}

/* The last line that says something counts, so they are read from the last on. */
void nxc_shell_read_job(nxc_shell *s, const nxc_text *text) {
  static const char mark[] = "#SBATCH ";
  size_t n_mark = sizeof mark - 1;
  for (size_t end = text->n_bytes, i = text->n_bytes + 1; i-- > 0;) {
    if (i > 0 && text->bytes[i - 1] != '\n') continue;
    nxc_text line = nxc_text_part(text, i, end - i);
    bool marked = line.n_bytes > n_mark && memcmp(line.bytes, mark, n_mark) == 0;
    if (marked) line = nxc_text_part(&line, n_mark, line.n_bytes);
    if (marked) read_line(s, &line);
    end = i > 0 ? i - 1 : 0;
  }
}
