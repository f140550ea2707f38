/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/workers.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_PER_THREAD = 3 };

/* The next batch to work on; NULL when there will be none. */
static nxd_slot *take(nxd_workers *w) {
  pthread_mutex_lock(&w->lock);
  while (w->n_taken == w->n_given && !w->ending) pthread_cond_wait(&w->given, &w->lock);
  nxd_slot *slot = w->n_taken < w->n_given && !w->ending ? &w->slots[w->n_taken++ % w->n_slots] : NULL;
  pthread_mutex_unlock(&w->lock);
  return slot;
}

static void hand_back(nxd_workers *w, nxd_slot *slot, const nxr_fault *fault) {
  pthread_mutex_lock(&w->lock);
  slot->state = NXD_SLOT_MADE;
  if (fault->text[0] != '\0' && !w->failed) w->failed = true, w->fault = *fault;
  pthread_cond_signal(&w->made);
  pthread_mutex_unlock(&w->lock);
}

static void *run_worker(void *argument) {
  nxd_workers *w = argument;
  nxd_maker maker;
  nxr_fault fault = {""};
  bool opened = nxd_maker_open(&maker, w->recipe, &fault);
  for (nxd_slot *slot; (slot = take(w)) != NULL;) {
    if (opened) nxd_maker_run(&maker, &slot->batch, w->names, &slot->made, &fault);
    hand_back(w, slot, &fault);
  }
  if (opened) nxd_maker_close(&maker);
  return NULL;
}

/* Signals are for the owner's thread. */
static bool start_threads(nxd_workers *w, uint32_t n_threads) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (w->n_threads < n_threads &&
         pthread_create(&w->threads[w->n_threads], NULL, run_worker, w) == 0)
    w->n_threads++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return w->n_threads > 0; /* fewer do the same */
}

bool nxd_workers_open(nxd_workers *w, const nxd_recipe *recipe, const char *const *names, uint32_t n_threads,
                      nxr_fault *fault) {
  *w = (nxd_workers){.recipe = recipe, .names = names, .n_slots = n_threads * SLOTS_PER_THREAD};
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->given, NULL);
  pthread_cond_init(&w->made, NULL);
  w->slots = calloc(w->n_slots, sizeof *w->slots);
  w->threads = calloc(n_threads, sizeof *w->threads);
  if (w->slots == NULL || w->threads == NULL) return nxr_fault_set(fault, "out of memory");
  return start_threads(w, n_threads) || nxr_fault_set(fault, "no thread can be started");
}

nxd_slot *nxd_workers_made(nxd_workers *w, bool all) {
  if (w->n_written == w->n_given) return NULL;
  nxd_slot *slot = &w->slots[w->n_written % w->n_slots];
  pthread_mutex_lock(&w->lock);
  bool wait = all || w->n_given - w->n_written == w->n_slots;
  while (wait && slot->state != NXD_SLOT_MADE) pthread_cond_wait(&w->made, &w->lock);
  bool made = slot->state == NXD_SLOT_MADE;
  pthread_mutex_unlock(&w->lock);
  return made ? slot : NULL;
}

void nxd_workers_written(nxd_workers *w) {
  w->slots[w->n_written++ % w->n_slots].state = NXD_SLOT_FREE;
}

nxd_slot *nxd_workers_free(nxd_workers *w) {
  return &w->slots[w->n_given % w->n_slots];
}

void nxd_workers_give(nxd_workers *w) {
  pthread_mutex_lock(&w->lock);
  w->slots[w->n_given % w->n_slots].state = NXD_SLOT_READ;
  w->n_given++;
  pthread_cond_signal(&w->given);
  pthread_mutex_unlock(&w->lock);
}

bool nxd_workers_good(nxd_workers *w, nxr_fault *fault) {
  pthread_mutex_lock(&w->lock);
  bool failed = w->failed;
  pthread_mutex_unlock(&w->lock);
  return !failed || nxr_fault_set(fault, "%s", w->fault.text);
}

void nxd_workers_close(nxd_workers *w) {
  pthread_mutex_lock(&w->lock);
  w->ending = true;
  pthread_cond_broadcast(&w->given);
  pthread_mutex_unlock(&w->lock);
  for (uint32_t i = 0; i < w->n_threads; i++) pthread_join(w->threads[i], NULL);
  for (uint32_t i = 0; w->slots && i < w->n_slots; i++) {
    nxd_batch_free(&w->slots[i].batch);
    nxd_made_free(&w->slots[i].made);
  }
  free(w->slots);
  free(w->threads);
  pthread_cond_destroy(&w->made);
  pthread_cond_destroy(&w->given);
  pthread_mutex_destroy(&w->lock);
}
