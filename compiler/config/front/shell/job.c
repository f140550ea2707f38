/* SPDX-License-Identifier: Apache-2.0 */
/* What Slurm is told of the job that a command runs in: words of srun and sbatch around it, and #SBATCH
 * lines. They stand behind the words of the command's own launcher, which count more. */
#include "compiler/config/front/shell/shell.h"

#include <stdlib.h>
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

/* ---- variables ---- */

/* sbatch(1), output environment variables: what it sets from which options. */
static const struct {
  const char *variable, *option;
  char letter;
} set_from[] = {{"SLURM_JOB_NUM_NODES", "--nodes", 'N'},
                {"SLURM_NNODES", "--nodes", 'N'},
                {"SLURM_NTASKS", "--ntasks", 'n'},
                {"SLURM_NPROCS", "--ntasks", 'n'},
                {"SLURM_NTASKS_PER_NODE", "--ntasks-per-node", '\0'},
                {"SLURM_TASKS_PER_NODE", "--ntasks-per-node", '\0'},
                {"SLURM_GPUS_PER_NODE", "--gpus-per-node", '\0'},
                {"SLURM_GPUS_ON_NODE", "--gpus-per-node", '\0'},
                {"SLURM_GPUS_ON_NODE", "--gres", '\0'},
                {"SLURM_CPUS_PER_TASK", "--cpus-per-task", 'c'}};

/* --nodes=4, --nodes 4, -N4, -N 4; NULL: the word at `i` is none of these. */
static const nxc_launch_word *value_at(const nxc_launch_words *job, size_t i, const char *option, char letter,
                                       size_t *skipped) {
  const nxc_launch_word *word = &job->items[i], *next = i + 1 < job->n_items ? word + 1 : NULL;
  size_t n = strlen(option);
  bool is_short = letter != '\0' && word->text[0] == '-' && word->text[1] == letter;
  if (!is_short && strncmp(word->text, option, n) != 0) return NULL;
  if (is_short) n = 2;
  *skipped = word->text[n] == '=' ? n + 1 : n;
  if (word->text[n] == '\0') return *skipped = 0, next;
  return word->text[n] == '=' || is_short ? word : NULL;
}

/* Where a kind is named, "a100:4", the number of it. */
static size_t digits_at(const char *text) {
  const char *colon = strrchr(text, ':');
  const char *from = colon ? colon + 1 : text;
  size_t n = strspn(from, "0123456789");
  return n > 0 && from[n] == '\0' ? (size_t)(from - text) : SIZE_MAX;
}

/* NULL: it is not told, or is a range. */
static const char *number_of(const nxc_launch_words *job, const char *variable) {
  for (size_t k = 0; k < sizeof set_from / sizeof *set_from; k++) {
    if (strcmp(set_from[k].variable, variable) != 0) continue;
    for (size_t i = 0, skipped; i < job->n_items; i++) {
      const nxc_launch_word *word = value_at(job, i, set_from[k].option, set_from[k].letter, &skipped);
      if (word == NULL || word->unset != NULL) continue;
      size_t digits = digits_at(word->text + skipped);
      if (digits != SIZE_MAX) return word->text + skipped + digits;
    }
  }
  return NULL;
}

/* Those of a host on all hosts. */
static const char *all_tasks(nxc_shell *s) {
  const char *nodes = number_of(&s->job, "SLURM_NNODES"), *each = number_of(&s->job, "SLURM_NTASKS_PER_NODE");
  if (nodes == NULL || each == NULL || strlen(nodes) > 9 || strlen(each) > 9) return NULL;
  return nxc_arena_printf(s->arena, "%lld", strtoll(nodes, NULL, 10) * strtoll(each, NULL, 10));
}

bool nxc_shell_job_value(nxc_shell *s, const char *variable, size_t at, nxc_text *value) {
  const char *number = number_of(&s->job, variable);
  bool of_tasks = strcmp(variable, "SLURM_NTASKS") == 0 || strcmp(variable, "SLURM_NPROCS") == 0;
  if (number == NULL && of_tasks) number = all_tasks(s);
  if (number == NULL) return false;
  *value = nxc_text_from(s->arena, number, strlen(number), at, 0);
  return true;
}
