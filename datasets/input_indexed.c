/* SPDX-License-Identifier: Apache-2.0 */
/* Indexed datasets: each document is a record of token ids. */
#include "datasets/input.h"
#include "runtime/data/dataset.h"

#include <stdlib.h>
#include <string.h>

enum { PREFIX_BYTES = 4096 };

typedef struct indexed_state {
  char prefix[PREFIX_BYTES];
  nxr_dataset dataset;
  int32_t *tokens; /* of a document */
  uint64_t room;
  uint64_t n_used;
} indexed_state;

static bool open_indexed(nxd_input *input, nxr_fault *fault) {
  size_t length = strlen(input->path);
  indexed_state *state = calloc(1, sizeof *state);
  if (state == NULL) return nxr_fault_set(fault, "out of memory for %s", input->path);
  bool good = length > 4 && length < sizeof state->prefix;
  if (good) memcpy(state->prefix, input->path, length - 4);
  else nxr_fault_set(fault, "%s is no name of an index", input->path);
  good = good && nxr_dataset_open(state->prefix, &state->dataset, fault);
  if (!good) free(state);
  else input->state = state;
  return good;
}

static void close_indexed(nxd_input *input) {
  indexed_state *state = input->state;
  nxr_dataset_close(&state->dataset);
  free(state->tokens);
  free(state);
}

static uint64_t used_of_indexed(const nxd_input *input) {
  const indexed_state *state = input->state;
  return state->n_used;
}

static bool seek_indexed(nxd_input *input, uint64_t offset, uint64_t line, nxr_fault *fault) {
  (void)fault;
  input->offset = offset, input->line = line;
  return true;
}

static bool make_room(indexed_state *state, uint64_t n) {
  if (n <= state->room) return true;
  int32_t *tokens = reallocarray(state->tokens, n, sizeof *tokens);
  if (tokens) state->tokens = tokens, state->room = n;
  return tokens != NULL;
}

static nxd_given next_document(nxd_input *input, nxd_batch *batch, nxr_fault *fault) {
  indexed_state *state = input->state;
  if (input->offset >= state->dataset.n_documents) return NXD_AT_END;
  uint64_t n = nxr_dataset_document_tokens(&state->dataset, input->offset);
  nxd_record *record = nxd_batch_add(batch);
  int64_t *ids = record && make_room(state, n) ? nxd_batch_field(batch, record, 0, NXD_IDS, n) : NULL;
  if (ids == NULL) {
    nxr_fault_set(fault, "out of memory for %s", input->path);
    return NXD_FAILED;
  }
  nxr_dataset_read(&state->dataset, input->offset, 0, n, state->tokens);
  for (uint64_t i = 0; i < n; i++) ids[i] = state->tokens[i];
  state->n_used += n * state->dataset.token_bytes;
  input->offset++;
  record->line = ++input->line;
  return NXD_GIVEN;
}

const nxd_input_kind nxd_input_indexed = {"indexed",    ".idx",          open_indexed, next_document,
                                          seek_indexed, used_of_indexed, close_indexed};
