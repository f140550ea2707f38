/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case, as Python's str has them: Unicode's full forms, in which a letter may become several.
 */
#include "chat/text.h"

#include <string.h>
#include <utf8proc.h>

enum {
  SHARP_S = 0xdf,
  DOTTED_I = 0x130,
  SIGMA = 0x3a3,
  FINAL_SIGMA = 0x3c2,
  IOTA_BELOW = 0x345,
  IOTA = 0x399,
  MOST_PARTS = 8
};

static void put_letter(nxj_pool *pool, nxj_buffer *out, uint32_t c) {
  char bytes[4];
  nxj_put(pool, out, bytes, nxj_encode(c, bytes));
}

static uint32_t simple(uint32_t c, utf8proc_int32_t (*map)(utf8proc_int32_t)) {
  return (uint32_t)map((utf8proc_int32_t)c);
}

static bool is_cased(uint32_t c) {
  utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT || simple(c, utf8proc_toupper) != c ||
         simple(c, utf8proc_tolower) != c;
}

/* What stands in words without being of them: marks, and signs as the apostrophe. */
static bool is_passed_over(uint32_t c) {
  static const uint32_t signs[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,  0x5f4,  0x2018, 0x2019,
                                   0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (signs[i] == c) return true;
  utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK;
}

static bool word_goes_on(nxj_value text, size_t at) {
  for (size_t n; at < text.n_bytes; at += n) {
    uint32_t c = nxj_decode(text.text + at, text.n_bytes - at, &n);
    if (!is_passed_over(c)) return is_cased(c);
  }
  return false;
}

/* `behind`: the letter stands behind one of the same word. */
static void put_lower(nxj_pool *pool, nxj_buffer *out, uint32_t c, bool behind, nxj_value text, size_t next) {
  if (c == SIGMA && behind && !word_goes_on(text, next)) put_letter(pool, out, FINAL_SIGMA);
  else put_letter(pool, out, c == DOTTED_I ? 'i' : simple(c, utf8proc_tolower));
  if (c == DOTTED_I) put_letter(pool, out, 0x307);
}

/* What a letter is made of. */
static size_t decompose(uint32_t c, utf8proc_int32_t parts[MOST_PARTS]) {
  int boundary = 0;
  utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, parts, MOST_PARTS,
                                               UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
  return n < 0 || n > MOST_PARTS ? 0 : (size_t)n;
}

/* A Greek letter with an iota below it, which is a letter of its own among capitals. */
static bool put_iota(nxj_pool *pool, nxj_buffer *out, uint32_t capital) {
  utf8proc_int32_t parts[MOST_PARTS];
  size_t n = decompose(capital, parts);
  if (utf8proc_category((utf8proc_int32_t)capital) != UTF8PROC_CATEGORY_LT || n < 2 ||
      parts[n - 1] != IOTA_BELOW)
    return false;
  utf8proc_ssize_t m = utf8proc_normalize_utf32(parts, (utf8proc_ssize_t)n - 1, UTF8PROC_COMPOSE);
  for (utf8proc_ssize_t i = 0; i < m; i++) put_letter(pool, out, (uint32_t)parts[i]);
  put_letter(pool, out, IOTA);
  return true;
}

/* Of a letter that has no capital, the capitals of what it is made of; `all` of them, or the first. */
static bool put_parts(nxj_pool *pool, nxj_buffer *out, uint32_t c, bool all) {
  utf8proc_int32_t parts[MOST_PARTS] = {'s', 's'};
  if (utf8proc_category((utf8proc_int32_t)c) != UTF8PROC_CATEGORY_LL) return false;
  size_t n = c == SHARP_S ? 2 : decompose(c, parts);
  bool done = false; /* the one capital of a title */
  if (n < 2) return false;
  for (size_t i = 0; i < n; i++) {
    uint32_t part = (uint32_t)parts[i], capital = done ? part : simple(part, utf8proc_toupper);
    if (part == IOTA_BELOW && all) capital = IOTA;
    done = done || (!all && capital != part);
    put_letter(pool, out, capital);
  }
  return true;
}

static void put_upper(nxj_pool *pool, nxj_buffer *out, uint32_t c, bool all) {
  uint32_t capital = simple(c, all ? utf8proc_toupper : utf8proc_totitle);
  if (all && put_iota(pool, out, capital)) return;
  if ((capital == c || c == SHARP_S) && put_parts(pool, out, c, all)) return;
  put_letter(pool, out, capital);
}

nxj_value nxj_cased(nxj_pool *pool, nxj_value text, nxj_case form) {
  nxj_buffer out = {0};
  bool inside = false, behind = false; /* a cased letter; with what is passed over between */
  for (size_t at = 0, n; at < text.n_bytes; at += n) {
    uint32_t c = nxj_decode(text.text + at, text.n_bytes - at, &n);
    if (form == NXJ_UPPER) put_upper(pool, &out, c, true);
    else if ((form == NXJ_TITLE && !inside) || (form == NXJ_CAPITALIZED && at == 0))
      put_upper(pool, &out, c, false);
    else put_lower(pool, &out, c, behind, text, at + n);
    inside = is_cased(c);
    if (!is_passed_over(c)) behind = inside;
  }
  return nxj_buffer_value(pool, &out);
}
