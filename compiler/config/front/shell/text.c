/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/shell/text.h"

#include <string.h>

static void make_room(nxc_arena *arena, nxc_text *text) {
  enum { LEAST = 16 };
  const nxc_text before = *text;
  text->room = before.n_bytes < LEAST ? LEAST : 2 * before.n_bytes;
  text->origins = nxc_arena_array(arena, text->room, sizeof *text->origins + 2);
  text->bytes = (char *)(text->origins + text->room);
  text->marks = (unsigned char *)text->bytes + text->room;
  if (before.n_bytes == 0) return;
  memcpy(text->origins, before.origins, before.n_bytes * sizeof *text->origins);
  memcpy(text->bytes, before.bytes, before.n_bytes);
  memcpy(text->marks, before.marks, before.n_bytes);
}

void nxc_text_put(nxc_arena *arena, nxc_text *text, char byte, size_t origin, unsigned char marks) {
  if (text->n_bytes >= text->room) make_room(arena, text);
  text->bytes[text->n_bytes] = byte;
  text->origins[text->n_bytes] = (uint32_t)origin;
  text->marks[text->n_bytes++] = marks;
}

void nxc_text_append(nxc_arena *arena, nxc_text *text, const nxc_text *more) {
  for (size_t i = 0; i < more->n_bytes; i++)
    nxc_text_put(arena, text, more->bytes[i], more->origins[i], more->marks[i]);
}

nxc_text nxc_text_copy(nxc_arena *arena, const nxc_text *text) {
  nxc_text copy = {0};
  nxc_text_append(arena, &copy, text);
  return copy;
}

nxc_text nxc_text_from(nxc_arena *arena, const char *bytes, size_t n_bytes, size_t origin,
                       unsigned char marks) {
  nxc_text text = {.bytes = nxc_arena_strndup(arena, bytes, n_bytes), .n_bytes = n_bytes};
  text.origins = nxc_arena_array(arena, n_bytes + 1, sizeof *text.origins);
  text.marks = nxc_arena_array(arena, n_bytes + 1, 1);
  for (size_t i = 0; i < n_bytes; i++) text.origins[i] = (uint32_t)origin;
  if (n_bytes > 0) memset(text.marks, marks, n_bytes);
  return text;
}

nxc_text nxc_text_part(const nxc_text *text, size_t from, size_t n_bytes) {
  if (from > text->n_bytes) from = text->n_bytes;
  if (n_bytes > text->n_bytes - from) n_bytes = text->n_bytes - from;
  if (n_bytes == 0) return (nxc_text){0};
  return (nxc_text){text->bytes + from, text->origins + from, text->marks + from, n_bytes, 0};
}

const char *nxc_text_string(nxc_arena *arena, const nxc_text *text) {
  return nxc_arena_strndup(arena, text->n_bytes ? text->bytes : "", text->n_bytes);
}

bool nxc_text_any(const nxc_text *text, unsigned char marks) {
  for (size_t i = 0; i < text->n_bytes; i++)
    if ((text->marks[i] & marks) == marks) return true;
  return false;
}

bool nxc_text_all(const nxc_text *text, unsigned char marks) {
  for (size_t i = 0; i < text->n_bytes; i++)
    if ((text->marks[i] & marks) != marks) return false;
  return text->n_bytes > 0;
}

bool nxc_text_equal(const nxc_text *a, const nxc_text *b) {
  if (a->n_bytes != b->n_bytes) return false;
  for (size_t i = 0; i < a->n_bytes; i++)
    if (a->bytes[i] != b->bytes[i] || ((a->marks[i] ^ b->marks[i]) & NXC_MARK_UNKNOWN) != 0) return false;
  return true;
}

bool nxc_text_is(const nxc_text *text, const char *what) {
  return text->n_bytes == strlen(what) &&
         strncmp(text->n_bytes ? text->bytes : "", what, text->n_bytes) == 0 &&
         !nxc_text_any(text, NXC_MARK_UNKNOWN);
}
