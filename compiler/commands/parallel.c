/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

enum { THREADS_MAX = 64, WAITING_PER_THREAD = 8 };

/* All of it is guarded by the mutex. */
typedef struct crew {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  size_t n_items, n_taken, n_delivered, n_waiting_max;
  bool *done;
  nxc_item_function *work;
  void *context;
} crew;

static void *work_on(void *argument) {
  crew *c = argument;
  pthread_mutex_lock(&c->mutex);
  while (c->n_taken < c->n_items) {
    if (c->n_taken - c->n_delivered >= c->n_waiting_max) {
      pthread_cond_wait(&c->changed, &c->mutex);
      continue;
    }
    size_t index = c->n_taken++;
    pthread_mutex_unlock(&c->mutex);
    c->work(c->context, index);
    pthread_mutex_lock(&c->mutex);
    c->done[index] = true;
    pthread_cond_broadcast(&c->changed);
  }
  pthread_mutex_unlock(&c->mutex);
  return NULL;
}

static void deliver_all(crew *c, nxc_item_function *deliver) {
  for (size_t i = 0; i < c->n_items; i++) {
    pthread_mutex_lock(&c->mutex);
    while (!c->done[i]) pthread_cond_wait(&c->changed, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    deliver(c->context, i);
    pthread_mutex_lock(&c->mutex);
    c->n_delivered++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
  }
}

static size_t count_processors(void) {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return n > THREADS_MAX ? THREADS_MAX : n < 1 ? 1 : (size_t)n;
}

void nxc_parallel(size_t n_items, nxc_item_function *work, nxc_item_function *deliver, void *context) {
  pthread_t threads[THREADS_MAX];
  size_t n_wanted = count_processors(), n_threads = 0;
  if (n_wanted > n_items) n_wanted = n_items;
  crew c = {.mutex = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER,
            .n_items = n_items,
            .n_waiting_max = WAITING_PER_THREAD * n_wanted,
            .done = n_wanted > 1 ? calloc(n_items, sizeof *c.done) : NULL,
            .work = work,
            .context = context};
  while (c.done != NULL && n_threads < n_wanted &&
         pthread_create(&threads[n_threads], NULL, work_on, &c) == 0)
    n_threads++;
  for (size_t i = 0; n_threads == 0 && i < n_items; i++) {
    work(context, i);
    deliver(context, i);
  }
  if (n_threads > 0) deliver_all(&c, deliver);
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  free(c.done);
}
