/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t asked;

static void ask(int signal_number) {
  asked = signal_number;
}

void nxd_stop_guard(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESETHAND}, is;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (sigaction(signals[i], NULL, &is) == 0 && is.sa_handler != SIG_IGN)
      sigaction(signals[i], &action, NULL);
}

bool nxd_stopped(void) {
  return asked != 0;
}

void nxd_stop_die(void) {
  if (asked == 0) return;
  signal(asked, SIG_DFL);
  raise(asked);
}
