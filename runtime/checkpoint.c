/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint.h"

#include "runtime/checkpoint_folder.h"
#include "runtime/checkpoint_read.h"
#include "runtime/checkpoint_remove.h"
#include "runtime/checkpoint_write.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The files that a checkpoint of this plan has; returns how many. */
static uint32_t list_files(const nxr_tensors *tensors, nxr_content contents[], nxr_checkpoint_file files[]) {
  uint32_t n = 0;
  if (nxr_manifest_has_base(tensors->pieces->plan)) {
    contents[n] = NXR_WEIGHTS;
    files[n++] = (nxr_checkpoint_file){.name = "model.safetensors"};
  }
  if (tensors->adapted) {
    contents[n] = NXR_ADAPTERS;
    files[n++] = (nxr_checkpoint_file){.name = NXR_ADAPTER_FILE};
  }
  for (uint32_t i = 0; i < tensors->n_states; i++) {
    contents[n] = (nxr_content)(NXR_STATES + i);
    files[n++] = (nxr_checkpoint_file){.name = tensors->states[i]->file};
  }
  return n;
}

bool nxr_checkpoint_prepare(const nxr_checkpoint *checkpoint, bool resume, nxr_fault *fault) {
  bool good = checkpoint->world->rank != 0 || nxr_folder_open(checkpoint->directory, resume, fault);
  return nxr_world_all(checkpoint->world, good);
}

/* ---- checksums: each file by one rank, the results for all ---- */

typedef struct checksum {
  uint64_t words[4], n_bytes;
} checksum;

static bool hash_files(nxr_world *world, const char *folder, nxr_checkpoint_file *files, uint32_t n_files,
                       nxr_fault *fault) {
  checksum sums[NXR_CHECKPOINT_FILES] = {0};
  bool good = true;
  assert(n_files <= NXR_CHECKPOINT_FILES);
  for (uint32_t i = 0; i < n_files; i++) {
    if (i % world->size != world->rank) continue;
    good = nxr_manifest_hash(folder, &files[i], fault) && good;
    memcpy(sums[i].words, files[i].sha256, sizeof files[i].sha256);
    sums[i].n_bytes = files[i].n_bytes;
  }
  if (!nxr_world_all(world, good)) return false;
  nxr_world_max(world, (uint64_t *)sums, n_files * sizeof *sums / sizeof(uint64_t));
  for (uint32_t i = 0; i < n_files; i++) {
    memcpy(files[i].sha256, sums[i].words, sizeof files[i].sha256);
    files[i].n_bytes = sums[i].n_bytes;
  }
  return true;
}

/* ---- saving ---- */

