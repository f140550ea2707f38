/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/scan.h"

#include "tokenizer/unicode.h"

#include <string.h>

enum { LONG_S = 0x17f };

static bool is_any(const char *at, const char *end, uint16_t classes) {
  return at < end && (nxt_class_at(at) & classes) != 0;
}

static bool is_none(const char *at, const char *end, uint16_t classes) {
  return at < end && (nxt_class_at(at) & classes) == 0;
}

static const char *run_of(const char *at, const char *end, uint16_t classes) {
  while (is_any(at, end, classes)) at += nxt_char_bytes(*at);
  return at;
}

static const char *run_without(const char *at, const char *end, uint16_t classes) {
  while (is_none(at, end, classes)) at += nxt_char_bytes(*at);
  return at;
}

static bool is_line_end(char byte) {
  return byte == '\n' || byte == '\r';
}

/* 's 't 'm 'd 're 've 'll; NULL: none stands here. */
static const char *contraction(const char *at, const char *end, bool any_case) {
  uint8_t fold = any_case ? 0x20 : 0;
  if (end - at < 2 || at[0] != '\'') return NULL;
  const char *next = at + 1;
  if (any_case && (uint8_t)*next >= 0x80) return nxt_next_char(&next) == LONG_S ? next : NULL;
  char first = (char)(at[1] | fold);
  if (strchr("stmd", first) != NULL && first != '\0') return at + 2;
  if (end - at < 3) return NULL;
  char second = (char)(at[2] | fold);
  bool pair = ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return pair ? at + 3 : NULL;
}

/* \s+(?!\S)|\s+ : blanks, less the last one where a word follows that it may belong to. */
static const char *blanks(const char *at, const char *end) {
  const char *stop = run_of(at, end, NXT_SPACE), *last = stop;
  if (stop == end) return stop;
  nxt_last_char(&last);
  return last > at ? last : stop;
}

const char *nxt_scan_gpt2(const char *at, const char *end) {
  const char *word = contraction(at, end, false);
  if (word != NULL) return word;
  word = at + (*at == ' ');
  if (is_any(word, end, NXT_LETTER)) return run_of(word, end, NXT_LETTER);
  if (is_any(word, end, NXT_NUMBER)) return run_of(word, end, NXT_NUMBER);
  if (is_none(word, end, NXT_SPACE)) return run_without(word, end, NXT_SPACE | NXT_LETTER | NXT_NUMBER);
  return blanks(at, end);
}

/* What the patterns that came after GPT-2's differ in. */
typedef struct differences {
  uint16_t letters;   /* what a word is made of */
  bool cased;         /* a word is capitals, then small letters, and a contraction belongs to it */
  bool contractions;
  uint32_t digits;    /* of a number, at most */
  bool slashes;       /* follow signs like the ends of lines do */
  bool final_blanks;  /* blanks at the end of the text are one word */
} differences;

static bool is_upper(uint16_t classes) {
  return (classes & (NXT_LETTER | NXT_MARK)) != 0 && (classes & NXT_LOWER) == 0;
}

static bool is_lower(uint16_t classes) {
  return (classes & (NXT_LETTER | NXT_MARK)) != 0 && (classes & NXT_UPPER) == 0;
}

/* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ : letters without case are in both. NULL: no
 * match. */
static const char *small_word(const char *at, const char *end) {
  const char *last_both = NULL;
  while (at < end && is_upper(nxt_class_at(at))) {
    bool both = is_lower(nxt_class_at(at));
    at += nxt_char_bytes(*at);
    if (both) last_both = at;
  }
  if (at == end || !is_lower(nxt_class_at(at))) return last_both;
  while (at < end && is_lower(nxt_class_at(at))) at += nxt_char_bytes(*at);
  return at;
}

/* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+ , after which no small letter can stand: small_word was tried before. */
static const char *capitals(const char *at, const char *end) {
  const char *begin = at;
  while (at < end && is_upper(nxt_class_at(at))) at += nxt_char_bytes(*at);
  return at > begin ? at : NULL;
}

static const char *cased_word(const char *at, const char *end, bool prefixed, bool contractions) {
  const char *word = at + (prefixed ? nxt_char_bytes(*at) : 0), *stop = small_word(word, end);
  if (stop == NULL && prefixed) stop = small_word(at, end);
  if (stop == NULL) stop = capitals(word, end);
  if (stop == NULL || !contractions) return stop;
  const char *contracted = contraction(stop, end, true);
  return contracted != NULL ? contracted : stop;
}

