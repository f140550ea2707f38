/* SPDX-License-Identifier: Apache-2.0 */
/* Files to tokenizers: what the readers of the formats share. */
#ifndef NXT_OPEN_H
#define NXT_OPEN_H

#include "tokenizer/parts.h"

#include <jansson.h>

/* A tokenizer while its files are read. */
typedef struct nxt_reading {
  nxt_tokenizer *tokenizer;
  const char *path; /* of the file that messages name */
  nx_fault *fault;
  char inside[4096]; /* the file in a folder */
  uint32_t n_steps;         /* so far */
  bool in_parts;            /* a template has made several parts of a text */
  bool adds_tokens;         /* what stands beside the file may add tokens */
  const nxt_unsaid *unsaid; /* NULL: nothing was said */
} nxt_reading;

/* Fills the fault with the file's name before it, and returns false. */
bool nxt_refuse(nxt_reading *reading, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A whole file; false where it cannot be read, or is larger than any tokenizer's. */
bool nxt_read_file(nxt_reading *reading, nxt_text *text);
/* NULL: it is not JSON. */
json_t *nxt_parse_json(nxt_reading *reading, const nxt_text *text);

/* Steps are appended. */
nxt_normalizer *nxt_add_normalizer(nxt_tokenizer *tokenizer);
nxt_split *nxt_add_split(nxt_tokenizer *tokenizer);
nxt_decoder *nxt_add_decoder(nxt_tokenizer *tokenizer);
/* There is an address even where there are no bytes. */
nxt_text nxt_text_of(const char *bytes, size_t n_bytes);

/* Of a JSON object. */
nxt_text nxt_json_text(const json_t *text);
bool nxt_json_flag(const json_t *object, const char *key, bool otherwise);
const char *nxt_json_string(const json_t *object, const char *key, const char *otherwise);

/* The readers: each takes what the file at reading->path holds. */
bool nxt_open_tokenizer_json(nxt_reading *reading, const json_t *root);
/* An added token, {"content": ..., "lstrip": ...}; its own id says nothing. */
bool nxt_add_token(nxt_reading *reading, const json_t *token);
bool nxt_read_model(nxt_reading *reading, const json_t *model);
/* null, one step, or a Sequence of them. */
bool nxt_read_normalizers(nxt_reading *reading, const json_t *step);
bool nxt_read_splits(nxt_reading *reading, const json_t *step);
bool nxt_read_processors(nxt_reading *reading, const json_t *step);
bool nxt_read_decoders(nxt_reading *reading, const json_t *step);

#endif
