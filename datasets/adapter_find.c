/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/adapter_parts.h"

#include <string.h>

enum { NAME_BYTES = 512 };

static const char PREFIX[] = "base_model.model.";

static const nxr_safetensor *find_named(const nxd_adapter *a, const char *base, size_t n_own,
                                        const char *ending) {
  size_t n = strlen(base);
  for (uint64_t i = 0; i < a->file.n_tensors; i++) {
    const nxr_safetensor *tensor = &a->file.tensors[i];
    if (strncmp(tensor->name, PREFIX, sizeof PREFIX - 1) != 0) continue;
    const char *names[] = {tensor->name + sizeof PREFIX - 1,
                           nx_tensor_base_name(tensor->name + sizeof PREFIX - 1)};
    for (int k = 0; k < 2; k++)
      if (strncmp(names[k], base, n - n_own) == 0 && strcmp(names[k] + n - n_own, ending) == 0) {
        a->used[i] = true;
        return tensor;
      }
  }
  return NULL;
}

const nxr_safetensor *nxd_adapter_find(const nxd_adapter *a, const char *base, const char *own,
                                       const char *ending) {
  char shared[NAME_BYTES];
  size_t n = strlen(base), n_own = strlen(own);
  if (n <= n_own || strcmp(base + n - n_own, own) != 0) return NULL;
  const nxr_safetensor *found = find_named(a, base, n_own, ending);
  if (found == NULL && nx_tensor_shared_name(base, shared, sizeof shared))
    found = find_named(a, shared, n_own, ending);
  return found;
}
