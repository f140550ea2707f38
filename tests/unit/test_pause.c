/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/world/pause.h: when a wait leaves its core to others. */
#include "runtime/world/clock.h"
#include "runtime/world/pause.h"
#include "tests/unit/cmocka_all.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

/* By the kernel's count: a nap is one, unless another takes the core just before it until its time is
 * over. */
static long naps(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

static void test_a_crowded_wait_naps_soon(void **state) {
  (void)state;
  nxr_pause pause = {.spin_s = 1000, .yields = UINT32_MAX, .nap_us = 1, .crowded = true};
  long before = naps();
  for (int i = 0; i < 40; i++) nxr_pause_once(&pause);
  assert_int_equal(pause.polls, 40);
  assert_true(naps() - before >= 20);
}

static void test_a_long_wait_naps(void **state) {
  (void)state;
  nxr_pause pause = {.yields = 10, .nap_us = 1};
  for (int i = 0; i < 10; i++) nxr_pause_once(&pause);
  long before = naps();
  for (int i = 0; i < 20; i++) nxr_pause_once(&pause);
  assert_int_equal(pause.naps, 20);
  assert_true(naps() - before >= 10);
}

static double spin(nxr_pause *pause) {
  double since_s = nxr_clock_s();
  while (pause->naps == 0) nxr_pause_once(pause);
  return nxr_clock_s() - since_s;
}

static void test_a_wait_spins_first_and_anew(void **state) {
  (void)state;
  nxr_pause pause = {.spin_s = 0.02, .nap_us = 1};
  assert_true(spin(&pause) >= 0.02);
  nxr_pause_once(&pause);
  assert_int_equal(pause.naps, 2);
  nxr_pause_anew(&pause);
  assert_true(spin(&pause) >= 0.02);
}

static void *work(void *ends) {
  while (!atomic_load((atomic_bool *)ends)) sched_yield();
  return NULL;
}

/* Both on one core: the worker runs at each yield. */
static void test_another_program_on_the_core(void **state) {
  (void)state;
  cpu_set_t all, one;
  CPU_ZERO(&one);
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  atomic_bool ends = false;
  pthread_t worker;
  assert_int_equal(pthread_create(&worker, NULL, work, &ends), 0);
  nxr_pause pause = {.yields = UINT32_MAX, .nap_us = 1};
  while (!pause.shared) nxr_pause_once(&pause);
  uint32_t first = pause.naps;
  long before = naps();
  for (int i = 0; i < 20; i++) nxr_pause_once(&pause);
  assert_int_equal(pause.naps - first, 20);
  assert_true(naps() - before >= 10);
  atomic_store(&ends, true);
  pthread_join(worker, NULL);
  sched_setaffinity(0, sizeof all, &all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_crowded_wait_naps_soon),
      cmocka_unit_test(test_a_long_wait_naps),
      cmocka_unit_test(test_a_wait_spins_first_and_anew),
      cmocka_unit_test(test_another_program_on_the_core),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
