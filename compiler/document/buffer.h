/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text in an arena. `bytes` is NUL-terminated after every call; start from {.arena = arena}. */
#ifndef NXC_CONFIG_BUFFER_H
#define NXC_CONFIG_BUFFER_H

#include "compiler/arena.h"
#include "compiler/value.h"

#include <stdint.h>

typedef struct nxc_buffer {
  nxc_arena *arena;
  char *bytes;
  size_t n_bytes;
  size_t capacity;
} nxc_buffer;

void nxc_buffer_put(nxc_buffer *text, const char *bytes, size_t n_bytes);
void nxc_buffer_puts(nxc_buffer *text, const char *bytes);
void nxc_buffer_repeat(nxc_buffer *text, const char *bytes, size_t n_times);

/* The next character of UTF-8 text; a byte that belongs to none gives 0xDC00 + byte (Python's
 * surrogateescape) and length 1. *n_used receives its bytes. */
uint32_t nxc_buffer_decode(const char *bytes, size_t n_bytes, size_t *n_used);

/* What Python's str() gives for the value, and inside containers its repr(). */
void nxc_write_python(nxc_buffer *text, const nxc_value *value);

#endif
