/* SPDX-License-Identifier: Apache-2.0 */
/* LZ4's frames, as Arrow compresses buffers with them: a header, blocks, and 0 behind the last. Checksums are
 * passed over: whoever reads knows how many bytes there must be. */
#ifndef NXD_LZ4_H
#define NXD_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One frame to exactly n_to bytes; false where it is damaged, or has another number of them. */
bool nxd_lz4_unpack(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to);

#endif
