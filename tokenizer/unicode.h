/* SPDX-License-Identifier: Apache-2.0 */
/* Characters: UTF-8, and what Unicode says of each.
 *
 * utf8proc gives categories, decompositions and grapheme boundaries in 340 KB; ICU would be 30 MB, and
 * libunistring has no boundaries of graphemes that begin in the middle of a text. Its answers are copied into
 * one table when the first tokenizer is opened (8 ms), because text asks for several at every character.
 * Where the libraries that tokenizers were made with know another Unicode than utf8proc does,
 * unicode_ages.def has it. */
#ifndef NXT_UNICODE_H
#define NXT_UNICODE_H

#include "tokenizer/tokenizer.h"

enum {
  NXT_LETTER = 1 << 0,
  NXT_UPPER = 1 << 1, /* upper and title case */
  NXT_LOWER = 1 << 2,
  NXT_MARK = 1 << 3,
  NXT_NUMBER = 1 << 4,
  NXT_SPACE = 1 << 5, /* White_Space */
  NXT_PUNCTUATION = 1 << 6,
  NXT_SYMBOL = 1 << 7,
  NXT_CONTROL = 1 << 8, /* control, format and private */
  NXT_WORD =
      1
      << 9, /* what \w is: letters, marks, decimal digits, connectors, whatever else is alphabetic, joiners */
  NXT_CANONICAL = 1 << 10,  /* canonical forms change it, or move it, or join it with what stands before */
  NXT_COMPATIBLE = 1 << 11, /* the same of compatibility forms */
  /* As Unicode 8 and 9 had it, where tokenizers' libraries still have it so. */
  NXT_OLD_PUNCTUATION = 1 << 12,
  NXT_OLD_MARK = 1 << 13,
  NXT_OLD_NONSPACING = 1 << 14
};

/* A range of characters whose classes are others than utf8proc says. */
typedef struct nxt_age {
  uint32_t first, last;
  uint16_t sets, clears;
} nxt_age;

extern const nxt_age nxt_ages[];
extern const size_t nxt_n_ages;

enum { NXT_N_CHARS = 0x110000, NXT_REPLACEMENT = 0xfffd };

/* Of every character. Filled by nxt_unicode_ready, which any thread may call. */
extern uint16_t nxt_classes[NXT_N_CHARS];
void nxt_unicode_ready(void);

/* The character at `at`, which moves behind it. The text must be UTF-8. */
static inline uint32_t nxt_next_char(const char **at) {
  const uint8_t *byte = (const uint8_t *)*at;
  if (byte[0] < 0x80) {
    *at += 1;
    return byte[0];
  }
  if (byte[0] < 0xe0) {
    *at += 2;
    return (uint32_t)(byte[0] & 0x1f) << 6 | (byte[1] & 0x3f);
  }
  if (byte[0] < 0xf0) {
    *at += 3;
    return (uint32_t)(byte[0] & 0x0f) << 12 | (uint32_t)(byte[1] & 0x3f) << 6 | (byte[2] & 0x3f);
  }
  *at += 4;
  return (uint32_t)(byte[0] & 0x07) << 18 | (uint32_t)(byte[1] & 0x3f) << 12 |
         (uint32_t)(byte[2] & 0x3f) << 6 | (byte[3] & 0x3f);
}

/* How many bytes the character has that begins with this one. */
static inline size_t nxt_char_bytes(char first) {
  uint8_t byte = (uint8_t)first;
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* The character that ends before `at`, which moves to its begin. */
static inline uint32_t nxt_last_char(const char **at) {
  do --*at;
  while ((*at[0] & 0xc0) == 0x80);
  const char *begin = *at;
  return nxt_next_char(&begin);
}

static inline uint16_t nxt_class_at(const char *at) {
  return nxt_classes[nxt_next_char(&at)];
}

uint32_t nxt_lower_char(uint32_t c);
size_t nxt_put_char(uint32_t c, char bytes[4]);
void nxt_text_add_char(nxt_text *text, uint32_t c);

/* How many bytes of the text are UTF-8, from its begin on. */
size_t nxt_valid_bytes(const char *text, size_t n_bytes);
/* Adds the text with U+FFFD for what is not UTF-8. */
void nxt_add_repaired(nxt_text *to, const char *text, size_t n_bytes);

#endif
