/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of one dataset appended to another, as they are. */
#ifndef NXD_COPY_H
#define NXD_COPY_H

#include "datasets/writer.h"

/* The type of several datasets, or one that holds the tokens of each. */
uint8_t nxd_copy_type(const nxr_dataset *datasets, int n);
/* Documents [first, end); the writer has a type that holds all of their tokens. */
bool nxd_copy_documents(const nxr_dataset *from, uint64_t first, uint64_t end, nxd_writer *writer,
                        nxr_fault *fault);

#endif
