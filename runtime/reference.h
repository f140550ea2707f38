/* SPDX-License-Identifier: Apache-2.0 */
/* What DPO compares with: what the model says of each answer before the first step, without adapters.
 *
 * A pass of evaluations over every set of pairs that the run reads finds the negative log-probability of each
 * document. They are kept in DIR/reference.bin, where a run that resumes finds them again; the file is of
 * these data, these first weights and this model, and of any mesh. Where it is of others, or is not there,
 * the pass is made anew with the weights that the run began with.
 *
 *   "NXREF\0\0\1", SHA-256 of data, weights and model, u64 number of documents, a double for each, SHA-256 of
 * those */
#ifndef NXR_REFERENCE_H
#define NXR_REFERENCE_H

#include "runtime/step/exec.h"

typedef struct nxr_reference {
  nxr_exec *exec; /* open, of a plan that has a reference */
  nxr_data *data;
  nxr_world *world;
  const char *directory; /* of the run; files are written only where it `writes` */
  bool writes;
  double *sums; /* of the documents of all sets, one after another */
  uint64_t n;
} nxr_reference;

/* Reads the file, and gives its sums to the data; *found says whether it was of this run. Meets all ranks.
 * The reference is to be closed whatever the result. */
bool nxr_reference_open(nxr_reference *reference, bool *found, nxr_fault *fault);
/* Asks the model as it stands, and writes the file. Meets all ranks. */
bool nxr_reference_make(nxr_reference *reference, nxr_fault *fault);
void nxr_reference_close(nxr_reference *reference);

#endif