static bool write_files(const nxr_checkpoint *checkpoint, const nxr_tensors *tensors, const char *folder,
                        uint64_t step, nxr_fault *fault) {
  nxr_world *world = checkpoint->world;
  nxr_content contents[NXR_CHECKPOINT_FILES];
  nxr_checkpoint_file files[NXR_CHECKPOINT_FILES];
  uint32_t n_files = list_files(tensors, contents, files);
  for (uint32_t i = 0; i < n_files; i++) {
    char path[NXR_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
    if (!nxr_tensors_write(tensors, world, contents[i], path, fault)) return false;
  }
  if (!hash_files(world, folder, files, n_files, fault)) return false;
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

/* ---- resuming ---- */

typedef enum verdict { WHOLE, DAMAGED, REFUSED } verdict;

/* What rank 0 finds without reading the files; `why` is filled where it is not whole. */
static verdict judge(const nxr_checkpoint *checkpoint, const char *folder, uint64_t step,
                     nxr_checkpoint_file *files, uint32_t n_files, nxr_fault *why) {
  json_t *manifest;
  if (!nxr_manifest_read(folder, step, &manifest, why)) return DAMAGED;
  verdict is = WHOLE;
  if (!nxr_manifest_check_run(manifest, folder, &checkpoint->run, why)) is = REFUSED;
  else if (!nxr_manifest_files(manifest, folder, files, n_files, why)) is = DAMAGED;
  json_decref(manifest);
  return is;
}

/* The same on every rank; `why` is filled on those that know. */
static verdict judge_together(const nxr_checkpoint *checkpoint, const nxr_tensors *tensors,
                              const char *folder, uint64_t step, nxr_fault *why) {
  nxr_world *world = checkpoint->world;
  nxr_content contents[NXR_CHECKPOINT_FILES];
  nxr_checkpoint_file expected[NXR_CHECKPOINT_FILES], files[NXR_CHECKPOINT_FILES];
  uint32_t n_files = list_files(tensors, contents, files);
  memcpy(expected, files, sizeof files);
  uint32_t is = WHOLE;
  if (world->rank == 0) is = judge(checkpoint, folder, step, expected, n_files, why);
  nxr_world_broadcast(world, &is, sizeof is);
  if (is != WHOLE) return is;
  if (!hash_files(world, folder, files, n_files, why)) return DAMAGED;
  bool equal = true;
  for (uint32_t i = 0; world->rank == 0 && i < n_files; i++)
    if (memcmp(files[i].sha256, expected[i].sha256, sizeof files[i].sha256) != 0)
      equal = nxr_fault_set(why, "the checksum of %s is wrong", files[i].name);
  return nxr_world_all(world, equal) ? WHOLE : DAMAGED;
}

static bool read_content(const nxr_tensors *tensors, nxr_content content, const char *path,
                         nxr_fault *fault) {
  nxr_source source;
  nxr_found *found = calloc((size_t)tensors->n + 1, sizeof *found);
  if (found == NULL) return nxr_fault_set(fault, "out of memory");
  bool opened = nxr_source_open(path, &source, fault);
  bool good = opened && nxr_source_match(&source, tensors, content, found, fault) &&
              nxr_tensors_read(tensors, content, found, fault);
  if (opened) nxr_source_close(&source);
  free(found);
  return good;
}

static bool read_files(const nxr_tensors *tensors, const char *folder, nxr_fault *fault) {
  nxr_content contents[NXR_CHECKPOINT_FILES];
  nxr_checkpoint_file files[NXR_CHECKPOINT_FILES];
  uint32_t n_files = list_files(tensors, contents, files);
  for (uint32_t i = 0; i < n_files; i++) {
    char path[NXR_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
    if (!read_content(tensors, contents[i], path, fault)) return false;
  }
  return true;
}

/* Damaged ones make room for the run that goes on from an older one. */
static bool set_newer_aside(const nxr_checkpoint *checkpoint, uint64_t step, nxr_fault *fault) {
  uint64_t newest;
  bool good = true;
  while (good && checkpoint->world->rank == 0 &&
         nxr_folder_newest(checkpoint->directory, UINT64_MAX, &newest) && newest > step)
    good = nxr_folder_set_aside(checkpoint->directory, newest, fault);
  return nxr_world_all(checkpoint->world, good);
}

/* Finds the newest whole checkpoint; *step is 0 where there is none at all. Where all are damaged nothing is
 * touched: to begin again is for the user to decide. */
static bool find_whole(const nxr_checkpoint *checkpoint, const nxr_tensors *tensors, uint64_t *step,
                       nxr_fault *fault) {
  nxr_world *world = checkpoint->world;
  char folder[NXR_PATH_BYTES];
  bool some_damaged = false;
  *step = 0;
  for (uint64_t candidate[2] = {0, UINT64_MAX};;) {
    if (world->rank == 0)
      candidate[0] = nxr_folder_newest(checkpoint->directory, candidate[1], &candidate[1]);
    nxr_world_broadcast(world, candidate, sizeof candidate);
    if (candidate[0] == 0 && some_damaged && world->rank == 0)
      nxr_fault_set(fault,
                    "no checkpoint in %s is whole, and nothing was changed: repair one, or start a new run "
                    "in another folder (run.directory, --dir)",
                    checkpoint->directory);
    if (candidate[0] == 0) return !some_damaged;
    nxr_fault why = {""};
    nxr_folder_path(checkpoint->directory, candidate[1], "", folder);
    verdict is = judge_together(checkpoint, tensors, folder, candidate[1], &why);
    if (is == DAMAGED) {
      if (why.text[0] != '\0') fprintf(stderr, "nxrun: %s is passed over: %s\n", folder, why.text);
      some_damaged = true;
      continue;
    }
    if (is == REFUSED && why.text[0] != '\0') nxr_fault_set(fault, "%s", why.text);
    *step = candidate[1];
    return is == WHOLE && set_newer_aside(checkpoint, *step, fault);
  }
}

bool nxr_checkpoint_resume(const nxr_checkpoint *checkpoint, uint64_t *step, nxr_fault *fault) {
  char folder[NXR_PATH_BYTES];
  nxr_tensors tensors;
  bool opened = nxr_tensors_open(checkpoint->pieces, &tensors, fault);
  bool good = nxr_world_all(checkpoint->world, opened) && find_whole(checkpoint, &tensors, step, fault);
  if (good && *step > 0) {
    nxr_folder_path(checkpoint->directory, *step, "", folder);
    nxr_loss_scale *scale = checkpoint->run.scale;
    if (scale != NULL) nxr_world_broadcast(checkpoint->world, scale, sizeof *scale);
    nxr_score *score = checkpoint->run.score;
    if (score != NULL) nxr_world_broadcast(checkpoint->world, score, sizeof *score);
    nxr_pieces pieces = *checkpoint->pieces;
    pieces.step = *step;
    tensors.pieces = &pieces;
    good = nxr_world_all(checkpoint->world, read_files(&tensors, folder, fault));
    if (good && checkpoint->world->rank == 0) fprintf(stderr, "nxrun: resumes from %s\n", folder);
  }
  if (opened) nxr_tensors_close(&tensors);
  return good;
}

static bool import(const nxr_checkpoint *checkpoint, nxr_content content, const char *path,
                   nxr_fault *fault) {
  nxr_tensors tensors;
  bool opened = nxr_tensors_open(checkpoint->pieces, &tensors, fault);
  bool good = opened && read_content(&tensors, content, path, fault);
  if (opened) nxr_tensors_close(&tensors);
  return nxr_world_all(checkpoint->world, good);
}

bool nxr_checkpoint_import(const nxr_checkpoint *checkpoint, const char *path, nxr_fault *fault) {
  return import(checkpoint, NXR_WEIGHTS, path, fault);
}

bool nxr_checkpoint_import_adapters(const nxr_checkpoint *checkpoint, const char *folder, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/" NXR_ADAPTER_FILE, folder) < NXR_PATH_BYTES)
    return import(checkpoint, NXR_ADAPTERS, path, fault);
  nxr_fault_set(fault, "the name of the adapters' folder is too long");
  return nxr_world_all(checkpoint->world, false);
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
