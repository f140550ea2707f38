/* SPDX-License-Identifier: Apache-2.0 */
/* What a run begins with: a checkpoint of its own folder or of another run's, or weights alone. */
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_read.h"
#include "runtime/checkpoint/checkpoint_trust.h"
#include "runtime/checkpoint/checkpoint_write.h"
#include "runtime/files/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum verdict { WHOLE, DAMAGED, REFUSED } verdict;

/* What rank 0 finds without reading the files; `why` is filled where it is not whole. */
static verdict judge(const nxr_checkpoint *checkpoint, const nxr_resume *from, const char *folder,
                     const nxr_tensors *tensors, const json_t *manifest, nxr_listing *listing,
                     nxr_fault *why) {
  nxr_content contents[NXR_CHECKPOINT_FILES];
  nxr_checkpoint_file files[NXR_CHECKPOINT_FILES];
  *listing = nxr_listing_read(manifest, false);
  uint32_t n_weights = nxr_checkpoint_list(tensors, listing, contents, files);
  listing->states = !from->weights_only && !from->without_states;
  uint32_t n_files = nxr_checkpoint_list(tensors, listing, contents, files);
  verdict is = WHOLE;
  if (!from->weights_only && !nxr_manifest_check_run(manifest, folder, &checkpoint->run, why)) is = REFUSED;
  else if (n_files > n_weights && nxr_manifest_n_files(manifest) == n_weights)
    is = REFUSED,
    nxr_fault_set(why,
                  "%s has no state of the optimizer (checkpoint.save_optimizer): its weights can be taken, "
                  "with checkpoint.load and checkpoint.load_optimizer=false, or checkpoint.weights_only",
                  folder);
  else if (!nxr_manifest_files(manifest, folder, files, n_files, why)) is = DAMAGED;
  else if (!from->weights_only && !from->without_states && nxr_manifest_n_files(manifest) != n_files)
    is = DAMAGED, nxr_fault_set(why, "its manifest.json names other files");
  return is;
}

/* The same on every rank; `why` is filled on those that know. */
static verdict judge_together(const nxr_checkpoint *checkpoint, const nxr_resume *from,
                              const nxr_tensors *tensors, const char *folder, uint64_t step,
                              nxr_listing *listing, nxr_fault *why) {
  nxr_world *world = checkpoint->world;
  nxr_content contents[NXR_CHECKPOINT_FILES];
  nxr_checkpoint_file files[NXR_CHECKPOINT_FILES];
  json_t *manifest = NULL;
  uint32_t is = WHOLE;
  if (world->rank == 0)
    is = nxr_manifest_read(folder, step, &manifest, why)
             ? judge(checkpoint, from, folder, tensors, manifest, listing, why)
             : DAMAGED;
  nxr_world_broadcast(world, &is, sizeof is);
  nxr_world_broadcast(world, listing, sizeof *listing);
  uint32_t n_files = is == WHOLE ? nxr_checkpoint_list(tensors, listing, contents, files) : 0;
  if (manifest && is == WHOLE) nxr_manifest_files(manifest, folder, files, n_files, why);
  json_decref(manifest);
  if (is != WHOLE) return is;
  return nxr_checkpoint_verify(world, folder, files, n_files, why) ? WHOLE : DAMAGED;
}

static bool read_content(const nxr_tensors *tensors, nxr_content content, const char *path, const char *state,
                         nx_strictness strictness, nxr_fault *fault) {
  nxr_source source;
  nxr_found *found = calloc((size_t)tensors->n + 1, sizeof *found);
  if (found == NULL) return nxr_fault_set(fault, "out of memory");
  bool opened = nxr_source_open(path, state, &source, fault);
  if (opened) source.strictness = strictness;
  bool good = opened && (source.foreign == NULL || nxr_source_join(&source, tensors, content, fault)) &&
              nxr_source_match(&source, tensors, content, found, fault) &&
              nxr_tensors_read(tensors, content, found, fault);
  if (opened) nxr_source_close(&source);
  free(found);
  return good;
}

