/* SPDX-License-Identifier: Apache-2.0 */
/* What torch.save wrote: a zip of a pickle and of the bytes of storages, that its tensors are views of. */
#ifndef NX_TORCH_FILE_H
#define NX_TORCH_FILE_H

#include "schema/torch/pickle.h"
#include "schema/torch/zip.h"

typedef struct nx_torch_file {
  const char *path; /* the caller's */
  nx_zip zip;
  nx_pickle pickle;
  char prefix[256]; /* of its members' names, with "/" */
} nx_torch_file;

/* A part of a file's bytes, which stay the caller's. A failure leaves nothing to close. */
bool nx_torch_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_torch_file *file,
                   nx_fault *fault);
void nx_torch_close(nx_torch_file *file);
/* The member of this name below a folder, as "data/" "0"; NULL: there is none. */
const nx_zip_member *nx_torch_find(const nx_torch_file *file, const char *folder, const char *key);

#endif
