/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/dataset_fingerprint.h"

#include "runtime/files/reading.h"

#include <nettle/sha2.h>
#include <string.h>

enum { BLOCK_BYTES = 4096, N_BLOCKS = 1024, WHOLE_BYTES = 16 << 20 };

static void add_number(struct sha256_ctx *state, uint64_t number) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(number >> 8 * i);
  sha256_update(state, sizeof bytes, bytes);
}

static void add_bytes(struct sha256_ctx *state, const uint8_t *bytes, uint64_t n_bytes) {
  nxr_reading_begin(NULL, bytes);
  sha256_update(state, n_bytes, bytes);
  nxr_reading_end();
}

static void add_data(struct sha256_ctx *state, const nxr_mapping *data) {
  if (data->n_bytes <= WHOLE_BYTES) {
    if (data->n_bytes > 0) add_bytes(state, data->bytes, data->n_bytes);
    return;
  }
  uint64_t last = data->n_bytes - BLOCK_BYTES;
  for (uint64_t i = 0; i < N_BLOCKS; i++) {
    uint64_t at = (uint64_t)((unsigned __int128)last * i / (N_BLOCKS - 1));
    add_bytes(state, data->bytes + at, BLOCK_BYTES);
  }
}

nxr_fingerprint nxr_fingerprint_of(const nxr_dataset *dataset, uint64_t n_documents, uint64_t n_tokens) {
  nxr_fingerprint fingerprint = {.n_documents = n_documents, .n_tokens = n_tokens};
  struct sha256_ctx state;
  sha256_init(&state);
  add_number(&state, dataset->type_code);
  add_number(&state, dataset->n_sequences);
  add_number(&state, dataset->n_documents);
  add_number(&state, n_documents);
  add_number(&state, dataset->data.n_bytes);
  sha256_update(&state, dataset->n_index_bytes, dataset->index);
  add_data(&state, &dataset->data);
  add_data(&state, &dataset->weights);
  add_data(&state, &dataset->rewards);
  sha256_digest(&state, sizeof fingerprint.sha256, fingerprint.sha256);
  return fingerprint;
}

nxr_fingerprint nxr_fingerprint_together(const nxr_fingerprint *each, uint32_t n) {
  nxr_fingerprint all = {.n_documents = 0};
  struct sha256_ctx state;
  if (n == 1) return each[0];
  sha256_init(&state);
  for (uint32_t i = 0; i < n; i++) {
    sha256_update(&state, sizeof each[i].sha256, each[i].sha256);
    add_number(&state, each[i].n_documents);
    all.n_documents += each[i].n_documents, all.n_tokens += each[i].n_tokens;
  }
  sha256_digest(&state, sizeof all.sha256, all.sha256);
  return all;
}

bool nxr_fingerprint_equal(const nxr_fingerprint *one, const nxr_fingerprint *other) {
  return memcmp(one->sha256, other->sha256, sizeof one->sha256) == 0;
}
