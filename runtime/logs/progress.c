/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/progress.h"

#include "runtime/files/fault.h"
#include "runtime/world/clock.h"
#include "schema/regular.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, TIME_BYTES = 32 };
static const double LEAST_S = 1, QUIET_S = 10;

static bool make_path(const char *directory, const char *name, char path[PATH_BYTES]) {
  return snprintf(path, PATH_BYTES, "%s/%s", directory, name) < PATH_BYTES;
}

/* Seconds for a step, of those that this program has made; 0: none yet. */
static double step_seconds(const nxr_progress *progress, uint64_t step) {
  return step > progress->begun_at ? (nxr_clock_s() - progress->begun_s) / (double)(step - progress->begun_at)
                                   : 0;
}

/* Of a step of this program; NULL: it has made none. JSON has none that is no number. */
static json_t *loss_of(const nxr_progress *progress, const nxr_progress_state *state) {
  if (state->step <= progress->begun_at) return NULL;
  return isfinite(state->loss) ? json_real(state->loss) : json_null();
}

static json_t *make_status(const nxr_progress *progress, const nxr_progress_state *state) {
  const nx_run *run = progress->plan->run;
  double seconds = step_seconds(progress, state->step);
  uint64_t tokens = (nx_plan_samples_before(progress->plan, state->step) -
                     nx_plan_samples_before(progress->plan, progress->begun_at)) *
                    run->sequence;
  double speed = seconds > 0 ? (double)tokens / (nxr_clock_s() - progress->begun_s) : 0;
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:f, s:f, s:o*, s:I}", "phase", state->phase, "step",
                   (json_int_t)state->step, "steps", (json_int_t)run->n_steps, "checkpoint",
                   (json_int_t)state->saved, "ranks", (json_int_t)run->n_ranks, "host",
                   nxr_world_host(progress->world, 0), "process", (json_int_t)getpid(), "seconds_per_step",
                   seconds, "tokens_per_s", speed, "loss", loss_of(progress, state), "time",
                   (json_int_t)time(NULL));
}

/* Under another name first, so that who reads it finds it whole. */
static void replace(const char *directory, json_t *status) {
  char path[PATH_BYTES], temporary[PATH_BYTES];
  if (!make_path(directory, "status.json", path) || !make_path(directory, ".status.json", temporary)) return;
  if (json_dump_file(status, temporary, JSON_INDENT(1)) == 0) rename(temporary, path);
}

static void write_status(nxr_progress *progress, const char *wait) {
  json_t *status = make_status(progress, &progress->state);
  if (status && wait) json_object_set_new(status, "waits", json_string(wait));
  if (status) replace(progress->directory, status);
  json_decref(status);
}

void nxr_progress_write(nxr_progress *progress, const nxr_progress_state *state, bool now) {
  progress->state = *state;
  if (progress->directory == NULL || (!now && nxr_clock_s() - progress->written_s < LEAST_S)) return;
  write_status(progress, NULL);
  progress->written_s = nxr_clock_s();
}

void nxr_progress_waits(nxr_progress *progress, const char *wait) {
  if (progress->directory != NULL && progress->state.phase != NULL) write_status(progress, wait);
}

static void print_time(time_t when, char text[TIME_BYTES]) {
  struct tm local;
  localtime_r(&when, &local);
  strftime(text, TIME_BYTES, "%Y-%m-%d %H:%M:%S", &local);
}

void nxr_progress_log(const nxr_progress *progress, const nxr_progress_state *state, const char *event) {
  char path[PATH_BYTES], now[TIME_BYTES];
  if (progress->directory == NULL || !progress->logs || !make_path(progress->directory, "progress.txt", path))
    return;
  const nx_run *run = progress->plan->run;
  double samples = (double)nx_plan_samples_before(progress->plan, state->step);
  print_time(time(NULL), now);
  FILE *file = fopen(path, "a");
  if (file == NULL) return;
  fprintf(file, "%s\tranks %u\t%s\tstep %" PRIu64 "\ttokens %.0f\toperations %.4g\n", now, run->n_ranks,
          event, state->step, samples * run->sequence, samples / run->global_batch * run->flops_per_step);
  fclose(file);
}

/* ---- who looks ---- */

/* Whether a run holds the folder; other hosts' locks are not seen on every file system. */
typedef enum hold { FREE, HELD, UNTOLD } hold;

