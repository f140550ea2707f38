/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/supervise.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/files/fault.h"
#include "runtime/files/file.h"
#include "runtime/train.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORDS = 256, WORD_BYTES = 4096, MOST_RESTARTS = 1000000, IDLE_BEFORE_FALLBACK = 2 };
static const double LONGEST_WAIT_S = 60;
static const char USAGE[] =
    "usage: nxrun --restarts N [--launcher COMMAND] [--fallback PLAN] [--backoff SECONDS] PLAN [option of "
    "nxrun]...\n"
    "Starts a run, and after a failure again, with --resume; N times at most.\n"
    "  --launcher COMMAND  instead of mpiexec -n {ranks}, with the ranks of the plan; no shell reads it\n"
    "  --fallback PLAN     instead of PLAN where it brings no new checkpoint twice in a row\n"
    "  --backoff SECONDS   first wait before a restart (1); it doubles while no new checkpoint comes\n";

typedef struct supervisor {
  uint64_t n_restarts;
  const char *launcher, *fallback, *plan;
  char **options; /* of the run */
  int n_options;
  double first_wait_s;
  char self[WORD_BYTES];
} supervisor;

static const int handed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
enum { N_HANDED_ON = sizeof handed_on / sizeof *handed_on };
static volatile sig_atomic_t child, told_to_end;

static void hand_on(int number) {
  if (number != SIGUSR1) told_to_end = number;
  if (child > 0) kill((pid_t)child, number);
}

static bool parse_number(const char *text, double most, double *number) {
  char *end;
  *number = strtod(text, &end);
  return *end == '\0' && end != text && *number >= 0 && *number <= most;
}

static bool parse(int argc, char **argv, supervisor *s) {
  double number;
  int at = 0;
  *s = (supervisor){.first_wait_s = 1};
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    const char *value = argv[at + 1];
    if (strcmp(argv[at], "--launcher") == 0) s->launcher = value;
    else if (strcmp(argv[at], "--fallback") == 0) s->fallback = value;
    else if (strcmp(argv[at], "--backoff") == 0 && parse_number(value, 3600, &number))
      s->first_wait_s = number;
    else if (strcmp(argv[at], "--restarts") == 0 && parse_number(value, MOST_RESTARTS, &number))
      s->n_restarts = (uint64_t)number;
    else return false;
  }
  if (at >= argc || argv[at][0] == '-') return false;
  s->plan = argv[at];
  s->options = argv + at + 1, s->n_options = argc - at - 1;
  ssize_t n = readlink("/proc/self/exe", s->self, sizeof s->self - 1);
  return n > 0 && s->n_options < MOST_WORDS / 2;
}

/* ---- one start ---- */

/* The words of a launcher; {ranks} in one becomes the number. */
static int add_words(const char *launcher, uint32_t n_ranks, char *room, size_t n_room, char **words) {
  int n = 0;
  size_t used = 0;
  for (const char *at = launcher; *at && n < MOST_WORDS / 4;) {
    size_t length = strcspn(at, " \t");
    const char *ranks = strstr(at, "{ranks}");
    if (length > 0) {
      words[n++] = room + used;
      bool has = ranks && ranks < at + length;
      int printed = has ? snprintf(room + used, n_room - used, "%.*s%u%.*s", (int)(ranks - at), at, n_ranks,
                                   (int)(at + length - ranks - 7), ranks + 7)
                        : snprintf(room + used, n_room - used, "%.*s", (int)length, at);
      if (printed < 0 || used + (size_t)printed + 1 >= n_room) return -1;
      used += (size_t)printed + 1;
    }
    at += length + (at[length] ? 1 : 0);
  }
  return n;
}

static bool has_option(const supervisor *s, const char *name) {
  for (int i = 0; i < s->n_options; i++)
    if (strcmp(s->options[i], name) == 0) return true;
  return false;
}

static int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return NXR_EXIT_FAILED;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void catch_signals(void (*handler)(int)) {
  for (size_t i = 0; i < N_HANDED_ON; i++) {
    struct sigaction usual, action = {.sa_handler = handler};
    sigaction(handed_on[i], NULL, &usual);
    if (usual.sa_handler != SIG_IGN || handed_on[i] == SIGUSR1) sigaction(handed_on[i], &action, NULL);
  }
}

/* Signals wait meanwhile: one that comes before the process has its number, or its own program, must not be
 * lost. */
