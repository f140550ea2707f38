/* SPDX-License-Identifier: Apache-2.0 */
/* Makers: what a record becomes, documents of tokens with their weights.
 *
 * A maker belongs to one thread; what it reads of the recipe does not change. Kinds of makers are a table. */
#ifndef NXD_MAKER_H
#define NXD_MAKER_H

#include "chat/dialogue.h"
#include "datasets/values.h"
#include "tokenizer/tokenizer.h"

typedef struct nxd_maker nxd_maker;

/* Documents that were made, one after another. */
typedef struct nxd_made {
  nxd_buffer tokens;    /* of the recipe's type */
  nxd_buffer weights;   /* float, one each, where the recipe has weights */
  nxd_buffer rewards;   /* float, for each of `documents`, where the recipe has rewards */
  nxd_buffer documents; /* nxd_length */
  uint64_t n_skipped, n_empty, n_long;
  uint64_t n_text_bytes, n_text_tokens; /* of texts that are whole */
  char first_skipped[512]; /* file, line, and what is wrong */
} nxd_made;

typedef struct nxd_length {
  uint64_t n_tokens;
  bool goes_on; /* what follows is of the same document */
} nxd_length;

typedef struct nxd_maker_kind {
  const char *name;
  bool weights; /* tokens have weights */
  /* Adds the documents of a record by nxd_add_document. A fault says what is wrong with the record. */
  bool (*make)(nxd_maker *maker, const nxd_value *values, nxd_made *made, nxr_fault *fault);
  float end_weight; /* of the token behind each document */
} nxd_maker_kind;

typedef struct nxd_recipe {
  const nxd_maker_kind *maker;
  nxd_wanted wanted;
  nxt_tokenizer *tokenizer; /* NULL: each byte of a text is a token */
  const nxt_unsaid *unsaid; /* of its files; NULL: nothing is said */
  unsigned encoding;        /* NXT_ADD_SPECIAL, NXT_PLAIN_TEXT */
  const nxj_style *style;   /* of dialogues */
  bool all_tokens;          /* what was asked weighs as what was answered */
  int64_t end;                    /* token behind each document; -1: none */
  uint64_t most_tokens;           /* of a document; 0: any number. What has more is left out, */
  bool cut;                       /* or cut */
  uint64_t prompt_tokens;         /* that stay of one which does not fit with its answers */
  bool keep_end;                  /* and these are its last, not its first */
  bool last_counts;               /* of an answer, where its value is read, and nothing else */
  bool rewarded;                  /* the last field of a record is its reward */
  bool whole;                     /* no record is left out */
  uint8_t type_code;
  uint64_t vocab; /* token ids are below it; 0: below 2^31 */
} nxd_recipe;

struct nxd_maker {
  const nxd_recipe *recipe;
  nxt_encoder *encoder; /* NULL where the recipe has no tokenizer */
  nxt_ids ids;
  nxd_buffer tokens, weights, text; /* room for kinds: int64, float, bytes */
  nxd_parser parser;
  bool goes_on, goes_back; /* the record's document does */
  float reward;            /* the record's */
};

extern const nxd_maker_kind nxd_make_documents; /* a text, or token ids */
extern const nxd_maker_kind nxd_make_dialogues;   /* messages, and tools or nothing */
extern const nxd_maker_kind nxd_make_completions; /* a prompt and its completion */
extern const nxd_maker_kind
    nxd_make_preferences; /* a prompt, the answer that was chosen and the one that was not */
extern const nxd_maker_kind nxd_make_labelled;  /* token ids and labels, where -100 stands for no loss */

bool nxd_maker_open(nxd_maker *maker, const nxd_recipe *recipe, nxr_fault *fault);
/* All records of a batch. `names` are those of the inputs. */
bool nxd_maker_run(nxd_maker *maker, const nxd_batch *batch, const char *const *names, nxd_made *made,
                   nxr_fault *fault);
void nxd_maker_close(nxd_maker *maker);

/* Adds a document, or counts it as empty (without a token, or with none that weighs) or too long. Weights may
 * be NULL: 1 each. */
bool nxd_add_document(nxd_maker *maker, const int64_t *tokens, const float *weights, size_t n, nxd_made *made,
                      nxr_fault *fault);
void nxd_made_free(nxd_made *made);

#endif
