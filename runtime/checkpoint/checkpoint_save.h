/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that are written while the training goes on.
 *
 * A save begins between two steps: each rank copies what it writes, and a thread of it writes, syncs and sums
 * up that copy. When all threads have done so (the run's vote says it), a thread of rank 0 writes the
 * manifest and gives the folder its name. The threads talk to nobody: all meetings of ranks are here, in
 * functions that the whole run calls between the same two steps. A save that is not in the background is the
 * same without copies. Who waits for a thread that writes nothing for run.deadline_s ends the run. */
#ifndef NXR_CHECKPOINT_SAVE_H
#define NXR_CHECKPOINT_SAVE_H

#include "runtime/checkpoint/checkpoint.h"

typedef struct nxr_saver nxr_saver;

bool nxr_saver_open(const nxr_checkpoint *checkpoint, bool background, nxr_saver **saver, nxr_fault *fault);
/* Waits for this rank's own thread; what is not complete by then stays unfinished. */
void nxr_saver_close(nxr_saver *saver);

/* From now on `saved` is called on every rank, within the functions below, when a newer one is complete. */
void nxr_saver_tells(nxr_saver *saver, void (*saved)(void *context), void *context);
/* Begins to save the state after `step` steps, for good or in the place of the temporary one before it. None
 * may be under way. Where it returns false, on all ranks, there is no such checkpoint, and those before it
 * are as they were; the fault is filled where somebody knows why. The same of each of the functions below. */
bool nxr_saver_begin(nxr_saver *saver, uint64_t step, bool temporary, nxr_fault *fault);
/* Whether one is under way: the same on all ranks. */
bool nxr_saver_is_open(const nxr_saver *saver);
/* Whether this rank's thread is at work. */
bool nxr_saver_is_busy(const nxr_saver *saver);
/* Goes on with one that is under way, when no rank is busy. */
bool nxr_saver_advance(nxr_saver *saver, nxr_fault *fault);
/* Waits until none is under way. */
bool nxr_saver_finish(nxr_saver *saver, nxr_fault *fault);
/* Bytes that this rank copies for a save in the background; 0 where there is no memory to find out. */
uint64_t nxr_saver_copy_bytes(const nxr_checkpoint *checkpoint);
/* The step of the newest that is complete; 0: none yet. */
uint64_t nxr_saver_newest(const nxr_saver *saver);

#endif
