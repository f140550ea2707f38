/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/buffer.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_ROOM = 4096 };

void *nxd_buffer_extend(nxd_buffer *buffer, size_t n) {
  if (n > SIZE_MAX / 4 - buffer->n) return NULL;
  size_t needed = buffer->n + n, room = buffer->room ? buffer->room : LEAST_ROOM;
  while (room < needed) room *= 2;
  if (room > buffer->room) {
    uint8_t *bytes = realloc(buffer->bytes, room);
    if (bytes == NULL) return NULL;
    buffer->bytes = bytes, buffer->room = room;
  }
  uint8_t *at = buffer->bytes + buffer->n;
  buffer->n = needed;
  return at;
}

bool nxd_buffer_append(nxd_buffer *buffer, const void *bytes, size_t n) {
  void *at = nxd_buffer_extend(buffer, n);
  if (at && n > 0) memcpy(at, bytes, n);
  return at != NULL;
}

void nxd_buffer_free(nxd_buffer *buffer) {
  free(buffer->bytes);
  *buffer = (nxd_buffer){0};
}
