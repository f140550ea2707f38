/* SPDX-License-Identifier: Apache-2.0 */
/* How a source's documents become samples, of a row of tokens, or of two. A kind of sampler is a table of
 * functions, by nx_sampler. Rows are numbered over all epochs; what a row is depends on nothing but the
 * source, the seed and its number. */
#ifndef NXR_SAMPLER_H
#define NXR_SAMPLER_H

#include "runtime/data/data_order.h"
#include "runtime/data/data_source.h"
#include "schema/packing.h"

typedef struct nxr_row {
  int32_t *tokens; /* [sequence + 1]; each is the label of the one before it */
  int32_t *starts; /* [sequence] where the document that a token belongs to starts */
  float *weights;  /* [sequence] of the loss at a token, before they are scaled */
  float *labels;   /* [sequence + 1] room: the weights of the tokens themselves */
} nxr_row;

typedef struct nxr_sampler nxr_sampler;

typedef struct nxr_sampler_kind {
  /* Works out n_samples, and whatever reading needs. */
  bool (*open)(nxr_sampler *sampler, nxr_fault *fault);
  /* Row `number`. Allocates nothing. */
  void (*read)(nxr_sampler *sampler, uint64_t number, const nxr_row *row);
  uint32_t n_rows; /* of a sample */
} nxr_sampler_kind;

struct nxr_sampler {
  const nxr_sampler_kind *kind;
  const nx_run *run;
  const nxr_data_source *source;
  bool shuffle;
  nx_order order;
  nx_long_samples long_samples;
  uint64_t n_needed;  /* samples that may be asked for */
  uint64_t n_samples; /* of an epoch */
  nx_packing_rule packing;
  nx_rows rows; /* of packed ones */
  uint64_t *kept; /* [n_samples] of the source that are read; NULL: all are, or the kind does not choose */
  nxr_orders orders;
};

/* On failure there is nothing to close. */
bool nxr_sampler_open(nxr_sampler *sampler, nx_sampler kind, nxr_fault *fault);
void nxr_sampler_close(nxr_sampler *sampler);

extern const nxr_sampler_kind nxr_sampler_stream;                       /* sampler_stream.c */
extern const nxr_sampler_kind nxr_sampler_document, nxr_sampler_packed; /* sampler_packed.c */
extern const nxr_sampler_kind nxr_sampler_pairs;                        /* sampler_pairs.c */

/* sampler_packed.c, of kinds whose samples are whole documents: the orders of `n_samples`, and a document of
 * the source as a row with padding. */
bool nxr_sampler_open_orders(nxr_sampler *sampler, uint64_t n_samples, nxr_fault *fault);
void nxr_sampler_read_document(const nxr_sampler *sampler, uint64_t document, const nxr_row *row);
/* sampler_kept.c, by long_samples: which samples of whole documents are read, and how many. */
bool nxr_sampler_keep(nxr_sampler *sampler, uint64_t *n_read, nxr_fault *fault);
/* Of kinds whose rows are a document each: which one row `number` is. */
uint64_t nxr_sampler_row_document(nxr_sampler *sampler, uint64_t number);

#endif
