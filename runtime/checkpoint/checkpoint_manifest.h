/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.json: what a checkpoint consists of, of which plan, and after which step.
 *
 *   {"format": "nxrun checkpoint", "version": 2, "plan_id": hex, "step": n,
 *    "files": {name: {"bytes": n, "sum": hex}}, "settings": {path: value},
 *    "dataset": {"documents": n, "tokens": n, "sha256": hex},
 *    "score": {"loss": x, "evaluated": n}, "optimizer_began": n,
 *    "loss_scale": {"factor": x, "good": n, "left": n, "skipped": n, "samples": n},
 *    "plateau": {"best": x, "loss": x, "bad": n, "cooling": n, "reductions": n}, "manifest_sum": hex}
 *
 * It is written last, and the settings are the plan's: so that a later plan can say what differs. The dataset
 * is what the run was trained on (dataset_fingerprint.h), a sum is that of checkpoint_sum.h.
 * The manifest's own is that of all the rest of it, however it is laid out; one without it is as good. */
#ifndef NXR_CHECKPOINT_MANIFEST_H
#define NXR_CHECKPOINT_MANIFEST_H

#include "runtime/checkpoint/checkpoint_sum.h"
#include "runtime/checkpoint/checkpoint_tensors.h"
#include "runtime/data/dataset_fingerprint.h"
#include "runtime/state/loss_scale.h"
#include "runtime/state/plateau.h"
#include "schema/plan.h"

#include <jansson.h>

#define NXR_MODEL_CONFIG "config.json"
#define NXR_ADAPTER_FILE "adapter_model.safetensors"
#define NXR_ADAPTER_CONFIG "adapter_config.json"
enum { NXR_MANIFEST_VERSION = 2 };
enum { NXR_CHECKPOINT_FILES = 2 + NXR_MAX_STATE_FILES + NXR_MAX_SHARDS, NXR_FILE_NAME_BYTES = 48 };

typedef struct nxr_checkpoint_file {
  char name[NXR_FILE_NAME_BYTES];
  uint32_t shard; /* of the model's weights, from 1; 0: the file has all of its content */
  uint64_t n_bytes;
  nxr_sum sum;
} nxr_checkpoint_file;

/* Fills n_bytes of files in the folder. */
bool nxr_manifest_sizes(const char *folder, nxr_checkpoint_file *files, uint32_t n_files, nxr_fault *fault);
/* What a checkpoint is worth: the newest loss of what the plan judges checkpoints by. */
typedef struct nxr_score {
  bool known;
  double loss;
  uint64_t
      evaluated; /* the step after which everything was evaluated that was due, last; UINT64_MAX: not known */
} nxr_score;

/* What a manifest says of its run: of which plan it is, and on what it was trained. */
typedef struct nxr_manifest_run {
  const nx_plan *plan;
  const nxr_fingerprint *dataset; /* NULL: not known, and not compared */
  bool new_dataset;               /* going on with another one was asked for */
  nxr_loss_scale *scale;          /* written where the plan has one, and read by nxr_manifest_check_run */
  nxr_plateau *plateau;           /* as `scale` */
  nxr_score *score;               /* as `scale`; NULL: nothing is evaluated */
  int64_t *optimizer_began;       /* as `scale`, where the plan counts updates for themselves */
  uint64_t epoch_steps; /* of one epoch, for names of links; 0: not known */
} nxr_manifest_run;

/* Whether the folder has a manifest of a checkpoint at all, of whatever step. */
bool nxr_manifest_is_there(const char *folder);
/* Whether checkpoints hold the model, not only adapters beside it. */
bool nxr_manifest_has_base(const nx_plan *plan);
/* Writes and syncs the manifest of a checkpoint whose files are written, and before it what stands beside
 * them for other programs (checkpoint_beside.h). */
bool nxr_manifest_write(const char *folder, const nxr_manifest_run *run, uint64_t step,
                        const nxr_checkpoint_file *files, uint32_t n_files, nxr_fault *fault);
/* As it is written, with its sum; the caller's to free. */
char *nxr_manifest_text(json_t *manifest);
/* False where the manifest has none. */
bool nxr_manifest_score(const json_t *manifest, nxr_score *score);
/* Reads the manifest; false where the checkpoint is incomplete or damaged. The caller's to json_decref. */
bool nxr_manifest_read(const char *folder, uint64_t step, json_t **manifest, nxr_fault *fault);
/* Whether a run may go on from it: it is in a version that can be read, of the same dataset, and of the same
 * plan, or of one that differs in nothing that binds a run (other ranks, another ZeRO stage, another learning
 * rate), which is said on stderr. The fault says what differs. */
bool nxr_manifest_check_run(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                            nxr_fault *fault);
/* What its run was trained on; false where it does not say, as in older versions. */
bool nxr_manifest_dataset(const json_t *manifest, nxr_fingerprint *dataset);
/* The plan's, path by path; the caller's to json_decref. */
/* The bytes of 64 small hexadecimal digits. */
bool nxr_hex_parse(const char *hex, uint8_t bytes[32]);
json_t *nxr_manifest_settings(const nx_plan *plan);
uint32_t nxr_manifest_n_files(const json_t *manifest);
/* Fills n_bytes and sum of the files by name; false where one is missing, or of another size. There may be
 * others. */
bool nxr_manifest_files(const json_t *manifest, const char *folder, nxr_checkpoint_file *files,
                        uint32_t n_files, nxr_fault *fault);

#endif
