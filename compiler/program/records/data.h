/* SPDX-License-Identifier: Apache-2.0 */
/* What the ends of documents change; all false where a sequence is one document. */
#ifndef NXC_RECORDS_DATA_H
#define NXC_RECORDS_DATA_H

#include "compiler/settings/settings.h"

typedef struct nxc_data {
  bool separate_documents, restart_positions, mask_document_ends; /* need end_of_document */
  bool labelled; /* tokens have weights in the loss */
  int64_t end_of_document;                                        /* token id; -1: not known */
} nxc_data;

nxc_data nxc_data_read(const nxc_settings *settings);
bool nxc_data_has_documents(const nxc_data *data);

#endif
