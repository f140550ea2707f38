/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_save.h"

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_link.h"
#include "runtime/checkpoint/checkpoint_remove.h"
#include "runtime/checkpoint/checkpoint_write.h"
#include "runtime/files/fault.h"
#include "runtime/world/patience.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { POLL_US = 1000, NICER = 5 };

/* What is under way: all ranks write their parts, then rank 0 completes the folder. */
typedef enum nxr_stage { IDLE, WRITING, COMPLETING } nxr_stage;

struct nxr_saver {
  const nxr_checkpoint *of_run;
  nxr_checkpoint checkpoint; /* as it was when the save began, with these two */
  nxr_score score;
  nxr_loss_scale scale;
  nxr_plateau plateau;
  nxr_tensors tensors;
  bool background;
  nxr_content contents[NXR_CHECKPOINT_FILES];
  nxr_checkpoint_file files[NXR_CHECKPOINT_FILES];
  uint32_t n_files;
  uint8_t *taken; /* the copy; NULL until the first save */
  uint64_t n_taken[NXR_CHECKPOINT_FILES];

  nxr_stage stage;
  uint64_t step, newest;
  void (*saved)(void *context); /* is told of each that is complete; NULL: nobody is */
  void *context;
  const char *directory; /* that it goes to */
  bool temporary;
  char folder[NXR_PATH_BYTES];

  /* Of the thread; `good` and `fault` are its own until it is done. */
  pthread_t thread;
  bool started;
  atomic_bool done;
  bool good;
  nxr_fault fault;
  atomic_uint_least64_t n_signs; /* of its going on */
  atomic_uint at;                /* number of the file that it writes; n_files: the manifest */
};

bool nxr_saver_open(const nxr_checkpoint *checkpoint, bool background, nxr_saver **saver, nxr_fault *fault) {
  nxr_saver *made = calloc(1, sizeof *made);
  bool opened = made && nxr_tensors_open(checkpoint->pieces, &made->tensors, fault);
  *saver = made;
  if (made == NULL) nxr_fault_set(fault, "out of memory");
  if (opened) {
    made->of_run = checkpoint;
    made->checkpoint = *checkpoint;
    made->background = background;
    opened = nxr_tensors_share(&made->tensors, fault);
    const nxr_listing listing = nxr_listing_of(&made->tensors);
    if (opened) made->n_files = nxr_checkpoint_list(&made->tensors, &listing, made->contents, made->files);
  }
  return nxr_world_all(checkpoint->world, opened);
}

/* ---- the thread ---- */

static void give_sign(void *context) {
  nxr_saver *saver = context;
  atomic_fetch_add_explicit(&saver->n_signs, 1, memory_order_relaxed);
}

static bool write_parts(nxr_saver *saver) {
  const uint8_t *taken = saver->taken;
  for (uint32_t i = 0; i < saver->n_files; i++) {
    char path[NXR_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", saver->folder, saver->files[i].name);
    saver->files[i].sum = (nxr_sum){0};
    const nxr_part part = {.tensors = &saver->tensors,
                           .content = saver->contents[i],
                           .shard = saver->files[i].shard,
                           .path = path,
                           .first = saver->checkpoint.world->rank == 0,
                           .taken = taken,
                           .sign = give_sign,
                           .context = saver};
    atomic_store_explicit(&saver->at, i, memory_order_relaxed);
    if (!nxr_part_write(&part, &saver->files[i].sum, &saver->fault)) return false;
    if (taken) taken += saver->n_taken[i];
  }
  return true;
}

static void link_name(const nxr_saver *saver) {
  const nx_plan *plan = saver->checkpoint.run.plan;
  uint64_t epoch_steps = saver->checkpoint.run.epoch_steps;
  uint64_t epoch = epoch_steps > 0 && saver->step > 0 ? (saver->step - 1) / epoch_steps : 0;
  const char *pattern = nx_plan_text(plan, plan->run_names->link_name);
  char name[NXR_LINK_BYTES];
  if (pattern[0] != '\0' && nxr_link_name(pattern, saver->step, nx_plan_samples_before(plan, saver->step),
                                          epoch, saver->checkpoint.run.score, name))
    nxr_link_make(saver->directory, saver->step, name);
}

static bool complete(nxr_saver *saver) {
  const nxr_manifest_run *run = &saver->checkpoint.run;
  atomic_store_explicit(&saver->at, saver->n_files, memory_order_relaxed);
  bool good =
      nxr_checkpoint_write_index(&saver->tensors, saver->folder, &saver->fault) &&
      nxr_manifest_sizes(saver->folder, saver->files, saver->n_files, &saver->fault) &&
      nxr_manifest_write(saver->folder, run, saver->step, saver->files, saver->n_files, &saver->fault) &&
      nxr_folder_publish(saver->directory, saver->step, saver->folder, &saver->fault);
  give_sign(saver);
  if (!good) return false;
  if (saver->temporary) {
    nxr_folder_keep_newest(saver->directory);
    return true;
  }
  link_name(saver);
  nxr_folder_prune(saver->directory, run->plan->run_names);
  return true;
}

static void work(nxr_saver *saver) {
  saver->good = saver->stage == WRITING ? write_parts(saver) : complete(saver);
  atomic_store_explicit(&saver->done, true, memory_order_release);
}

/* The training's threads come first. Signals are the main thread's. */
static void *run_thread(void *argument) {
  const nxr_saver *saver = argument;
  if (saver->background) {
    nxr_world_roam();
    setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, (id_t)gettid()) + NICER);
  }
  work(argument);
  return NULL;
}