static hold look_at_lock(const char *directory) {
  char path[PATH_BYTES];
  int file = make_path(directory, "lock", path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  if (file < 0) return UNTOLD;
  hold is = flock(file, LOCK_SH | LOCK_NB) == 0 ? FREE : errno == EWOULDBLOCK ? HELD : UNTOLD;
  close(file);
  return is;
}

static bool is_here(const char *host) {
  char own[NXR_HOST_BYTES] = "";
  return host != NULL && gethostname(own, sizeof own - 1) == 0 && strcmp(own, host) == 0;
}

static void print_left(double seconds) {
  unsigned long long left = seconds < 1e15 ? (unsigned long long)seconds : 1000000000000000;
  printf("left        %llu:%02llu:%02llu\n", left / 3600, left / 60 % 60, left % 60);
}

/* In lines of at most 80 columns, between words. */
static void print_wait(const char *wait) {
  int column = printf("waits      ");
  for (const char *at = wait; *at != '\0'; at += strspn(at, " ")) {
    int n = (int)strcspn(at, " ");
    if (column + 1 + n > 80) column = printf("\n%11s", "") - 1;
    nxr_print(stdout, " %.*s", n, at), column += 1 + n;
    at += n;
  }
  puts("");
}

/* A run that should have said something since; `gone`: its program is not there any more. */
static void print_quiet(const char *phase, bool gone, double quiet_s, double step_s) {
  bool works =
      strcmp(phase, "training") == 0 || strcmp(phase, "saving") == 0 || strcmp(phase, "evaluating") == 0;
  if (works && gone) {
    nxr_print(stdout, "gone        it ended while it was %s: see what it printed; --resume goes on\n", phase);
    return;
  }
  if (!works || quiet_s < QUIET_S || quiet_s < 3 * step_s) return;
  printf("no news     for %.0f s, while it was %s: it has ended, or waits; see what it printed\n", quiet_s,
         phase);
}

static void print_status(const char *directory, const json_t *status) {
  const char *phase = json_string_value(json_object_get(status, "phase"));
  const char *host = json_string_value(json_object_get(status, "host"));
  json_int_t step = json_integer_value(json_object_get(status, "step"));
  json_int_t steps = json_integer_value(json_object_get(status, "steps"));
  json_int_t saved = json_integer_value(json_object_get(status, "checkpoint"));
  double step_s = json_number_value(json_object_get(status, "seconds_per_step"));
  time_t when = (time_t)json_integer_value(json_object_get(status, "time"));
  double quiet_s = difftime(time(NULL), when);
  hold lock = look_at_lock(directory);
  char text[TIME_BYTES];
  print_time(when, text);
  nxr_print(stdout, "run         %s\nphase       %s%s\nstep        %lld of %lld\n", directory,
            phase ? phase : "not known", lock == HELD ? ", and its program runs" : "", (long long)step,
            (long long)steps);
  const json_t *loss = json_object_get(status, "loss");
  if (step > 0 && json_is_number(loss)) printf("loss        %.4f\n", json_number_value(loss));
  if (step > 0 && json_is_null(loss)) puts("loss        no number");
  if (step_s > 0) printf("speed       %.3g s a step, %.0f tokens/s\n", step_s,
                         json_number_value(json_object_get(status, "tokens_per_s")));
  if (step_s > 0 && steps > step) print_left(step_s * (double)(steps - step));
  if (saved > 0) printf("checkpoint  step-%06lld\n", (long long)saved);
  else puts("checkpoint  none yet");
  nxr_print(stdout, "ranks       %lld, rank 0 on %s\nas of       %s\n",
         (long long)json_integer_value(json_object_get(status, "ranks")), host ? host : "a host unknown",
         text);
  const char *wait = json_string_value(json_object_get(status, "waits"));
  if (wait) print_wait(wait);
  print_quiet(phase ? phase : "", lock == FREE && is_here(host), quiet_s, step_s);
}

int nxr_status_print(const char *directory) {
  char path[PATH_BYTES];
  json_error_t error;
  json_t *status = make_path(directory, "status.json", path) ? nx_json_read(path, 0, &error) : NULL;
  if (status == NULL) {
    nxr_print(stderr,
            "nxrun: %s has no status.json that can be read: it is no folder of a run (run.directory), or no "
            "step of it has begun\n",
            directory);
    return 1;
  }
  print_status(directory, status);
  json_decref(status);
  return 0;
}
