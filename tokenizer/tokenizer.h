/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers, as files: text to ids and back, with the ids that the libraries have whose files these are.
 *
 * A tokenizer is opened once and never changes: threads share it. What a thread needs for itself (a cache of
 * words, room to work) is its encoder. Encoding runs one way:
 *
 *     text -> added tokens cut out -> normalizer -> added tokens of normal form cut out -> splits -> model ->
 * ids
 *
 * Text is bytes. What is not UTF-8 in it reads as U+FFFD, one for each sequence that begins like a character
 * and one for each other byte, as Python's errors='replace' makes a str of it. Exhausted memory ends the
 * process with a message, as in the compiler. */
#ifndef NXT_TOKENIZER_H
#define NXT_TOKENIZER_H

#include "schema/plan.h"

#include <stddef.h>

typedef struct nxt_tokenizer nxt_tokenizer;
typedef struct nxt_encoder nxt_encoder;

/* Buffers are their owner's, and grow: begin with {0}, end with free(items). What is encoded or decoded is
 * added to what they hold. */
typedef struct nxt_ids {
  uint32_t *items;
  size_t n, room;
} nxt_ids;

typedef struct nxt_text {
  char *items;
  size_t n, room;
} nxt_text;

/* Reads a file, or a folder that holds one: tokenizer.json; vocab.json with merges.txt beside it; a .tiktoken
 * file or a JSON file of ranks; SentencePiece's .model. What stands beside it (tokenizer_config.json,
 * special_tokens_map.json) says which special tokens play which role. NULL: the fault names the file, and
 * what of it is not covered. */
nxt_tokenizer *nxt_open(const char *path, nx_fault *fault);
void nxt_close(nxt_tokenizer *tokenizer);

/* What files leave unsaid: vocab.json its merges, and ranks all but the ranks. */
typedef struct nxt_unsaid {
  const char *merges;  /* of vocab.json: the file of its merges; NULL or not there: the one beside it */
  const char *pattern; /* gpt2, cl100k, llama3, o200k, qwen, tekken, Megatron's v1 and v2, or Rust's own text;
                          NULL: it follows from the number of ranks */
  const char *const *special; /* NULL behind the last: ids behind the ranks; of a list in JSON before them */
  uint32_t n_special,
      n_ids; /* of a list in JSON: ids before the ranks, and in all (the ranks beyond are cut off) */
} nxt_unsaid;

/* With what its files do not say. They may be those of Megatron's TikTokenizer, a list in JSON: [{rank,
 * token_bytes, token_str}, ...], which nxt_open takes as Megatron does that is told nothing: v2, 1000 special
 * tokens, 131072 ids. NULL: nothing is said. */
nxt_tokenizer *nxt_open_with(const char *path, const nxt_unsaid *unsaid, nx_fault *fault);

/* One more than the greatest id. */
uint32_t nxt_n_ids(const nxt_tokenizer *tokenizer);
/* Whether it knows a token of exactly this text, as its file writes it. */
bool nxt_find(const nxt_tokenizer *tokenizer, const char *text, size_t n_bytes, uint32_t *id);
/* A token's text as the file writes it; NULL: no token has the id. */
const char *nxt_token(const nxt_tokenizer *tokenizer, uint32_t id, size_t *n_bytes);
/* Whether decoding leaves the token out where it is asked to. */
bool nxt_is_special(const nxt_tokenizer *tokenizer, uint32_t id);

typedef enum nxt_role { NXT_BOS, NXT_EOS, NXT_PAD, NXT_UNK, NXT_N_ROLES } nxt_role;
/* False where the files say none. */
bool nxt_role_id(const nxt_tokenizer *tokenizer, nxt_role role, uint32_t *id);

nxt_encoder *nxt_encoder_open(const nxt_tokenizer *tokenizer);
void nxt_encoder_close(nxt_encoder *encoder);

enum {
  NXT_ADD_SPECIAL = 1, /* what the file adds around a text, as bos and eos */
  NXT_PLAIN_TEXT = 2,  /* texts of special tokens are text like any other */
  NXT_SKIP_SPECIAL = 4 /* decoding: without special tokens */
};
/* Fails where the tokenizer has no token for a part of the text and none for what is unknown. */
bool nxt_encode(nxt_encoder *encoder, const char *text, size_t n_bytes, unsigned flags, nxt_ids *ids,
                nx_fault *fault);
/* Ids that no token has are left out. */
void nxt_decode(nxt_encoder *encoder, const uint32_t *ids, size_t n_ids, unsigned flags, nxt_text *text);

#endif
