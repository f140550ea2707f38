/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text in an arena. `bytes` is NUL-terminated after every call; start from {.arena = arena}. */
#ifndef NXC_CONFIG_TEXT_H
#define NXC_CONFIG_TEXT_H

#include "compiler/arena.h"
#include "compiler/value.h"

#include <stdint.h>

typedef struct nxc_text {
  nxc_arena *arena;
  char *bytes;
  size_t n_bytes;
  size_t capacity;
} nxc_text;

void nxc_text_put(nxc_text *text, const char *bytes, size_t n_bytes);
void nxc_text_puts(nxc_text *text, const char *bytes);
void nxc_text_repeat(nxc_text *text, const char *bytes, size_t n_times);

/* The next character of UTF-8 text; a byte that belongs to none gives 0xDC00 + byte (Python's surrogateescape) and
 * length 1. *n_used receives its bytes. */
uint32_t nxc_text_decode(const char *bytes, size_t n_bytes, size_t *n_used);

/* What Python's str() gives for the value, and inside containers its repr(). */
void nxc_text_python(nxc_text *text, const nxc_value *value);
void nxc_text_python_repr(nxc_text *text, const nxc_value *value);

#endif
