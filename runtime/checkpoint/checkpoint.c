/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint.h"

#include "runtime/checkpoint/checkpoint_before.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_save.h"
#include "runtime/checkpoint/checkpoint_write.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool nxr_checkpoint_prepare(const nxr_checkpoint *checkpoint, bool resume, nxr_fault *fault) {
  const nx_plan *plan = checkpoint->run.plan;
  const char *elsewhere = nx_plan_text(plan, plan->run_names->checkpoints);
  bool good = checkpoint->world->rank != 0 ||
              (nxr_folder_open(checkpoint->directory, elsewhere, resume, fault) &&
               (!checkpoint->temporary || nxr_folder_open_temporary(checkpoint->temporary, resume, fault)));
  return nxr_world_all(checkpoint->world, good);
}

bool nxr_checkpoint_begins_with_own(const nxr_checkpoint *checkpoint) {
  const nx_plan *plan = checkpoint->run.plan;
  const nx_run_names *names = plan->run_names;
  uint64_t own = names->load_weights && nx_plan_text(plan, names->checkpoints)[0] == '\0' &&
                 nxr_before_is_own(checkpoint->directory, nx_plan_text(plan, names->load));
  nxr_world_broadcast(checkpoint->world, &own, sizeof own);
  return own;
}

bool nxr_checkpoint_set_aside(const nxr_checkpoint *checkpoint, bool resume, char from[NXR_PATH_BYTES],
                              nxr_fault *fault) {
  uint64_t n = 0;
  bool moved = false, first = checkpoint->world->rank == 0;
  bool good = !first || nxr_before_set_aside(checkpoint->directory, resume, &n, &moved, fault);
  nxr_world_broadcast(checkpoint->world, &n, sizeof n);
  nxr_before_path(checkpoint->directory, n, from, NXR_PATH_BYTES);
  if (good && moved)
    nxr_print(stderr, "nxrun: the checkpoints of %s are in %s now; this training has its own\n",
              checkpoint->directory, from);
  if (good && first && checkpoint->temporary && (moved || !resume))
    good = nxr_folder_open_temporary(checkpoint->temporary, false, fault);
  return nxr_world_all(checkpoint->world, good);
}

bool nxr_checkpoint_save(const nxr_checkpoint *checkpoint, uint64_t step, nxr_fault *fault) {
  nxr_saver *saver;
  bool good = nxr_saver_open(checkpoint, false, &saver, fault) && nxr_saver_begin(saver, step, false, fault);
  nxr_saver_close(saver);
  return good;
}

/* ---- gradients ---- */

static void gradients_path(const char *directory, const char *rest, char path[NXR_PATH_BYTES]) {
  snprintf(path, NXR_PATH_BYTES, "%s/gradients.safetensors%s", directory, rest);
}

static bool make_place(const char *directory, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  if (!nxr_folder_make(directory, fault)) return false;
  gradients_path(directory, "", path);
  if (access(path, F_OK) == 0)
    return nxr_fault_set(fault, "%s exists: remove it, or choose another folder for --dump-gradients", path);
  gradients_path(directory, ".tmp", path);
  return access(path, F_OK) != 0 ||
         nxr_fault_set(fault, "%s exists, as a run that was killed leaves it: remove it", path);
}

bool nxr_checkpoint_prepare_gradients(const nxr_checkpoint *checkpoint, const char *directory,
                                      nxr_fault *fault) {
  return nxr_world_all(checkpoint->world, checkpoint->world->rank != 0 || make_place(directory, fault));
}

static void give_sign(void *none) {
  (void)none;
  nxr_world_beat();
}

bool nxr_checkpoint_gradients(const nxr_checkpoint *checkpoint, const char *directory, nxr_fault *fault) {
  char path[NXR_PATH_BYTES], temporary[NXR_PATH_BYTES];
  nxr_world *world = checkpoint->world;
  nxr_tensors tensors;
  gradients_path(directory, "", path);
  gradients_path(directory, ".tmp", temporary);
  nxr_sum sum = {0};
  const nxr_part part = {.tensors = &tensors, .content = NXR_GRADIENTS, .path = temporary,
                         .first = world->rank == 0, .sign = give_sign};
  bool opened = nxr_tensors_open(checkpoint->pieces, &tensors, fault);
  bool good = nxr_world_all(world, opened && nxr_tensors_share(&tensors, fault)) &&
              nxr_checkpoint_prepare_gradients(checkpoint, directory, fault) &&
              nxr_world_all(world, nxr_part_write(&part, &sum, fault));
  if (opened) nxr_tensors_close(&tensors);
  if (world->rank == 0) {
    if (good && rename(temporary, path) != 0)
      good = nxr_fault_set(fault, "cannot name %s %s: %s", temporary, path, strerror(errno));
    if (!good) unlink(temporary);
  }
  return nxr_world_all(world, good);
}
