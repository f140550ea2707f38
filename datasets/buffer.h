/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that grow; emptied, they keep their room. */
#ifndef NXD_BUFFER_H
#define NXD_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxd_buffer {
  uint8_t *bytes;
  size_t n, room;
} nxd_buffer;

/* Room for n more bytes, which count from now on; NULL where there is no memory. Earlier addresses end. */
void *nxd_buffer_extend(nxd_buffer *buffer, size_t n);
bool nxd_buffer_append(nxd_buffer *buffer, const void *bytes, size_t n);
void nxd_buffer_free(nxd_buffer *buffer);

#endif