/* Where no thread can be had the work is done at once. */
static void start(nxr_saver *saver, nxr_stage stage) {
  sigset_t all, usual;
  saver->stage = stage;
  saver->fault.text[0] = '\0';
  atomic_store(&saver->done, false);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &usual);
  saver->started = pthread_create(&saver->thread, NULL, run_thread, saver) == 0;
  pthread_sigmask(SIG_SETMASK, &usual, NULL);
  if (!saver->started) work(saver);
}

static void join(nxr_saver *saver) {
  if (saver->started) pthread_join(saver->thread, NULL);
  saver->started = false;
}

/* ---- the run ---- */

/* A checkpoint of this step that is there already was written by an earlier run of the same plan: it holds
 * the same. Otherwise the folder is the new one's, under its temporary name. */
static bool open_folder(nxr_saver *saver, bool *is_there, nxr_fault *fault) {
  const nxr_checkpoint *of = &saver->checkpoint;
  uint64_t there = 0;
  bool good = true;
  if (of->world->rank == 0) {
    there = nxr_folder_has(saver->directory, saver->step);
    good = there || nxr_folder_begin(saver->directory, saver->step, saver->folder, fault);
  }
  nxr_world_broadcast(of->world, &there, sizeof there);
  nxr_world_broadcast(of->world, saver->folder, NXR_PATH_BYTES);
  *is_there = there != 0;
  return nxr_world_all(of->world, good);
}

/* Bytes of the copy, and of each file in it. */
static uint64_t count(nxr_saver *saver) {
  uint64_t n_bytes = 0;
  for (uint32_t i = 0; i < saver->n_files; i++) {
    if (saver->taken == NULL)
      saver->n_taken[i] = nxr_part_take(&saver->tensors, saver->contents[i], saver->files[i].shard, NULL);
    n_bytes += saver->n_taken[i];
  }
  return n_bytes;
}

uint64_t nxr_saver_copy_bytes(const nxr_checkpoint *checkpoint) {
  nxr_saver *saver;
  nxr_fault none = {""};
  uint64_t n_bytes = nxr_saver_open(checkpoint, true, &saver, &none) ? count(saver) : 0;
  nxr_saver_close(saver);
  return n_bytes;
}

/* The memory stays, so that only the first copy waits for the system to find it. */
static bool take(nxr_saver *saver, nxr_fault *fault) {
  uint64_t n_bytes = count(saver);
  if (saver->taken == NULL) saver->taken = malloc(n_bytes + 1);
  if (saver->taken == NULL)
    return nxr_fault_set(
        fault,
        "no memory for a copy of the %llu bytes that this rank saves: checkpoint.async=false "
        "needs none",
        (unsigned long long)n_bytes);
  uint8_t *to = saver->taken;
  for (uint32_t i = 0; i < saver->n_files; i++) {
    nxr_part_take(&saver->tensors, saver->contents[i], saver->files[i].shard, to);
    to += saver->n_taken[i];
  }
  return true;
}

/* What the manifest will say of the run, which goes on meanwhile. */
static void note_run(nxr_saver *saver) {
  nxr_manifest_run *run = &saver->checkpoint.run;
  *run = saver->of_run->run;
  if (run->scale) saver->scale = *run->scale, run->scale = &saver->scale;
  if (run->plateau) saver->plateau = *run->plateau, run->plateau = &saver->plateau;
  if (run->score) saver->score = *run->score, run->score = &saver->score;
}

