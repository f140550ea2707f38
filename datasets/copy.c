/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/copy.h"

#include "datasets/stop.h"

static bool copy_sequence(const nxr_dataset *from, uint64_t sequence, nxd_writer *writer, nxr_fault *fault) {
  uint64_t n_tokens;
  const uint8_t *bytes = nxr_dataset_sequence(from, sequence, &n_tokens);
  return nxd_writer_tokens(writer, bytes, NULL, n_tokens, fault) &&
         nxd_writer_end_sequence(writer, n_tokens, fault);
}

bool nxd_copy_documents(const nxr_dataset *from, uint64_t first, uint64_t end, nxd_writer *writer,
                        nxr_fault *fault) {
  for (uint64_t document = first; document < end; document++) {
    if (nxd_stopped()) return nxr_fault_set(fault, "stopped by a signal");
    for (uint64_t i = nxr_dataset_border(from, document); i < nxr_dataset_border(from, document + 1); i++)
      if (!copy_sequence(from, i, writer, fault)) return false;
    if (!nxd_writer_end_document(writer, fault)) return false;
  }
  return true;
}
