/* SPDX-License-Identifier: Apache-2.0 */
/* Where micro-batches come from: the plan's datasets, mapped, in an order that the seed decides.
 *
 * Sample k of a dataset (k from 0, over all steps and ranks) is the same whatever the mesh. Step b takes
 * samples b G … (b + 1) G - 1, or where the batch grows as many as its phase says; of these a rank takes the
 * share `data_rank` of `data_size`, and of its share one micro-batch at a time; of each sequence it takes its
 * own tokens (data_layout.h). Reading allocates nothing. */
#ifndef NXR_DATA_H
#define NXR_DATA_H

#include "runtime/data/dataset_fingerprint.h"
#include "schema/plan.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct nxr_data nxr_data;

/* What a rank is given of a micro-batch, with the names and shapes of nx_run's values. */
typedef struct nxr_batch {
  int32_t *tokens, *labels, *positions;
  int64_t *samples;
  int32_t *starts; /* or NULL */
  float *weights;  /* or NULL */
  int32_t *later_labels; /* or NULL, as later_weights */
  float *later_weights;
  double *reference, *rewards; /* or NULL */
} nxr_batch;

/* Which datasets are read. */
typedef enum nxr_reads { NXR_READS_NOTHING, NXR_READS_EVALUATED, NXR_READS_ALL } nxr_reads;

/* Maps and checks the datasets that are read, as far as a schedule reads them, and works out the order of
 * their samples. Relative paths are relative to the current folder. A set that is only evaluated, and has not
 * one sample, is no failure. On failure *data is NULL. */
bool nxr_data_open(const nx_plan *plan, uint32_t rank, nxr_reads reads, nxr_data **data, nxr_fault *fault);
void nxr_data_close(nxr_data *data);
/* Of a dataset of the plan: its own steps count from 0. */
bool nxr_data_read(nxr_data *data, uint32_t set, uint64_t step, uint32_t micro_batch, const nxr_batch *batch,
                   nxr_fault *fault);
/* Every sequence of the batch begins with these `n` tokens, and weighs nothing. */
void nxr_data_give(nxr_data *data, const int32_t *tokens, uint32_t n, const nxr_batch *batch);
/* Which of this rank's tokens of the first sequence of all stands at `place` of it; NX_NONE: another rank has
 * it. */
uint32_t nxr_data_place(const nxr_data *data, uint32_t place);
/* The dataset ends with so many rows: later ones are absent, and weigh nothing. */
void nxr_data_limit(nxr_data *data, uint32_t set, uint64_t n_rows);
/* The share of a step's micro-batches, of all ranks, that have a token whose loss counts; 1 where none has.
 */
bool nxr_data_voters(nxr_data *data, uint32_t set, uint64_t step, double *share, nxr_fault *fault);
/* The number of the dataset that is trained on. */
uint32_t nxr_data_trained(const nxr_data *data);
/* Where rows are documents: they are these in their own order, one after another, and it ends with the last;
 * or what they are while training, without end. */
void nxr_data_in_order(nxr_data *data, uint32_t set, bool in_order);
/* Documents that the sources of a dataset have together; 0: it is not open. */
uint64_t nxr_data_documents(const nxr_data *data, uint32_t set);
/* What nxr_batch.reference is given for each document of a set; NULL: 0. The caller's. */
void nxr_data_refer(nxr_data *data, uint32_t set, const double *reference);
/* How many rows an epoch of a dataset has, of all its sources; 0: it is not open. */
uint64_t nxr_data_samples(const nxr_data *data, uint32_t set);
/* Rows of which a pass over it in whole batches is made: those that it reads before it begins again, where it
 * does. */
uint64_t nxr_data_pass(const nxr_data *data, uint32_t set, uint32_t batch);
/* Bytes of text that a token of an open dataset stands for, on average, where every token is predicted and
 * weighs alike; 0: that is not so, or not known. */
double nxr_data_bytes_per_token(const nxr_data *data, uint32_t set);
/* What is trained on; and all that is open. */
const nxr_fingerprint *nxr_data_fingerprint(const nxr_data *data);
const nxr_fingerprint *nxr_data_everything(const nxr_data *data);
/* [R,S/R], as nx_run's. */
const int32_t *nxr_data_places(const nxr_data *data);

#endif
