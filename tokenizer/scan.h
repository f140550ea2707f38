/* SPDX-License-Identifier: Apache-2.0 */
/* The well-known patterns that cut text into words, written by hand: several times as fast as any engine of
 * regular expressions. One is taken where a pattern's text is exactly one of those that it stands for; every
 * place of any text begins a match of it. */
#ifndef NXT_SCAN_H
#define NXT_SCAN_H

/* The end of the word that begins at `at`, before `end`. */
typedef const char *(*nxt_scanner)(const char *at, const char *end);

/* NULL: none is written for this pattern. */
nxt_scanner nxt_scanner_find(const char *pattern);
/* gpt2, llama3, cl100k, o200k, qwen, tekken, v1 or v2; NULL: none has this name. */
nxt_scanner nxt_scanner_named(const char *name);
/* GPT-2's, which tokenizer.json's ByteLevel has of itself. */
const char *nxt_scan_gpt2(const char *at, const char *end);

#endif
