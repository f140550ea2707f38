/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/copy.h"

#include "datasets/stop.h"

#include <string.h>

enum { CHUNK_TOKENS = 1 << 12, TYPE_INT32 = 4 };

uint8_t nxd_copy_type(const nxr_dataset *datasets, int n) {
  for (int i = 1; i < n; i++)
    if (datasets[i].type_code != datasets[0].type_code) return TYPE_INT32;
  bool floats = nxr_token_type_of(datasets[0].type_code)->bytes == 0;
  return floats ? TYPE_INT32 : (uint8_t)datasets[0].type_code;
}

/* Tokens of another type than the writer's, of 4 bytes. */
static bool write_wider(const nxr_dataset *from, const nxr_dataset_run *run, const int32_t *tokens,
                        const float *weights, nxd_writer *writer, nxr_fault *fault) {
  for (uint64_t i = 0; i < run->n; i++)
    if (tokens[i] < 0)
      return nxr_fault_set(fault, "%s.bin is damaged: it has a token below 0, or above %d", from->prefix,
                           INT32_MAX);
  return nxd_writer_tokens(writer, tokens, weights, run->n, fault);
}

static bool copy_run(const nxr_dataset *from, const nxr_dataset_run *run, nxd_writer *writer,
                     nxr_fault *fault) {
  float weights[CHUNK_TOKENS];
  int32_t tokens[CHUNK_TOKENS];
  nxr_dataset_run_weights(from, run, weights);
  if (from->type_code == writer->is.type_code)
    return nxd_writer_tokens(writer, nxr_dataset_run_bytes(from, run), weights, run->n, fault);
  nxr_dataset_run_read(from, run, tokens);
  return write_wider(from, run, tokens, weights, writer, fault);
}

static bool copy_sequence(const nxr_dataset *from, uint64_t sequence, nxd_writer *writer, nxr_fault *fault) {
  uint64_t n_tokens = nxr_dataset_sequence_tokens(from, sequence);
  for (uint64_t first = 0; first < n_tokens; first += CHUNK_TOKENS) {
    uint64_t n = n_tokens - first < CHUNK_TOKENS ? n_tokens - first : CHUNK_TOKENS;
    const nxr_dataset_run run = {.sequence = sequence, .first = first, .n = n};
    if (!copy_run(from, &run, writer, fault)) return false;
  }
  return nxd_writer_end_sequence(writer, n_tokens, fault);
}

bool nxd_copy_documents(const nxr_dataset *from, uint64_t first, uint64_t end, nxd_writer *writer,
                        nxr_fault *fault) {
  for (uint64_t document = first; document < end; document++) {
    if (nxd_stopped()) return nxr_fault_set(fault, "stopped by a signal");
    for (uint64_t i = nxr_dataset_border(from, document); i < nxr_dataset_border(from, document + 1); i++)
      if (!copy_sequence(from, i, writer, fault)) return false;
    float reward = from->rewards.n_bytes > 0 ? (float)nxr_dataset_reward(from, document) : 0;
    if (!nxd_writer_end_document(writer, reward, fault)) return false;
  }
  return true;
}
