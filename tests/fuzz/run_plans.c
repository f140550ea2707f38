/* SPDX-License-Identifier: Apache-2.0 */
/* Changes plans, makes their hashes right, and trains a step with each that is still a plan: none may crash,
 * hang, write outside its memory or make a huge file (nx-plan(5)).
 *
 *     run_plans [--count N] [--from N] [--backend NAME] PLAN...
 *
 * Every plan is tried with the changes of seeds FROM to FROM + N. A changed plan runs in a process of its
 * own, as one of its ranks (lone_rank.h). What is too large or too slow to be told from a hang in reasonable
 * time is left out. */
#include "tests/fuzz/lone_rank.h"
#include "tests/fuzz/plan_mutate.h"
#include "tests/plan_edit.h"
#include "tests/tap.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 20, SECONDS_TO_BUILD = 100, MOST_FILE_BYTES = 64 << 20, MOST_THREADS = 4 };
static const uint64_t MOST_BYTES = UINT64_C(16) << 20;

typedef struct search {
  uint64_t from, count;
  const char *backend; /* NULL: ref and cpu in turn */
  char directory[64];
  uint64_t n_tried, n_run, n_trained, n_failed;
} search;

static bool is_small(const nx_plan *plan) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++) {
    if (plan->arenas[i].bytes > MOST_BYTES) return false;
    bytes += plan->arenas[i].bytes;
  }
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EVALUATIONS]; i++)
    if (plan->evaluations[i].batches > 1000) return false;
  return bytes <= MOST_BYTES && plan->run->n_threads <= MOST_THREADS && plan->run->sequence <= 4096 &&
         plan->n[NX_SECTION_ITEMS] <= 1000;
}

/* In a process of its own. */
static int train(const search *s, const nx_plan *plan, uint64_t seed) {
  static const char *const backends[] = {"ref", "cpu"};
  const struct rlimit files = {MOST_FILE_BYTES, MOST_FILE_BYTES}, none = {0, 0};
  const nxr_options options = {.backend = s->backend ? s->backend : backends[seed % 2],
                               .directory = s->directory,
                               .stop_after = 1,
                               .dry_run = seed % 16 == 7,
                               .dump_gradients = seed % 16 == 5 ? s->directory : NULL};
  setrlimit(RLIMIT_FSIZE, &files);
  setrlimit(RLIMIT_CORE, &none);
  const nxk_backend *backend = nxk_backend_find(options.backend);
  alarm(MOST_SECONDS + (backend && backend->host_addressable ? 0 : SECONDS_TO_BUILD));
  return lone_rank_train(plan, (uint32_t)(seed % plan->run->n_ranks), &options);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *at) {
  (void)about, (void)kind;
  return at->level == 0 ? 0 : remove(path);
}

static void run_plan(search *s, const char *path, const nx_plan *plan, uint64_t seed) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    bool quiet =
        freopen("/dev/null", "w", stdout) && (getenv("NX_LOUD") || freopen("/dev/null", "w", stderr));
    _exit(quiet ? train(s, plan, seed) : 99);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) abort();
  bool ended = WIFEXITED(status) && WEXITSTATUS(status) <= NXR_EXIT_USAGE;
  s->n_run++;
  s->n_trained += ended && WEXITSTATUS(status) == NXR_EXIT_OK;
  nftw(s->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  if (ended) return;
  s->n_failed++;
  printf("# %s, seed %llu: %s %d\n", path, (unsigned long long)seed,
         WIFEXITED(status) ? "exit status" : strsignal(WTERMSIG(status)),
         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static void try_seed(search *s, const char *path, const uint8_t *bytes, uint64_t n_bytes, uint64_t seed) {
  uint8_t *changed = plan_copy(bytes, n_bytes);
  nx_plan plan;
  nx_fault fault;
  plan_mutate(changed, n_bytes, seed);
  if (plan_has_sections(changed, n_bytes)) plan_seal(changed);
  s->n_tried++;
  if (nx_plan_check(changed, n_bytes, &plan, &fault) && nx_plan_prove(&plan, &fault) && is_small(&plan))
    run_plan(s, path, &plan, seed);
  free(changed);
}

/* The plan as it is trains, else its changes would show nothing. */
static bool try_plan(search *s, const char *path) {
  uint64_t n_bytes;
  uint8_t *bytes = plan_read(path, &n_bytes);
  nx_plan plan;
  nx_fault fault = {""};
  if (!bytes || !nx_plan_check(bytes, n_bytes, &plan, &fault)) {
    fprintf(stderr, "%s: %s\n", path, fault.text);
    free(bytes);
    return false;
  }
  s->n_trained = 0;
  run_plan(s, path, &plan, 0);
  bool trains = s->n_trained == 1;
  uint64_t n_failed = s->n_failed, n_run = s->n_run, n_trained = s->n_trained;
  for (uint64_t seed = s->from; seed < s->from + s->count; seed++) try_seed(s, path, bytes, n_bytes, seed);
  tap_note("%s: %llu changed plans are plans too, %llu of them train", path,
         (unsigned long long)(s->n_run - n_run), (unsigned long long)(s->n_trained - n_trained));
  free(bytes);
  return trains && s->n_failed == n_failed;
}

int main(int argc, char **argv) {
  search s = {.count = 200, .directory = "/dev/shm/run_plans.XXXXXX"};
  int n = 1;
  for (; n + 1 < argc && argv[n][0] == '-'; n += 2) {
    if (strcmp(argv[n], "--count") == 0) s.count = strtoull(argv[n + 1], NULL, 10);
    else if (strcmp(argv[n], "--from") == 0) s.from = strtoull(argv[n + 1], NULL, 10);
    else if (strcmp(argv[n], "--backend") == 0) s.backend = argv[n + 1];
    else return 2;
  }
  if (n >= argc || mkdtemp(s.directory) == NULL) return 2;
  for (; n < argc; n++) {
    const char *slash = strrchr(argv[n], '/');
    tap_report(try_plan(&s, argv[n]), "%s", slash ? slash + 1 : argv[n]);
  }
  rmdir(s.directory);
  return tap_end();
}
