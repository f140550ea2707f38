/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a reference (reference.h). */
#ifndef NXR_REFERENCE_FILE_H
#define NXR_REFERENCE_FILE_H

#include "runtime/data/dataset_fingerprint.h"
#include "schema/plan.h"

enum { NXR_REFERENCE_KEY_BYTES = 32 };

/* Of data, of the files that weights begin with (by name, size and time), and of what the plan says of the
 * model. */
void nxr_reference_key(const nx_plan *plan, const nxr_fingerprint *data,
                       uint8_t key[NXR_REFERENCE_KEY_BYTES]);
/* False where the folder has no whole file of this key and number. */
bool nxr_reference_read(const char *directory, const uint8_t key[NXR_REFERENCE_KEY_BYTES], double *sums,
                        uint64_t n);
/* The file is there whole, or as it was. */
bool nxr_reference_write(const char *directory, const uint8_t key[NXR_REFERENCE_KEY_BYTES],
                         const double *sums, uint64_t n, nxr_fault *fault);

#endif
