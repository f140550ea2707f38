/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer of a run: what a checkpoint's folder has copies of, and texts are read with. */
#ifndef NXR_CHECKPOINT_TOKENIZER_H
#define NXR_CHECKPOINT_TOKENIZER_H

#include "runtime/checkpoint/checkpoint_folder.h"

/* A file or folder: `first` (or NULL), where it has one; what run.tokenizer names; what nxdata made the plan's
 * datasets with, or left beside them; the folder of the weights that the run begins with. "" where there is none. */
void nxr_tokenizer_find(const nx_plan *plan, const char *first, char path[NXR_PATH_BYTES]);

#endif