/* What a checkpoint's folder has several files of is read through their index. */
static bool read_files(const nxr_resume *from, const nxr_tensors *tensors, const nxr_listing *listing,
                       const char *folder, nxr_fault *fault) {
  nxr_content contents[NXR_CHECKPOINT_FILES];
  nxr_checkpoint_file files[NXR_CHECKPOINT_FILES];
  uint32_t n_files = nxr_checkpoint_list(tensors, listing, contents, files);
  const nx_run_names *names = tensors->pieces->plan->run_names;
  nx_strictness strictness = from->weights_only ? (nx_strictness)names->strictness : NX_STRICT_RAISE;
  for (uint32_t i = 0; i < n_files; i++) {
    char path[NXR_PATH_BYTES + NXR_FILE_NAME_BYTES];
    if (contents[i] == NXR_MODEL || files[i].shard > 1) continue; /* the master weights say it; it is read */
    snprintf(path, sizeof path, "%s/%.*s", folder, NXR_FILE_NAME_BYTES,
             files[i].shard == 1 ? "" : files[i].name);
    bool memory = nxr_tensors_is_memory(tensors, contents[i]);
    if (!read_content(tensors, contents[i], path, NULL, memory ? NX_STRICT_LOG_ALL : strictness, fault))
      return false;
  }
  return true;
}

/* Of the run's own folder: those that are passed over make room for the run that goes on from an older one.
 */
static bool set_newer_aside(const nxr_checkpoint *checkpoint, uint64_t step, nxr_fault *fault) {
  uint64_t newest;
  bool good = true;
  while (good && checkpoint->world->rank == 0 &&
         nxr_folder_newest(checkpoint->directory, UINT64_MAX, &newest) && newest > step)
    good = nxr_folder_set_aside(checkpoint->directory, newest, fault);
  return nxr_world_all(checkpoint->world, good);
}

/* The next one to look at, of fewer steps than `below`: the newest, or the one that was asked for. */
static bool find_candidate(const nxr_resume *from, uint64_t below, uint64_t *step) {
  if (from->step == 0) return nxr_folder_newest(from->directory, below, step);
  *step = from->step;
  return from->step < below && nxr_folder_has(from->directory, from->step);
}

static void explain_none(const nxr_resume *from, bool some_damaged, nxr_fault *fault) {
  if (some_damaged)
    nxr_fault_set(fault,
                  "no checkpoint in %s is whole, and nothing was changed: repair one, or start a new run "
                  "in another folder (run.directory, --dir)",
                  from->directory);
  else if (from->step > 0)
    nxr_fault_set(fault, "%s has no checkpoint of step %llu (checkpoint.load_step)", from->directory,
                  (unsigned long long)from->step);
}

/* Finds the newest whole checkpoint; *step is 0 where there is none at all. Where all are damaged nothing is
 * touched: to begin again is for the user to decide. */
static bool find_whole(const nxr_checkpoint *checkpoint, const nxr_resume *from, const nxr_tensors *tensors,
                       uint64_t *step, nxr_listing *listing, nxr_fault *fault) {
  nxr_world *world = checkpoint->world;
  char folder[NXR_PATH_BYTES];
  bool some_damaged = false;
  *step = 0;
  for (uint64_t candidate[2] = {0, UINT64_MAX};;) {
    if (world->rank == 0) candidate[0] = find_candidate(from, candidate[1], &candidate[1]);
    nxr_world_broadcast(world, candidate, sizeof candidate);
    if (candidate[0] == 0) {
      if (world->rank == 0) explain_none(from, some_damaged, fault);
      return !some_damaged && from->step == 0;
    }
    nxr_fault why = {""};
    nxr_folder_path(from->directory, candidate[1], "", folder);
    verdict is = judge_together(checkpoint, from, tensors, folder, candidate[1], listing, &why);
    if (is == DAMAGED) {
      if (why.text[0] != '\0') nxr_print(stderr, "nxrun: %s is passed over: %s\n", folder, why.text);
      some_damaged = true;
      continue;
    }
    if (is == REFUSED && why.text[0] != '\0') nxr_fault_set(fault, "%s", why.text);
    if (is == WHOLE && !nxr_checkpoint_trusts(checkpoint, folder, fault)) return false;
    *step = candidate[1];
    bool own = strcmp(from->directory, checkpoint->directory) == 0;
    return is == WHOLE && (!own || set_newer_aside(checkpoint, *step, fault));
  }
}

