/* SPDX-License-Identifier: Apache-2.0 */
/* How documents become samples, and what their ends change; that is false where a sequence is one document.
 */
#ifndef NXC_RECORDS_DATA_H
#define NXC_RECORDS_DATA_H

#include "compiler/program/records/objective.h"
#include "schema/plan.h"

typedef struct nxc_data {
  bool separate_documents, restart_positions, mask_document_ends;
  bool indexed_documents;  /* what they need end_of_document for in a stream, the index says, but of the last */
  int64_t end_of_document;                                        /* token id; -1: not known */
  nx_sampler sampler;
  nx_packing packing; /* 0 of other samplers */
  uint64_t packing_group;
  nx_long_samples long_samples; /* as in nx_dataset */
  bool weighs_tokens; /* in the loss */
  nx_loss_mean loss_mean;
} nxc_data;

nxc_data nxc_data_read(const nxc_settings *settings, const nxc_objective *objective);
/* Whether a token must say where they end. */
bool nxc_data_needs_document_ends(const nxc_data *data);

#endif
