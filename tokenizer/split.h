/* SPDX-License-Identifier: Apache-2.0 */
/* Splits: steps that cut a text into parts, and may change them. */
#ifndef NXT_SPLIT_H
#define NXT_SPLIT_H

#include "tokenizer/encoder.h"

/* Hands on what a step's `find` cuts a text into, as its behaviour says. */
bool nxt_split_matches(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                       bool first);
/* Each word of the step's scanner. */
bool nxt_split_words(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     bool first);
/* A blank before a text that begins with none (ByteLevel's add_prefix_space). */
bool nxt_split_prefix(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                      bool first);
/* The step's character for every blank, and before the text where it says so. */
bool nxt_split_metaspace(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                         bool first);
/* Characters for the text's bytes, as byte-level vocabularies have them. */
bool nxt_split_bytes(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     bool first);
/* Cuts before each run of the step's text. */
bool nxt_split_before(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                      bool first);
/* Parts of so many characters. */
bool nxt_split_length(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                      bool first);
/* The last step of all: a word's ids by the model. */
bool nxt_split_model(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     bool first);

/* What is looked for: a pattern, a text, a character of some classes, one character, words of a scanner. */
int nxt_find_pattern(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     size_t from, size_t match[2]);
int nxt_find_text(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes, size_t from,
                  size_t match[2]);
int nxt_find_class(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes, size_t from,
                   size_t match[2]);
int nxt_find_punctuation(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                         size_t from, size_t match[2]);
/* \w+|[^\w\s]+ */
int nxt_find_word(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes, size_t from,
                  size_t match[2]);
int nxt_find_scanned(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     size_t from, size_t match[2]);

#endif