static bool end(nxr_saver *saver, bool good) {
  if (!good && saver->checkpoint.world->rank == 0 && saver->folder[0] != '\0')
    nxr_unfinished_remove(saver->folder);
  bool newer = good && saver->step > saver->newest;
  saver->stage = IDLE;
  if (good) saver->newest = saver->step;
  if (newer && saver->saved) saver->saved(saver->context);
  return good;
}

bool nxr_saver_begin(nxr_saver *saver, uint64_t step, bool temporary, nxr_fault *fault) {
  bool is_there = false;
  saver->directory = temporary ? saver->checkpoint.temporary : saver->checkpoint.directory;
  saver->temporary = temporary;
  saver->step = step;
  saver->folder[0] = '\0';
  note_run(saver);
  if (!open_folder(saver, &is_there, fault)) return end(saver, false);
  if (is_there) return end(saver, true);
  if (!nxr_world_all(saver->checkpoint.world, !saver->background || take(saver, fault)))
    return end(saver, false);
  start(saver, WRITING);
  return saver->background || nxr_saver_finish(saver, fault);
}

bool nxr_saver_is_open(const nxr_saver *saver) {
  return saver->stage != IDLE;
}

bool nxr_saver_is_busy(const nxr_saver *saver) {
  return saver->stage != IDLE && !atomic_load_explicit(&saver->done, memory_order_acquire);
}

bool nxr_saver_advance(nxr_saver *saver, nxr_fault *fault) {
  nxr_world *world = saver->checkpoint.world;
  join(saver);
  if (!saver->good) nxr_fault_set(fault, "%s", saver->fault.text);
  if (!nxr_world_all(world, saver->good)) return end(saver, false);
  if (saver->stage == COMPLETING) return end(saver, true);
  nxr_sum sums[NXR_CHECKPOINT_FILES];
  for (uint32_t i = 0; i < saver->n_files; i++) sums[i] = saver->files[i].sum;
  nxr_sum_combine(world, sums, saver->n_files);
  for (uint32_t i = 0; i < saver->n_files; i++) saver->files[i].sum = sums[i];
  if (world->rank == 0) start(saver, COMPLETING);
  else saver->stage = COMPLETING;
  return true;
}

static _Noreturn void give_up(const nxr_saver *saver) {
  const nxr_world *world = saver->checkpoint.world;
  uint32_t at = atomic_load_explicit(&saver->at, memory_order_relaxed);
  nxr_print(stderr,
          "nxrun: rank %u (%s) writes the checkpoint of step %llu: nothing of %s/%s was written for %g s "
          "(run.deadline_s); the file system stands still, and the run ends: --resume goes on from the "
          "newest checkpoint that is whole\n",
          world->rank, nxr_world_host(world, world->rank), (unsigned long long)saver->step, saver->folder,
          at < saver->n_files ? saver->files[at].name : "manifest.json", world->deadline_s);
  nxr_world_abort(1);
}

/* This rank lives meanwhile, so that none but the one whose thread stands still gives up. */
static void wait_for_thread(const nxr_saver *saver) {
  nxr_patience patience = {.with = NX_NONE};
  while (nxr_saver_is_busy(saver)) {
    uint64_t n_signs = atomic_load_explicit(&saver->n_signs, memory_order_relaxed);
    const nxr_world *world = saver->checkpoint.world;
    if (nxr_patience_look(&patience, world->rank, n_signs) > world->deadline_s) give_up(saver);
    nxr_world_beat();
    usleep(POLL_US);
  }
}

bool nxr_saver_finish(nxr_saver *saver, nxr_fault *fault) {
  while (nxr_saver_is_open(saver)) {
    wait_for_thread(saver);
    if (!nxr_saver_advance(saver, fault)) return false;
  }
  return true;
}

void nxr_saver_tells(nxr_saver *saver, void (*saved)(void *context), void *context) {
  saver->saved = saved, saver->context = context;
}

uint64_t nxr_saver_newest(const nxr_saver *saver) {
  return saver->newest;
}

void nxr_saver_close(nxr_saver *saver) {
  if (saver == NULL) return;
  join(saver);
  nxr_tensors_close(&saver->tensors);
  free(saver->taken);
  free(saver);
}
