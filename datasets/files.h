/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the inputs of a dataset are: what a path names, a file, a folder of data files, or one that
 * Hugging Face datasets saved. */
#ifndef NXD_FILES_H
#define NXD_FILES_H

#include "datasets/input.h"

typedef struct nxd_files {
  const nxd_input_kind **kinds;
  char **paths;
  size_t n, room;
  uint64_t n_bytes; /* of all; 0 where that is not known */
} nxd_files;

/* Adds what `path` names, in order. `kind` NULL: by the endings of the files' names. `split` (NULL: none) is
 * the part that is meant of a folder that has several. */
bool nxd_files_add(nxd_files *files, const char *path, const nxd_input_kind *kind, const char *split,
                   nxr_fault *fault);
/* An input that is no file, of a kind that makes data up. */
bool nxd_files_add_made_up(nxd_files *files, const nxd_input_kind *kind, nxr_fault *fault);
void nxd_files_free(nxd_files *files);

#endif
