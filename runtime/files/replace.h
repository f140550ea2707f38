/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a command makes under a name that its user gave. What is there stays until the new one is
 * whole, and goes only if it begins as this command's files do; devices, pipes and links are written to. */
#ifndef NXR_REPLACE_H
#define NXR_REPLACE_H

#include "runtime/files/fault.h"

#include <stdio.h>

typedef struct nxr_replacing {
  FILE *file; /* to write to; NULL: nothing is to be done any more */
  const char *path;
  char *temporary; /* what has not got its name yet; NULL: it is written to at once */
} nxr_replacing;

/* `path`: NULL stands for standard output. */
bool nxr_replace_open(nxr_replacing *to, const char *path, const char *beginning, nxr_fault *fault);
/* Gives it its name; false with a fault where it could not be written, or had failed to be. */
bool nxr_replace_finish(nxr_replacing *to, nxr_fault *fault);
/* What has not got its name is removed. */
void nxr_replace_close(nxr_replacing *to);

#endif
