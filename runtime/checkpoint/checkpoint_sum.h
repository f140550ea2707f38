/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum of a file that many ranks write at once, each its own parts, without reading anything back.
 *
 * A file is a sequence of words v(k) of 8 bytes, in little-endian order, the last one filled up with zeros.
 * Its checksum is the sum of v(k) r^k modulo 2^61 - 1, for two numbers r. A sum has any order: each rank adds
 * up what it writes where it stands, and the ranks' sums are added. It finds damage (a changed, missing or
 * misplaced byte with all but 2^-90 of certainty); who wants to cheat can. Against that there are signatures.
 */
#ifndef NXR_CHECKPOINT_SUM_H
#define NXR_CHECKPOINT_SUM_H

#include "runtime/files/fault.h"
#include "runtime/world/world.h"

enum { NXR_SUM_NUMBERS = 2, NXR_SUM_TEXT_BYTES = 33, NXR_SUM_MOST = 16 };

typedef struct nxr_sum {
  uint64_t at[NXR_SUM_NUMBERS];
} nxr_sum;

/* The bytes that stand at `offset` of the file. */
void nxr_sum_add(nxr_sum *sum, const void *bytes, uint64_t n_bytes, uint64_t offset);
/* The sums of all ranks become everybody's, NXR_SUM_MOST at a time. Meets all ranks. */
void nxr_sum_combine(nxr_world *world, nxr_sum *sums, uint32_t n);
bool nxr_sum_equal(const nxr_sum *one, const nxr_sum *other);
void nxr_sum_text(const nxr_sum *sum, char text[NXR_SUM_TEXT_BYTES]);
/* False where it is no such text; NULL is none. */
bool nxr_sum_parse(const char *text, nxr_sum *sum);

/* Adds part `index` of `n` equal parts of a file, and says how long the file is. */
bool nxr_sum_file(const char *path, uint32_t index, uint32_t n, nxr_sum *sum, uint64_t *n_bytes,
                  nxr_fault *fault);

#endif