bool nxr_checkpoint_resume(const nxr_checkpoint *checkpoint, const nxr_resume *from, uint64_t *step,
                           nxr_fault *fault) {
  char folder[NXR_PATH_BYTES];
  nxr_tensors tensors;
  nxr_listing listing = {0};
  bool opened = nxr_tensors_open(checkpoint->pieces, &tensors, fault);
  bool good = nxr_world_all(checkpoint->world, opened) &&
              find_whole(checkpoint, from, &tensors, step, &listing, fault);
  if (good && *step > 0) {
    nxr_folder_path(from->directory, *step, "", folder);
    nxr_pieces pieces = *checkpoint->pieces;
    pieces.step = from->weights_only ? 0 : *step;
    tensors.pieces = &pieces;
    nxr_loss_scale *scale = checkpoint->run.scale;
    if (scale != NULL) nxr_world_broadcast(checkpoint->world, scale, sizeof *scale);
    nxr_plateau *plateau = checkpoint->run.plateau;
    if (plateau != NULL) nxr_world_broadcast(checkpoint->world, plateau, sizeof *plateau);
    int64_t *began = checkpoint->run.optimizer_began;
    uint64_t samples, left_out = nx_plan_skipped_before(checkpoint->run.plan, *step, &samples);
    if (began != NULL && from->without_states)
      *began = (int64_t)(*step - left_out - (scale ? scale->n_skipped : 0));
    if (began != NULL) nxr_world_broadcast(checkpoint->world, began, sizeof *began);
    nxr_score *score = checkpoint->run.score;
    if (score != NULL) nxr_world_broadcast(checkpoint->world, score, sizeof *score);
    good = nxr_world_all(checkpoint->world, read_files(from, &tensors, &listing, folder, fault));
    if (good && checkpoint->world->rank == 0)
      nxr_print(stderr,
              from->weights_only     ? "nxrun: begins with the weights of %s\n"
              : from->without_states ? "nxrun: resumes from %s, with an optimizer that begins anew\n"
                                     : "nxrun: resumes from %s\n",
              folder);
  }
  if (opened) nxr_tensors_close(&tensors);
  return good;
}

static bool import(const nxr_checkpoint *checkpoint, nxr_content content, const char *path,
                   nxr_fault *fault) {
  nxr_tensors tensors;
  if (!nxr_checkpoint_trusts(checkpoint, path, fault)) return false;
  bool opened = nxr_tensors_open(checkpoint->pieces, &tensors, fault);
  nx_strictness strictness = (nx_strictness)checkpoint->run.plan->run_names->strictness;
  bool good = opened && read_content(&tensors, content, path, NULL, strictness, fault);
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

/* ---- another's folder ---- */

/* What the folders of other systems have, and what makes safetensors of them. */
static const struct {
  const char *file, *system, *tool;
} foreign[] = {
    {"latest_checkpointed_iteration.txt", "Megatron-LM",
     "its tools/checkpoint/convert.py, or Megatron Bridge"},
    {"latest", "DeepSpeed", "GPT-NeoX's tools/ckpts/convert_neox_to_hf.py"},
    {"iter_0000000/.metadata", "Megatron-LM", "Megatron Bridge"},
    {".metadata", "PyTorch's distributed checkpoints", "torch.distributed.checkpoint.format_utils"},
};

static bool has_file(const char *directory, const char *name) {
  char path[NXR_PATH_BYTES];
  return snprintf(path, sizeof path, "%s/%s", directory, name) < (int)sizeof path && access(path, F_OK) == 0;
}

static bool has_weights(const char *path) {
  const char *end = strrchr(path, '.');
  return has_file(path, "model.safetensors") || has_file(path, "model.safetensors.index.json") ||
         (end && strcmp(end, ".safetensors") == 0 && access(path, F_OK) == 0);
}

static bool is_foreign(const char *directory, nxr_fault *fault) {
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    if (!has_file(directory, foreign[i].file)) continue;
    nxr_fault_set(
        fault,
        "%s is a checkpoint of %s, in files that nxrun does not open: make a folder of safetensors of it "
        "with %s",
        directory, foreign[i].system, foreign[i].tool);
    return true;
  }
  return false;
}

/* What Megatron calls what Adam keeps. */
static const struct {
  const char *own, *foreign;
} states_of_adam[] = {{"moment1", "exp_avg"}, {"moment2", "exp_avg_sq"}};
enum { N_STATES_OF_ADAM = sizeof states_of_adam / sizeof *states_of_adam };

static const char *foreign_state(const char *own) {
  for (int i = 0; i < N_STATES_OF_ADAM; i++)
    if (strcmp(states_of_adam[i].own, own) == 0) return states_of_adam[i].foreign;
  return NULL;
}

/* Whether every rule of the plan keeps what Adam does, no more and no less. */
static bool keeps_as_adam(const nx_plan *plan) {
  for (uint32_t g = 0; g < plan->n[NX_SECTION_PARAMETER_GROUPS]; g++) {
    const nx_optimizer_row *rule = nx_optimizer_of(plan->parameter_groups[g].optimizer);
    if (rule->kind != NX_ELEMENT || nx_optimizer_n_states(rule) != N_STATES_OF_ADAM) return false;
    for (uint32_t i = 0; i < N_STATES_OF_ADAM; i++)
      if (foreign_state(rule->states[i].name) == NULL) return false;
  }
  return true;
}

