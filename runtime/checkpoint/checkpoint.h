/* SPDX-License-Identifier: Apache-2.0 */
/* The run's folder: checkpoints written and read, weights imported, gradients dumped.
 *
 *   DIR/checkpoints/step-000120/  model.safetensors, moment1.safetensors, moment2.safetensors, manifest.json
 *
 * With adapters beside a frozen model there are adapter_model.safetensors and adapter_config.json, as PEFT
 * has them, and model.safetensors only where the plan saves the model too; else a run that resumes has it
 * from where it began.
 *
 * A checkpoint holds logical tensors by their Hugging Face names, one file per kind of storage: the weights
 * (the master copy where there is one, so that training goes on exactly; other programs read this file), and
 * the optimizer's moments where it has any. The manifest has plan_id, step, settings, and a checksum of each
 * file. All ranks write their parts of each file, on a file system that they share; the folder has a
 * temporary name until everything is synced, and older checkpoints are removed after that. So a run that is
 * killed at any moment leaves the newest checkpoint that was complete.
 *
 * Nothing is overwritten unasked: a folder with checkpoints is refused unless the run resumes; a checkpoint
 * that is found damaged is set aside under another name, never removed; one folder serves one run at a time
 * (DIR/lock).
 *
 * Every function here meets all ranks: it returns the same on each, and the fault is filled on the ranks that
 * have something to say. */
#ifndef NXR_CHECKPOINT_H
#define NXR_CHECKPOINT_H

#include "runtime/checkpoint/checkpoint_manifest.h"
#include "runtime/state/pieces.h"
#include "runtime/world/world.h"
#include "schema/signature.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct nxr_checkpoint {
  nxr_manifest_run run;
  nxr_world *world;
  const nxr_pieces *pieces;
  const char *directory; /* the run's folder */
  const char *temporary; /* such a folder for temporary checkpoints; NULL: there are none */
  const nx_trusted_keys *trusted; /* who must have signed what is read; NULL: anybody */
} nxr_checkpoint;

/* Makes the run's folder, or looks at the one that exists: without `resume` one that has checkpoints is
 * refused. Temporary checkpoints go then. */
bool nxr_checkpoint_prepare(const nxr_checkpoint *checkpoint, bool resume, nxr_fault *fault);
/* Of a run that begins with the weights of its own folder, which was prepared as if it resumes: sets aside
 * what is there (checkpoint_before.h), unless it is of the run that resumes. `from` becomes the folder that
 * has them; it is left as it is where the plan names another. */
bool nxr_checkpoint_set_aside(const nxr_checkpoint *checkpoint, bool resume, char from[4096],
                              nxr_fault *fault);
/* Whether the plan begins with the weights of the run's own folder; the same on all ranks. */
bool nxr_checkpoint_begins_with_own(const nxr_checkpoint *checkpoint);
/* Writes the state after `step` steps, and removes older ones beyond the plan's `keep`. A failure leaves the
 * earlier ones as they were. */
bool nxr_checkpoint_save(const nxr_checkpoint *checkpoint, uint64_t step, nxr_fault *fault);
/* Where a run goes on from, or begins. */
typedef struct nxr_resume {
  const char *directory; /* of the run itself, or of another */
  uint64_t step;     /* 0: the newest that is whole; else this one, and it is a fault where there is none */
  bool weights_only; /* of any plan that has these tensors; nothing else is read or compared */
  bool without_states; /* what optimizers keep is not read, and need not be there */
} nxr_resume;

/* Reads a complete checkpoint; *step is how many steps it has behind it, 0 where the folder has none
 * (then nothing is read). Says on stderr which one, and which were damaged. One of another plan or dataset is
 * refused where what differs binds a run (checkpoint_manifest.h), and so is a folder whose checkpoints are
 * all damaged. */
bool nxr_checkpoint_resume(const nxr_checkpoint *checkpoint, const nxr_resume *from, uint64_t *step,
                           nxr_fault *fault);
/* What a run begins with that has no checkpoint of its own: another run's (*done is its step, 0 with
 * weights_only), a folder of weights as nxr_checkpoint_import's, or the weights of another system's
 * checkpoint (runtime/foreign; *done is its step where the optimizer's states are not asked for). Where there
 * is none of these, `loaded` is false and stderr says so; a folder of a system whose files nxrun cannot open
 * is a fault that names what converts it. */
bool nxr_checkpoint_load(const nxr_checkpoint *checkpoint, const nxr_resume *from, uint64_t *done,
                         bool *loaded, nxr_fault *fault);
/* Reads the initial weights from a safetensors file, or a folder with model.safetensors or an index of
 * several. Every tensor of the plan must be there, in its shape; what the file has beyond is a fault too (see
 * checkpoint_read.h). */
bool nxr_checkpoint_import(const nxr_checkpoint *checkpoint, const char *path, nxr_fault *fault);
/* Reads the adapters of a folder in PEFT's format, in the same way. */
bool nxr_checkpoint_import_adapters(const nxr_checkpoint *checkpoint, const char *folder, nxr_fault *fault);
/* Makes the folder for gradients; a failure where it holds some, since nothing is overwritten. */
bool nxr_checkpoint_prepare_gradients(const nxr_checkpoint *checkpoint, const char *directory,
                                      nxr_fault *fault);
/* Writes `directory`/gradients.safetensors: every logical tensor's gradient as the arena holds it. */
bool nxr_checkpoint_gradients(const nxr_checkpoint *checkpoint, const char *directory, nxr_fault *fault);

#endif
