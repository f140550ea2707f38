/* SPDX-License-Identifier: Apache-2.0 */
/* What a foreign checkpoint is gathered from: its files, and the shards found in them. */
#include "runtime/foreign/foreign_shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const nxr_foreign_file *nxr_foreign_map(nxr_foreign *foreign, const char *folder, const char *name,
                                        nxr_fault *fault) {
  nxr_foreign_file **longer = realloc(foreign->files, (foreign->n_files + 1) * sizeof *longer);
  nxr_foreign_file *file = longer ? calloc(1, sizeof *file) : NULL;
  if (longer) foreign->files = longer;
  if (file == NULL) return nxr_fault_set(fault, "out of memory"), NULL;
  bool fits = snprintf(file->path, sizeof file->path, "%s/%s", folder, name) < (int)sizeof file->path;
  if (!fits) nxr_fault_set(fault, "the name of a file in %.200s is too long", folder);
  if (fits && nxr_mapping_open(file->path, &file->mapping, fault))
    return foreign->files[foreign->n_files++] = file;
  free(file);
  return NULL;
}

void *nxr_foreign_take(nxr_foreign *foreign, size_t n, size_t n_each) {
  void **longer = realloc(foreign->owned, (foreign->n_owned + 1) * sizeof *longer);
  if (longer == NULL) return NULL;
  foreign->owned = longer;
  void *taken = calloc(n + 1, n_each);
  if (taken != NULL) foreign->owned[foreign->n_owned++] = taken;
  return taken;
}

bool nxr_foreign_add(nxr_foreign *foreign, const char *name, uint64_t order, const nxr_torch_tensor *tensor,
                     nxr_fault *fault) {
  size_t n = foreign->n_shards;
  if (tensor->n_dims < 1 || tensor->n_dims > 2) return true; /* no weight of a decoder */
  if ((n & (n - 1)) == 0) {
    nxr_shard *longer = realloc(foreign->shards, (n ? 2 * n : 1) * sizeof *longer);
    if (longer == NULL) return nxr_fault_set(fault, "out of memory");
    foreign->shards = longer;
  }
  bool matrix = tensor->n_dims == 2;
  char *copy = strdup(name);
  if (copy == NULL) return nxr_fault_set(fault, "out of memory");
  foreign->shards[foreign->n_shards++] = (nxr_shard){copy,
                                                     order,
                                                     tensor->n_dims,
                                                     {.n_rows = tensor->dims[0],
                                                      .n_columns = matrix ? tensor->dims[1] : 1,
                                                      .row_stride = tensor->strides[0],
                                                      .column_stride = matrix ? tensor->strides[1] : 1,
                                                      .dtype = tensor->dtype,
                                                      .bytes = tensor->bytes}};
  return true;
}