/* Master weights, and what the optimizer keeps of each. */
static bool read_states(const nxr_tensors *tensors, const char *path, nxr_fault *fault) {
  if (!keeps_as_adam(tensors->pieces->plan))
    return nxr_fault_set(fault,
                         "%s has the state of Adam, and the optimizer of this plan keeps another: begin with "
                         "the weights alone (checkpoint.load_optimizer: false)",
                         path);
  if (!read_content(tensors, NXR_WEIGHTS, path, "fp32_param", NX_STRICT_RAISE, fault)) return false;
  for (uint32_t i = 0; i < tensors->n_states; i++) {
    nxr_content content = (nxr_content)(NXR_STATES + i);
    if (nxr_tensors_is_memory(tensors, content)) continue;
    const char *state = foreign_state(tensors->states[i]->name);
    if (!read_content(tensors, content, path, state, NX_STRICT_RAISE, fault)) return false;
  }
  return true;
}

static bool import_states(const nxr_checkpoint *checkpoint, const char *path, nxr_fault *fault) {
  nxr_tensors tensors;
  if (!nxr_checkpoint_trusts(checkpoint, path, fault)) return false;
  bool opened = nxr_tensors_open(checkpoint->pieces, &tensors, fault);
  bool good = opened && read_states(&tensors, path, fault);
  if (opened) nxr_tensors_close(&tensors);
  return nxr_world_all(checkpoint->world, good);
}

/* Of another system's checkpoint its weights are read and its step, and of Megatron's what Adam keeps. */
static bool load_foreign(const nxr_checkpoint *checkpoint, const nxr_resume *from, uint64_t *done,
                         nxr_fault *fault) {
  char path[NXR_FOREIGN_PATH];
  uint64_t step = 0;
  bool alone = from->weights_only || from->without_states;
  bool good = nxr_foreign_find(from->directory, from->step, path, &step) ||
              nxr_fault_set(fault, "this rank does not see the checkpoint in %s", from->directory);
  uint64_t updates = alone ? 0 : step;
  if (good && !alone && !nxr_foreign_has_states(path, &updates, fault)) {
    good = false;
    if (fault->text[0] == '\0')
      nxr_fault_set(
          fault,
          "%s is of another system, of which nxrun reads the weights alone: begin with them at step "
          "0 (checkpoint.weights_only), or go on at its step with an optimizer that begins anew "
          "(checkpoint.load_optimizer: false); of Megatron-LM's torch_dist Adam's state is read too, but of "
          "dp_reshardable, whose files do not say which weight it is of: save it with "
          "--dist-ckpt-optim-fully-reshardable",
          path);
  }
  if (!nxr_world_all(checkpoint->world, good)) return false;
  if (!(alone ? nxr_checkpoint_import : import_states)(checkpoint, path, fault)) return false;
  *done = from->weights_only ? 0 : step;
  if (!from->weights_only && checkpoint->run.optimizer_began)
    *checkpoint->run.optimizer_began = (int64_t)step - (int64_t)updates;
  if (checkpoint->world->rank == 0)
    nxr_print(stderr, "nxrun: begins with the weights%s of %s\n", alone ? "" : " and Adam's state", path);
  return true;
}

/* What a folder has for a run to begin with. */
typedef enum nxr_beginning { CHECKPOINTS, WEIGHTS, FOREIGN } nxr_beginning;

static nxr_beginning look_at(const nxr_resume *from) {
  char path[NXR_FOREIGN_PATH];
  uint64_t step;
  if (has_weights(from->directory)) return WEIGHTS;
  return nxr_foreign_find(from->directory, from->step, path, &step) ? FOREIGN : CHECKPOINTS;
}

bool nxr_checkpoint_load(const nxr_checkpoint *checkpoint, const nxr_resume *from, uint64_t *done,
                         bool *loaded, nxr_fault *fault) {
  nxr_world *world = checkpoint->world;
  uint64_t step = 0, beginning = world->rank == 0 ? look_at(from) : CHECKPOINTS;
  *done = 0, *loaded = false;
  nxr_world_broadcast(world, &beginning, sizeof beginning);
  if (beginning != CHECKPOINTS)
    return *loaded = beginning == FOREIGN ? load_foreign(checkpoint, from, done, fault)
                                          : nxr_checkpoint_import(checkpoint, from->directory, fault);
  if (!nxr_checkpoint_resume(checkpoint, from, &step, fault)) return false;
  *loaded = step > 0;
  *done = from->weights_only ? 0 : step;
  if (*loaded) return true;
  if (world->rank == 0 && !is_foreign(from->directory, fault))
    nxr_print(stderr, "nxrun: %s has no checkpoint: the training begins at step 0\n", from->directory);
  return nxr_world_all(world, fault->text[0] == '\0');
}
