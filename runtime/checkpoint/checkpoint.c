/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint.h"

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_remove.h"
#include "runtime/checkpoint/checkpoint_write.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool nxr_checkpoint_prepare(const nxr_checkpoint *checkpoint, bool resume, nxr_fault *fault) {
  bool good = checkpoint->world->rank != 0 || nxr_folder_open(checkpoint->directory, resume, fault);
  return nxr_world_all(checkpoint->world, good);
}

/* ---- saving ---- */

static bool saves_states(const nxr_checkpoint *checkpoint) {
  return checkpoint->run.plan->run_names->save_optimizer != 0;
}

static bool write_files(const nxr_checkpoint *checkpoint, const nxr_tensors *tensors, const char *folder,
                        uint64_t step, nxr_fault *fault) {
  nxr_world *world = checkpoint->world;
  nxr_content contents[NXR_CHECKPOINT_FILES];
  nxr_checkpoint_file files[NXR_CHECKPOINT_FILES];
  uint32_t n_files = nxr_checkpoint_list(tensors, saves_states(checkpoint), contents, files);
  for (uint32_t i = 0; i < n_files; i++) {
    char path[NXR_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
    if (!nxr_tensors_write(tensors, world, contents[i], path, fault)) return false;
  }
  if (!nxr_checkpoint_hash(world, folder, files, n_files, fault)) return false;
  bool good = world->rank != 0 ||
              (nxr_manifest_write(folder, &checkpoint->run, step, files, n_files, fault) &&
               nxr_folder_publish(checkpoint->directory, step, folder, fault));
  return nxr_world_all(world, good);
}

/* A checkpoint of this step that is there already was written by an earlier run of the same plan: it holds
 * the same. Otherwise `folder` is the new one's, under its temporary name. */
static bool begin(const nxr_checkpoint *checkpoint, uint64_t step, bool *is_there,
                  char folder[NXR_PATH_BYTES], nxr_fault *fault) {
  uint64_t there = 0;
  bool good = true;
  if (checkpoint->world->rank == 0) {
    there = nxr_folder_has(checkpoint->directory, step);
    good = there || nxr_folder_begin(checkpoint->directory, step, folder, fault);
  }
  nxr_world_broadcast(checkpoint->world, &there, sizeof there);
  nxr_world_broadcast(checkpoint->world, folder, NXR_PATH_BYTES);
  *is_there = there != 0;
  return nxr_world_all(checkpoint->world, good);
}

bool nxr_checkpoint_save(const nxr_checkpoint *checkpoint, uint64_t step, nxr_fault *fault) {
  char folder[NXR_PATH_BYTES] = "";
  nxr_tensors tensors;
  bool is_there, opened = nxr_tensors_open(checkpoint->pieces, &tensors, fault);
  bool good = nxr_world_all(checkpoint->world, opened) && begin(checkpoint, step, &is_there, folder, fault) &&
              (is_there || write_files(checkpoint, &tensors, folder, step, fault));
  if (opened) nxr_tensors_close(&tensors);
  if (checkpoint->world->rank == 0) {
    if (good) nxr_folder_prune(checkpoint->directory, checkpoint->run.plan->run_names);
    else if (folder[0] != '\0') nxr_unfinished_remove(folder);
  }
  return nxr_world_all(checkpoint->world, good);
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

bool nxr_checkpoint_gradients(const nxr_checkpoint *checkpoint, const char *directory, nxr_fault *fault) {
  char path[NXR_PATH_BYTES], temporary[NXR_PATH_BYTES];
  nxr_world *world = checkpoint->world;
  nxr_tensors tensors;
  gradients_path(directory, "", path);
  gradients_path(directory, ".tmp", temporary);
  bool opened = nxr_tensors_open(checkpoint->pieces, &tensors, fault);
  bool good = nxr_world_all(world, opened) &&
              nxr_checkpoint_prepare_gradients(checkpoint, directory, fault) &&
              nxr_tensors_write(&tensors, world, NXR_GRADIENTS, temporary, fault);
  if (opened) nxr_tensors_close(&tensors);
  if (world->rank == 0) {
    if (good && rename(temporary, path) != 0)
      good = nxr_fault_set(fault, "cannot name %s %s: %s", temporary, path, strerror(errno));
    if (!good) unlink(temporary);
  }
  return nxr_world_all(world, good);
}
