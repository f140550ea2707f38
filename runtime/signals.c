/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/signals.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

static volatile sig_atomic_t stop_signal, save_signal;
static time_t first_signal; /* by a clock that nobody sets */

/* A terminal and mpiexec may both send the same Ctrl-C: a second signal counts as one after a second. */
static void on_signal(int number) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!stop_signal) first_signal = now.tv_sec;
  if (now.tv_sec > first_signal + 1) {
    signal(number, SIG_DFL);
    raise(number);
  }
  stop_signal = number;
}

static void on_save(int number) {
  (void)number;
  save_signal = 1;
}

/* Its number would be the launcher's status, which stands for a run that was stopped and saved. */
static void on_quit(int number) {
  (void)number;
  abort();
}

/* Only while there are steps to stop between: before and after, a signal ends the process at once. */
static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
enum { N_STOP_SIGNALS = sizeof stop_signals / sizeof *stop_signals };
static struct sigaction usual_actions[N_STOP_SIGNALS], usual_save, usual_quit;

void nxr_signals_catch(void) {
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  const struct sigaction saves = {.sa_handler = on_save, .sa_flags = SA_RESTART};
  const struct sigaction quits = {.sa_handler = on_quit};
  sigaction(SIGUSR1, &saves, &usual_save);
  sigaction(SIGQUIT, &quits, &usual_quit);
  for (int i = 0; i < N_STOP_SIGNALS; i++) {
    sigaction(stop_signals[i], NULL, &usual_actions[i]);
    bool no_hangup = stop_signals[i] == SIGHUP && usual_actions[i].sa_handler == SIG_IGN; /* nohup */
    if (!no_hangup) sigaction(stop_signals[i], &action, NULL);
  }
}

void nxr_signals_release(void) {
  sigaction(SIGUSR1, &usual_save, NULL);
  sigaction(SIGQUIT, &usual_quit, NULL);
  for (int i = 0; i < N_STOP_SIGNALS; i++) sigaction(stop_signals[i], &usual_actions[i], NULL);
}

bool nxr_signals_stop(void) {
  return stop_signal != 0;
}

bool nxr_signals_save(void) {
  bool asked = save_signal != 0;
  save_signal = 0;
  return asked;
}
