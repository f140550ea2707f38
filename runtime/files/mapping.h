/* SPDX-License-Identifier: Apache-2.0 */
/* A file's bytes, mapped to be read: until the mapping is closed, or the file is cut short.
 *
 * Reading what is no longer in the file is a signal (SIGBUS), which no check beforehand can rule out:
 * nxr_mapping_guard turns it into a message that names the file, and the end of the process. */
#ifndef NXR_MAPPING_H
#define NXR_MAPPING_H

#include "runtime/files/fault.h"

#include <stdint.h>

typedef struct nxr_mapped_file nxr_mapped_file;

typedef struct nxr_mapping {
  const uint8_t *bytes; /* NULL where the file is empty */
  uint64_t n_bytes;
  nxr_mapped_file *file; /* what the guard knows of it */
} nxr_mapping;

/* A failure leaves nothing mapped. */
bool nxr_mapping_open(const char *path, nxr_mapping *mapping, nxr_fault *fault);
void nxr_mapping_close(nxr_mapping *mapping);
/* The name of the file that is mapped at an address; NULL: none is. */
const char *nxr_mapping_path(const void *address);

/* The name of a mapped file that was written to since it was mapped; each is told once. NULL: no further one.
 * What has taken its name meanwhile is another file. */
const char *nxr_mapping_changed(void);

/* From now on. Where several ranks read the same file the lowest speaks, and its end (status 1) ends the
 * others. `program` is how messages begin; it must stay. */
void nxr_mapping_guard(const char *program, uint32_t rank);

#endif
