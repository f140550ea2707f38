/* SPDX-License-Identifier: Apache-2.0 */
/* The plan file, verified and proved; nothing else is believed about it. It is read, not mapped: what was
 * verified stays, whatever happens to the file. */
#ifndef NXR_FILE_H
#define NXR_FILE_H

#include "runtime/files/fault.h"
#include "schema/plan.h"
#include "schema/signature.h"

typedef struct nxr_file {
  uint8_t *bytes;
  nx_plan plan; /* its pointers go into `bytes` */
} nxr_file;

/* One that none of the keys has signed is not looked at further; NULL: anybody may have made it. A failure
 * leaves nothing allocated. */
bool nxr_file_open(const char *path, const nx_trusted_keys *keys, nxr_file *file, nxr_fault *fault);
void nxr_file_close(nxr_file *file);

#endif
