/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/text.h"

#include <string.h>

enum { FIRST_ROOM = 256, BYTES_A_STEP = 1024 };

/* -- growing --------------------------------------------------------------------------------------------- */

void nxj_put(nxj_pool *pool, nxj_buffer *buffer, const char *text, size_t n_bytes) {
  nxj_work(pool, n_bytes / BYTES_A_STEP);
  if (n_bytes >= buffer->room - buffer->n) {
    size_t room = 2 * (buffer->n + n_bytes) + FIRST_ROOM;
    char *more = nxj_alloc(pool, room);
    if (buffer->n > 0) memcpy(more, buffer->text, buffer->n);
    buffer->text = more, buffer->room = room;
  }
  if (n_bytes > 0) memcpy(buffer->text + buffer->n, text, n_bytes);
  buffer->n += n_bytes;
  buffer->text[buffer->n] = '\0';
}

void nxj_put_text(nxj_pool *pool, nxj_buffer *buffer, const char *text) {
  nxj_put(pool, buffer, text, strlen(text));
}

nxj_value nxj_buffer_value(nxj_pool *pool, nxj_buffer *buffer) {
  nxj_put(pool, buffer, "", 0);
  return nxj_string(buffer->text, buffer->n);
}

/* -- code points ----------------------------------------------------------------------------------------- */

size_t nxj_code_point_at(const char *text, size_t n_bytes, size_t index) {
  size_t at = 0;
  for (; at < n_bytes && index > 0; index--) at += nxj_code_point_bytes(text + at, n_bytes - at);
  return at;
}

uint32_t nxj_decode(const char *text, size_t n_bytes, size_t *n_used) {
  static const unsigned char masks[] = {0, 0xff, 0x1f, 0x0f, 0x07};
  size_t n = *n_used = nxj_code_point_bytes(text, n_bytes);
  uint32_t code_point = (unsigned char)text[0] & masks[n];
  for (size_t i = 1; i < n; i++) code_point = code_point << 6 | ((unsigned char)text[i] & 0x3f);
  return code_point;
}

size_t nxj_encode(uint32_t code_point, char bytes[4]) {
  if (code_point < 0x80) return bytes[0] = (char)code_point, 1;
  size_t n = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
  static const unsigned char firsts[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = n; i-- > 1; code_point >>= 6) bytes[i] = (char)(0x80 | (code_point & 0x3f));
  bytes[0] = (char)(firsts[n] | code_point);
  return n;
}

bool nxj_is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool nxj_is_line_end(uint32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool nxj_is_ascii(nxj_value text) {
  for (size_t i = 0; i < text.n_bytes; i++)
    if ((unsigned char)text.text[i] >= 0x80) return false;
  return true;
}

/* -- strip ----------------------------------------------------------------------------------------------- */

static bool is_stripped(const char *text, size_t n_bytes, const nxj_value *which) {
  size_t n;
  uint32_t code_point = nxj_decode(text, n_bytes, &n);
  if (which == NULL) return nxj_is_space(code_point);
  for (size_t at = 0, m; at < which->n_bytes; at += m) {
    m = nxj_code_point_bytes(which->text + at, which->n_bytes - at);
    if (m == n && memcmp(which->text + at, text, n) == 0) return true;
  }
  return false;
}

static size_t last_begin(const char *text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && ((unsigned char)text[at] & 0xc0) == 0x80) at--;
  return nxj_code_point_bytes(text + at, end - at) == end - at ? at : end - 1;
}

nxj_value nxj_strip(nxj_value value, const nxj_value *which, bool before, bool behind) {
  size_t begin = 0, end = value.n_bytes;
  while (before && begin < end && is_stripped(value.text + begin, end - begin, which))
    begin += nxj_code_point_bytes(value.text + begin, end - begin);
  for (size_t at; behind && begin < end; end = at) {
    at = last_begin(value.text + begin, end - begin) + begin;
    if (!is_stripped(value.text + at, end - at, which)) break;
  }
  return nxj_string(value.text + begin, end - begin);
}

/* -- slices ---------------------------------------------------------------------------------------------- */

static int64_t clamp_index(nxj_pool *pool, nxj_value index, int64_t otherwise, int64_t n, int64_t least,
                           int64_t most) {
  if (index.kind == NXJ_ABSENT || index.kind == NXJ_NONE) return otherwise;
  int64_t at = nxj_integer(pool, index, "a slice's index");
  if (at < 0) at = at < -n ? least : at + n;
  return at < least ? least : at > most ? most : at;
}

static nxj_value slice_text(nxj_pool *pool, nxj_value text, int64_t start, int64_t stop) {
  size_t begin = nxj_code_point_at(text.text, text.n_bytes, (size_t)start);
  size_t length =
      stop > start ? nxj_code_point_at(text.text + begin, text.n_bytes - begin, (size_t)(stop - start)) : 0;
  nxj_work(pool, (begin + length) / BYTES_A_STEP);
  return nxj_string(text.text + begin, length);
}

static nxj_value join_items(nxj_pool *pool, const nxj_value *items, size_t n) {
  nxj_buffer buffer = {0};
  for (size_t i = 0; i < n; i++) nxj_put(pool, &buffer, items[i].text, items[i].n_bytes);
  return nxj_buffer_value(pool, &buffer);
}

nxj_value nxj_slice(nxj_pool *pool, nxj_value value, nxj_value start, nxj_value stop, nxj_value by) {
  bool is_text = value.kind == NXJ_STRING;
  if (!is_text && value.kind != NXJ_LIST && value.kind != NXJ_TUPLE)
    nxj_fail(pool, "%s has no slices", nxj_kind_name(value.kind));
  int64_t n = (int64_t)nxj_length(pool, value);
  int64_t step = by.kind == NXJ_ABSENT || by.kind == NXJ_NONE ? 1 : nxj_integer(pool, by, "a slice's step");
  if (step == 0) nxj_fail(pool, "a slice's step cannot be 0");
  bool up = step > 0;
  int64_t first = clamp_index(pool, start, up ? 0 : n - 1, n, up ? 0 : -1, up ? n : n - 1);
  int64_t end = clamp_index(pool, stop, up ? n : -1, n, up ? 0 : -1, up ? n : n - 1);
  if (is_text && step == 1) return slice_text(pool, value, first, end);
  nxj_list items = nxj_items(pool, value), chosen = {NULL, 0};
  for (int64_t at = first; up ? at < end : at > end;) {
    nxj_list_add(pool, &chosen, items.items[at]);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  if (is_text) return join_items(pool, chosen.items, chosen.n);
  return nxj_list_of(pool, value.kind, chosen.items, chosen.n);
}
