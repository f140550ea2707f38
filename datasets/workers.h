/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that make documents of batches. Batches are given and come back in the same order; the owner, one
 * thread, calls everything here. */
#ifndef NXD_WORKERS_H
#define NXD_WORKERS_H

#include "datasets/journal.h"
#include "datasets/maker.h"

#include <pthread.h>

typedef enum nxd_slot_state { NXD_SLOT_FREE, NXD_SLOT_READ, NXD_SLOT_MADE } nxd_slot_state;

typedef struct nxd_slot {
  nxd_slot_state state;
  nxd_batch batch;
  nxd_place behind; /* the batch, among the inputs */
  nxd_made made;
} nxd_slot;

typedef struct nxd_workers {
  const nxd_recipe *recipe;
  const char *const *names; /* of the inputs */
  pthread_mutex_t lock;
  pthread_cond_t given, made;
  nxd_slot *slots; /* a ring: batch i in slot i % n_slots */
  uint64_t n_given, n_taken, n_written;
  uint32_t n_slots, n_threads;
  pthread_t *threads;
  bool ending, failed;
  nxr_fault fault;
} nxd_workers;

/* nxd_workers_close even after a failure. */
bool nxd_workers_open(nxd_workers *workers, const nxd_recipe *recipe, const char *const *names,
                      uint32_t n_threads, nxr_fault *fault);
/* The oldest batch, once it is made; waits for it where no slot is free, or where `all` and there is one. */
nxd_slot *nxd_workers_made(nxd_workers *workers, bool all);
void nxd_workers_written(nxd_workers *workers); /* that batch */
/* A slot to be filled, where nxd_workers_made gave none; and fills it. */
nxd_slot *nxd_workers_free(nxd_workers *workers);
void nxd_workers_give(nxd_workers *workers);
/* Whether no thread failed. */
bool nxd_workers_good(nxd_workers *workers, nxr_fault *fault);
void nxd_workers_close(nxd_workers *workers);

#endif
