/* SPDX-License-Identifier: Apache-2.0 */
/* A file's bytes, mapped to be read. They stay readable until the mapping is closed. */
#ifndef NXR_MAPPING_H
#define NXR_MAPPING_H

#include "runtime/fault.h"

#include <stdint.h>

typedef struct nxr_mapping {
  const uint8_t *bytes; /* NULL where the file is empty */
  uint64_t n_bytes;
} nxr_mapping;

/* A failure leaves nothing mapped. */
bool nxr_mapping_open(const char *path, nxr_mapping *mapping, nxr_fault *fault);
void nxr_mapping_close(nxr_mapping *mapping);

#endif
