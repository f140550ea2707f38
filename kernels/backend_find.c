/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of this build. */
#include "kernels/backend.h"

#include <string.h>

static const nxk_backend *const backends[] = {
    &nxk_ref,
#ifdef NX_WITH_CPU
    &nxk_cpu,
#endif
#ifdef NX_WITH_OPENCL
    &nxk_opencl,
#endif
#ifdef NX_WITH_FAR
    &nxk_far,
#endif
};

const nxk_backend *nxk_backend_at(uint32_t index) {
  return index < sizeof backends / sizeof *backends ? backends[index] : NULL;
}

const nxk_backend *nxk_backend_find(const char *name) {
  for (size_t index = 0; index < sizeof backends / sizeof *backends; index++)
    if (strcmp(backends[index]->name, name) == 0) return backends[index];
  return NULL;
}
