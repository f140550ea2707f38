/* SPDX-License-Identifier: Apache-2.0 */
/* What stands beside a checkpoint's weights for other programs alone: the config.json and
 * generation_config.json with which transformers loads the folder, the files of the tokenizer, PEFT's
 * adapter_config.json. */
#ifndef NXR_CHECKPOINT_BESIDE_H
#define NXR_CHECKPOINT_BESIDE_H

#include "runtime/checkpoint/checkpoint_folder.h"
#include "tokenizer/tokenizer.h"

#define NXR_GENERATION_CONFIG "generation_config.json"

/* The tokenizer of a run, a file or folder: `first` (or NULL), where it has one; what run.tokenizer names;
 * what nxdata made the plan's datasets with, or left beside them; the folder of the weights that the run
 * begins with. "" where there is none. */
void nxr_tokenizer_find(const nx_plan *plan, const char *first, char path[NXR_PATH_BYTES]);
/* What was found, with what the plan says of it that its file does not. NULL: *fault says why. */
nxt_tokenizer *nxr_tokenizer_open(const nx_plan *plan, const char *path, nx_fault *fault);

/* A new file of the folder, synced. */
bool nxr_write_text(const char *folder, const char *name, const char *text, nxr_fault *fault);
/* All that the plan asks for, and there is. For one rank. */
bool nxr_beside_write(const char *folder, const nx_plan *plan, nxr_fault *fault);
/* Whether a file of this name may be one of these. */
bool nxr_beside_is_known(const char *name);

#endif
