/* SPDX-License-Identifier: Apache-2.0 */
/* Indexed datasets: Megatron-LM's pair of files PREFIX.idx and PREFIX.bin.
 *
 * Beside them PREFIX.weights may stand, where the losses of tokens weigh more or less, and PREFIX.rewards,
 * where documents are answers that are wanted or not. The index holds
 * "MMIDIDX\0\0", u64 version 1, u8 type code, u64 number of sequences, u64 number of document borders, then
 * i32 tokens of each sequence, i64 byte offset of each in the .bin file, i64 document borders (indices into
 * the sequences; the first is 0). Little-endian, unaligned. The index is read into memory, and the data is
 * mapped; everything is checked when they are opened, so that no later read can leave them, whatever is
 * written to the index meanwhile. A document is a run of sequences. */
#ifndef NXR_DATASET_H
#define NXR_DATASET_H

#include "runtime/files/mapping.h"

#include <stdbool.h>
#include <stdint.h>

#define NXR_TOKENIZER_FOLDER ".tokenizer" /* behind the prefix: see datasets/beside.h */
#define NXR_TEXT_FILE "text.json"

typedef struct nxr_dataset {
  const char *prefix; /* the caller's */
  uint8_t *index; /* all of the file */
  uint64_t n_index_bytes;
  nxr_mapping data;
  nxr_mapping weights; /* PREFIX.weights: a float for each token of the data, in its place; n_bytes 0: none */
  nxr_mapping rewards; /* PREFIX.rewards: a float for each document; n_bytes 0: none */
  uint32_t type_code, token_bytes;
  uint64_t n_sequences, n_documents, n_tokens;
  const uint8_t *sizes, *pointers, *borders; /* in the index, unaligned */
} nxr_dataset;

/* A type of tokens, by Megatron-LM's code. Of floats (which hold whole numbers) the data says how wide they
 * are: two of its versions have codes 6 and 7 the other way round. */
typedef struct nxr_token_type {
  const char *name;
  uint32_t bytes; /* 0 of floats */
} nxr_token_type;

/* NULL where the code is none. */
const nxr_token_type *nxr_token_type_of(uint32_t code);

/* Opens and checks its files. On failure nothing stays open. */
bool nxr_dataset_open(const char *prefix, nxr_dataset *dataset, nxr_fault *fault);
void nxr_dataset_close(nxr_dataset *dataset);

/* Bytes of text that a token of the dataset stands for, on average; 0 where nothing beside it says. */
double nxr_dataset_bytes_per_token(const char *prefix);

/* The first sequence of a document, or behind the last one the number of all; and the tokens of a sequence.
 */
uint64_t nxr_dataset_border(const nxr_dataset *dataset, uint64_t document);
uint64_t nxr_dataset_sequence_tokens(const nxr_dataset *dataset, uint64_t sequence);
uint64_t nxr_dataset_document_tokens(const nxr_dataset *dataset, uint64_t document);
/* Copies tokens [first, first + n) of a document; the caller keeps them within it. */
void nxr_dataset_read(const nxr_dataset *dataset, uint64_t document, uint64_t first, uint64_t n,
                      int32_t *tokens);

/* How much the loss of predicting each of these tokens weighs; 1 where the dataset has no weights. */
void nxr_dataset_weights(const nxr_dataset *dataset, uint64_t document, uint64_t first, uint64_t n,
                         float *weights);

/* The first number of a document, of any type; it has one. */
double nxr_dataset_number(const nxr_dataset *dataset, uint64_t document);
/* Of the file of rewards, which the dataset has. */
double nxr_dataset_reward(const nxr_dataset *dataset, uint64_t document);

/* Tokens [first, first + n) of a sequence; the caller keeps them within it. */
typedef struct nxr_dataset_run {
  uint64_t sequence, first, n;
} nxr_dataset_run;

const uint8_t *nxr_dataset_run_bytes(const nxr_dataset *dataset, const nxr_dataset_run *run);
void nxr_dataset_run_read(const nxr_dataset *dataset, const nxr_dataset_run *run, int32_t *tokens);
void nxr_dataset_run_weights(const nxr_dataset *dataset, const nxr_dataset_run *run, float *weights);

/* What reading every token finds (dataset_summary.c). A token below 0, or above INT32_MAX, is damage. */
typedef struct nxr_dataset_summary {
  int64_t least_token, greatest_token; /* 0 where there is no token */
  uint64_t shortest, longest;          /* documents, in tokens */
  uint64_t n_empty;                    /* documents without a token */
  uint64_t unused_bytes;               /* of the .bin file: more than the sequences have together */
} nxr_dataset_summary;

bool nxr_dataset_summarize(const nxr_dataset *dataset, nxr_dataset_summary *summary, nxr_fault *fault);

/* dataset_old.c: an index that begins with "TNTIDX" becomes one of today's; *index, from malloc, is replaced.
 */
bool nxr_dataset_modernize(uint8_t **index, uint64_t *n_bytes, const char *path, nxr_fault *fault);

#endif
