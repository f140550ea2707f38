/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/unicode.h"

#include "tokenizer/memory.h"

#include <pthread.h>
#include <string.h>
#include <utf8proc.h>

uint16_t nxt_classes[NXT_N_CHARS];

enum { HANGUL = NXT_CANONICAL | NXT_COMPATIBLE };

static const uint16_t category_classes[] = {
    [UTF8PROC_CATEGORY_LU] = NXT_LETTER | NXT_UPPER | NXT_WORD,
    [UTF8PROC_CATEGORY_LL] = NXT_LETTER | NXT_LOWER | NXT_WORD,
    [UTF8PROC_CATEGORY_LT] = NXT_LETTER | NXT_UPPER | NXT_WORD,
    [UTF8PROC_CATEGORY_LM] = NXT_LETTER | NXT_WORD,
    [UTF8PROC_CATEGORY_LO] = NXT_LETTER | NXT_WORD,
    [UTF8PROC_CATEGORY_MN] = NXT_MARK | NXT_OLD_MARK | NXT_OLD_NONSPACING | NXT_WORD,
    [UTF8PROC_CATEGORY_MC] = NXT_MARK | NXT_OLD_MARK | NXT_WORD,
    [UTF8PROC_CATEGORY_ME] = NXT_MARK | NXT_OLD_MARK | NXT_WORD,
    [UTF8PROC_CATEGORY_ND] = NXT_NUMBER | NXT_WORD,
    [UTF8PROC_CATEGORY_NL] = NXT_NUMBER | NXT_WORD,
    [UTF8PROC_CATEGORY_NO] = NXT_NUMBER,
    [UTF8PROC_CATEGORY_PC] = NXT_PUNCTUATION | NXT_OLD_PUNCTUATION | NXT_WORD,
    [UTF8PROC_CATEGORY_PD] = NXT_PUNCTUATION | NXT_OLD_PUNCTUATION,
    [UTF8PROC_CATEGORY_PS] = NXT_PUNCTUATION | NXT_OLD_PUNCTUATION,
    [UTF8PROC_CATEGORY_PE] = NXT_PUNCTUATION | NXT_OLD_PUNCTUATION,
    [UTF8PROC_CATEGORY_PI] = NXT_PUNCTUATION | NXT_OLD_PUNCTUATION,
    [UTF8PROC_CATEGORY_PF] = NXT_PUNCTUATION | NXT_OLD_PUNCTUATION,
    [UTF8PROC_CATEGORY_PO] = NXT_PUNCTUATION | NXT_OLD_PUNCTUATION,
    [UTF8PROC_CATEGORY_SM] = NXT_SYMBOL,
    [UTF8PROC_CATEGORY_SC] = NXT_SYMBOL,
    [UTF8PROC_CATEGORY_SK] = NXT_SYMBOL,
    [UTF8PROC_CATEGORY_SO] = NXT_SYMBOL,
    [UTF8PROC_CATEGORY_ZS] = NXT_SPACE,
    [UTF8PROC_CATEGORY_ZL] = NXT_SPACE,
    [UTF8PROC_CATEGORY_ZP] = NXT_SPACE,
    [UTF8PROC_CATEGORY_CC] = NXT_CONTROL,
    [UTF8PROC_CATEGORY_CF] = NXT_CONTROL,
    [UTF8PROC_CATEGORY_CO] = NXT_CONTROL,
    [UTF8PROC_CATEGORY_CS] = 0,
};

/* Further characters of a class that no category says. */
static const nxt_age further[] = {
    {0x9, 0xd, NXT_SPACE, 0},         {0x85, 0x85, NXT_SPACE, 0},       {0x24b6, 0x24e9, NXT_WORD, 0},
    {0x1f130, 0x1f149, NXT_WORD, 0},  {0x1f150, 0x1f169, NXT_WORD, 0},  {0x1f170, 0x1f189, NXT_WORD, 0},
    {0x1161, 0x1175, HANGUL, 0},      {0x11a8, 0x11c2, HANGUL, 0},      {0xac00, 0xd7a3, HANGUL, 0},
};

const nxt_age nxt_ages[] = {
#define AGE(first, last, sets, clears) {first, last, sets, clears},
#include "tokenizer/unicode_ages.def"
#undef AGE
};
const size_t nxt_n_ages = sizeof nxt_ages / sizeof *nxt_ages;