static pid_t start(char **words) {
  sigset_t held, usual;
  sigfillset(&held);
  sigprocmask(SIG_BLOCK, &held, &usual);
  fflush(NULL);
  pid_t process = told_to_end ? -1 : fork();
  child = process > 0 ? process : 0;
  if (process == 0) catch_signals(SIG_DFL);
  sigprocmask(SIG_SETMASK, &usual, NULL);
  if (process != 0) return process;
  execvp(words[0], words);
  nxr_print(stderr, "nxrun: cannot start %s: %s\n", words[0], strerror(errno));
  _exit(NXR_EXIT_USAGE);
}

static int run_once(const supervisor *s, const char *plan, uint32_t n_ranks, bool resume) {
  static char resumes[] = "--resume";
  char *words[MOST_WORDS], room[WORD_BYTES];
  const char *launcher = s->launcher ? s->launcher : n_ranks > 1 ? "mpiexec -n {ranks}" : "";
  int n = add_words(launcher, n_ranks, room, sizeof room, words);
  if (n < 0) return NXR_EXIT_USAGE;
  words[n++] = (char *)(uintptr_t)s->self, words[n++] = (char *)(uintptr_t)plan;
  for (int i = 0; i < s->n_options; i++) words[n++] = s->options[i];
  if (resume && !has_option(s, "--resume")) words[n++] = resumes;
  words[n] = NULL;
  pid_t process = start(words);
  int status = process > 0 ? wait_for(process) : told_to_end ? NXR_EXIT_STOPPED : NXR_EXIT_FAILED;
  child = 0;
  return status;
}

/* ---- again and again ---- */

/* How many steps the run's newest checkpoint has behind it, and how many ranks a start has. */
static bool look(const supervisor *s, const char *plan, uint32_t *n_ranks, uint64_t *newest) {
  nxr_file file;
  nxr_fault fault = {""};
  if (!nxr_file_open(plan, NULL, &file, &fault)) {
    nxr_print(stderr, "nxrun: %s\n", fault.text);
    return false;
  }
  const char *directory = nx_plan_text(&file.plan, file.plan.run_names->directory);
  for (int i = 0; i + 1 < s->n_options; i++)
    if (strcmp(s->options[i], "--dir") == 0) directory = s->options[i + 1];
  *n_ranks = file.plan.run->n_ranks, *newest = 0;
  nxr_folder_newest(directory, UINT64_MAX, newest);
  nxr_file_close(&file);
  return true;
}

static bool ends(int status) {
  return status == NXR_EXIT_OK || status == NXR_EXIT_USAGE || status == NXR_EXIT_STOPPED;
}

/* The status of a run that was told to end. One that was still starting, or was told twice, dies of the
 * signal, and launchers say so in their own ways: what its newest checkpoint has is safe, so it may be
 * resumed. */
static int told_status(int status) {
  if (ends(status) || status == NXR_EXIT_FAILED) return status;
  fputs("nxrun: told to end outside of the steps: no checkpoint beside the newest one\n", stderr);
  return NXR_EXIT_STOPPED;
}

static int supervise(const supervisor *s) {
  const char *plan = s->plan;
  double wait_s = s->first_wait_s;
  uint64_t before, after;
  uint32_t n_ranks, n_idle = 0;
  for (uint64_t n = 0;; n++) {
    if (!look(s, plan, &n_ranks, &before)) return NXR_EXIT_FAILED;
    int status = run_once(s, plan, n_ranks, n > 0);
    if (told_to_end) return told_status(status);
    if (ends(status) || n == s->n_restarts) return status;
    if (!look(s, plan, &n_ranks, &after)) return NXR_EXIT_FAILED;
    if (after > before) n_idle = 0, wait_s = s->first_wait_s;
    else n_idle++;
    bool falls_back = s->fallback && plan != s->fallback && n_idle >= IDLE_BEFORE_FALLBACK;
    if (falls_back) plan = s->fallback;
    nxr_print(stderr, "nxrun: the run ended with status %d: restart %llu of %llu in %g s%s%s\n", status,
            (unsigned long long)n + 1, (unsigned long long)s->n_restarts, wait_s, falls_back ? ", with " : "",
            falls_back ? plan : "");
    usleep((useconds_t)(wait_s * 1e6));
    wait_s = 2 * wait_s < LONGEST_WAIT_S ? 2 * wait_s : LONGEST_WAIT_S;
  }
}

int nxr_supervise(int argc, char **argv) {
  supervisor s;
  if (!parse(argc, argv, &s)) {
    fputs(USAGE, stderr);
    return NXR_EXIT_USAGE;
  }
  catch_signals(hand_on);
  return supervise(&s);
}
