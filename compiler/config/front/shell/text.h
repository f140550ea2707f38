/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a shell text. Each knows the byte of the source that it came from, and what is known of it: a byte
 * that stands for a value which nothing here tells is marked, and whatever is made of it is unknown too. */
#ifndef NXC_SHELL_TEXT_H
#define NXC_SHELL_TEXT_H

#include "compiler/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum {
  NXC_MARK_UNKNOWN = 1,     /* stands for a value that only a run would tell */
  NXC_MARK_UNDEFINED = 2,   /* ... of a variable that neither the script nor the environment sets */
  NXC_MARK_ARGUMENT = 4,    /* ... that the script's own arguments would tell */
  NXC_MARK_MANY = 8,        /* ... and may become no word, or several */
  NXC_MARK_QUOTED = 16,     /* no sign of a pattern */
  NXC_MARK_ENVIRONMENT = 32, /* from nxcfg's own environment */
  NXC_MARK_MAYBE = 64,       /* known, but it stands there on some ways through the script only */
  NXC_MARK_FOLDER = 128      /* unknown, and stands for the folder that its text lies in (folders.c) */
};

typedef struct nxc_text {
  char *bytes;
  uint32_t *origins;
  unsigned char *marks;
  size_t n_bytes;
  size_t room; /* bytes that it may have before it must move; 0: it shares another's */
} nxc_text;

void nxc_text_put(nxc_arena *arena, nxc_text *text, char byte, size_t origin, unsigned char marks);
/* A copy that may grow. */
nxc_text nxc_text_copy(nxc_arena *arena, const nxc_text *text);
void nxc_text_append(nxc_arena *arena, nxc_text *text, const nxc_text *more);
/* Every byte from one place, with these marks. */
nxc_text nxc_text_from(nxc_arena *arena, const char *bytes, size_t n_bytes, size_t origin,
                       unsigned char marks);
nxc_text nxc_text_part(const nxc_text *text, size_t from, size_t n_bytes);
const char *nxc_text_string(nxc_arena *arena, const nxc_text *text);
/* Whether any byte, or every one of at least one, has all of these marks. */
bool nxc_text_any(const nxc_text *text, unsigned char marks);
bool nxc_text_all(const nxc_text *text, unsigned char marks);
bool nxc_text_equal(const nxc_text *a, const nxc_text *b);
bool nxc_text_is(const nxc_text *text, const char *what);
/* What is to be filled in before bash can read it, as its bytes; 0: none begins here. <path of the data>, and
 * where a field begins also `your data path`. */
size_t nxc_text_in_angles(const nxc_text *text, size_t at);
size_t nxc_text_placeholder(const nxc_text *text, size_t at);

#endif