static const char *word_of(const char *at, const char *end, const differences *d) {
  /* [^\r\n\p{L}\p{N}]? before it */
  bool prefixed = !is_line_end(*at) && is_none(at, end, NXT_LETTER | NXT_NUMBER);
  if (d->cased) return cased_word(at, end, prefixed, d->contractions);
  const char *word = at + (prefixed ? nxt_char_bytes(*at) : 0);
  if (!is_any(word, end, d->letters)) word = at;
  return is_any(word, end, d->letters) ? run_of(word, end, d->letters) : NULL;
}

static const char *digits_of(const char *at, const char *end, uint32_t most) {
  for (uint32_t n = 0; n < most && is_any(at, end, NXT_NUMBER); n++) at += nxt_char_bytes(*at);
  return at;
}

/* \s*[\r\n]+ : blanks up to the last end of a line among them. NULL: there is none. */
static const char *line_ends(const char *at, const char *end) {
  const char *stop = run_of(at, end, NXT_SPACE);
  while (stop > at && !is_line_end(stop[-1])) stop--;
  return stop > at ? stop : NULL;
}

static inline const char *scan(const char *at, const char *end, differences d) {
  const char *stop = d.contractions && !d.cased ? contraction(at, end, true) : NULL;
  if (stop == NULL) stop = word_of(at, end, &d);
  if (stop != NULL) return stop;
  stop = digits_of(at, end, d.digits);
  if (stop > at) return stop;
  const char *signs = at + (*at == ' ');
  stop = run_without(signs, end, NXT_SPACE | NXT_LETTER | NXT_NUMBER);
  if (stop > signs) {
    while (stop < end && (is_line_end(*stop) || (d.slashes && *stop == '/'))) stop++;
    return stop;
  }
  if (d.final_blanks && run_of(at, end, NXT_SPACE) == end) return end;
  stop = line_ends(at, end);
  return stop != NULL ? stop : blanks(at, end);
}

static const char *scan_llama3(const char *at, const char *end) {
  return scan(at, end, (differences){.letters = NXT_LETTER, .contractions = true, .digits = 3});
}

static const char *scan_cl100k(const char *at, const char *end) {
  return scan(at, end,
              (differences){.letters = NXT_LETTER, .contractions = true, .digits = 3, .final_blanks = true});
}

static const char *scan_qwen(const char *at, const char *end) {
  return scan(at, end, (differences){.letters = NXT_LETTER, .contractions = true, .digits = 1});
}

static const char *scan_v1(const char *at, const char *end) {
  return scan(at, end, (differences){.letters = NXT_LETTER, .digits = 1});
}

static const char *scan_o200k(const char *at, const char *end) {
  return scan(at, end, (differences){.cased = true, .contractions = true, .digits = 3, .slashes = true});
}

static const char *scan_tekken(const char *at, const char *end) {
  return scan(at, end, (differences){.cased = true, .digits = 1, .slashes = true});
}

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define SIGNS " ?[^\\s\\p{L}\\p{N}]+"
#define BLANKS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
  const char *name, *pattern;
  nxt_scanner scanner;
} known[] = {
    {"gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     nxt_scan_gpt2},
    {"gpt2", "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     nxt_scan_gpt2},
    {"gpt2", "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s",
     nxt_scan_gpt2},
    {"llama3", CONTRACTIONS "|" BEFORE "\\p{L}+|\\p{N}{1,3}|" SIGNS "[\\r\\n]*" BLANKS, scan_llama3},
    {"qwen", CONTRACTIONS "|" BEFORE "\\p{L}+|\\p{N}|" SIGNS "[\\r\\n]*" BLANKS, scan_qwen},
    {"cl100k",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| "
     "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|"
     "\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     scan_cl100k},
    {"o200k",
     BEFORE CAPITALS "*" SMALL "+" CONTRACTIONS "?|" BEFORE CAPITALS "+" SMALL "*" CONTRACTIONS
                     "?|\\p{N}{1,3}|" SIGNS "[\\r\\n/]*" BLANKS,
     scan_o200k},
    {"v1",
     "[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     scan_v1},
    {"v2", "", scan_tekken}, /* tekken's by another name */
    {"tekken", BEFORE CAPITALS "*" SMALL "+|" BEFORE CAPITALS "+" SMALL "*|\\p{N}|" SIGNS "[\\r\\n/]*" BLANKS,
     scan_tekken},
};

nxt_scanner nxt_scanner_find(const char *pattern) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].pattern, pattern) == 0) return known[i].scanner;
  return NULL;
}

nxt_scanner nxt_scanner_named(const char *name) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0) return known[i].scanner;
  return NULL;
}