/* Whether it is the second of two that a composed form joins: the table's own encoding of that. */
static bool joins(const utf8proc_property_t *property) {
  return property->comb_index != UINT16_MAX && property->comb_index >= 0x8000;
}

static uint16_t form_classes(const utf8proc_property_t *property) {
  if (property->combining_class != 0 || joins(property)) return NXT_CANONICAL | NXT_COMPATIBLE;
  if (property->decomp_seqindex == UINT16_MAX) return 0;
  return property->decomp_type == 0 ? NXT_CANONICAL | NXT_COMPATIBLE : NXT_COMPATIBLE;
}

static void change_classes(const nxt_age *ranges, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (uint32_t c = ranges[i].first; c <= ranges[i].last; c++)
      nxt_classes[c] = (uint16_t)((nxt_classes[c] & ~ranges[i].clears) | ranges[i].sets);
}

static void fill_classes(void) {
  for (utf8proc_int32_t c = 0; c < NXT_N_CHARS; c++) {
    const utf8proc_property_t *property = utf8proc_get_property(c);
    nxt_classes[c] = (uint16_t)(category_classes[property->category] | form_classes(property));
  }
  change_classes(further, sizeof further / sizeof *further);
  change_classes(nxt_ages, nxt_n_ages);
}

void nxt_unicode_ready(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_classes);
}

/* Letters that have small ones since Unicode 16 and 17. */
static const struct {
  uint32_t first, last, lower;
} newer_letters[] = {{0x1c89, 0x1c89, 0x1c8a}, {0xa7cb, 0xa7cb, 0x264}, {0xa7cc, 0xa7cc, 0xa7cd},
                     {0xa7ce, 0xa7ce, 0xa7cf}, {0xa7d2, 0xa7d2, 0xa7d3}, {0xa7d4, 0xa7d4, 0xa7d5},
                     {0xa7da, 0xa7da, 0xa7db}, {0xa7dc, 0xa7dc, 0x19b}, {0x10d50, 0x10d65, 0x10d70},
                     {0x16ea0, 0x16eb8, 0x16ebb}};

uint32_t nxt_lower_char(uint32_t c) {
  for (size_t i = 0; c >= newer_letters[0].first && i < sizeof newer_letters / sizeof *newer_letters; i++)
    if (c >= newer_letters[i].first && c <= newer_letters[i].last)
      return newer_letters[i].lower + (c - newer_letters[i].first);
  return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}

size_t nxt_put_char(uint32_t c, char bytes[4]) {
  return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)bytes);
}

void nxt_text_add_char(nxt_text *text, uint32_t c) {
  text->n += nxt_put_char(c, nxt_text_reserve(text, 4));
}

/* How many bytes at `at` are one character (good), or the longest begin of one, or one byte that begins none.
 */
static size_t take_char(const uint8_t *at, const uint8_t *end, bool *good) {
  uint8_t first = at[0], least = 0x80, most = 0xbf;
  size_t n = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (first == 0xe0) least = 0xa0;
  if (first == 0xed) most = 0x9f;
  if (first == 0xf0) least = 0x90;
  if (first == 0xf4) most = 0x8f;
  *good = n == 1;
  if (n < 2) return 1;
  size_t i = 1;
  for (; i < n && at + i < end && at[i] >= least && at[i] <= most; i++) least = 0x80, most = 0xbf;
  *good = i == n;
  return i;
}

size_t nxt_valid_bytes(const char *text, size_t n_bytes) {
  if (n_bytes == 0) return 0;
  const uint8_t *begin = (const uint8_t *)text, *at = begin, *end = begin + n_bytes;
  while (at < end) {
    uint64_t eight = 0;
    if (end - at >= 8 && (memcpy(&eight, at, 8), (eight & 0x8080808080808080u) == 0)) {
      at += 8;
      continue;
    }
    bool good;
    size_t n = take_char(at, end, &good);
    if (!good) break;
    at += n;
  }
  return (size_t)(at - begin);
}

void nxt_add_repaired(nxt_text *to, const char *text, size_t n_bytes) {
  for (size_t at = 0; at < n_bytes;) {
    size_t n_valid = nxt_valid_bytes(text + at, n_bytes - at);
    nxt_text_add(to, text + at, n_valid);
    at += n_valid;
    if (at == n_bytes) break;
    bool good;
    at += take_char((const uint8_t *)text + at, (const uint8_t *)text + n_bytes, &good);
    nxt_text_add_char(to, NXT_REPLACEMENT);
  }
}
