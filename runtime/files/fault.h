/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong in nxrun, in one message for the user.
 *
 * A function that can fail returns false and fills the fault; callers forward false unchanged. An empty text
 * means that nothing went wrong here (another rank may still have failed: see nxr_world_agree). Strings of
 * plans, checkpoints and folders come from elsewhere and end on a terminal: what it would obey is hidden
 * (schema/characters.h). */
#ifndef NXR_FAULT_H
#define NXR_FAULT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct nxr_fault {
  char text[1024];
} nxr_fault;

/* Fills the fault, if it is still empty, and returns false. */
bool nxr_fault_set(nxr_fault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { NXR_PRINTED_BYTES = 4096 };
/* fprintf of such strings; what is longer is cut. */
void nxr_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
