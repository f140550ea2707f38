/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that are made up, each alike, without an end: 1, 2, 3, ... within the vocabulary, and 0 at the
 * end. */
#include "datasets/input.h"

static bool open_counting(nxd_input *input, nxr_fault *fault) {
  (void)input, (void)fault;
  return true;
}

static nxd_given next_counting(nxd_input *input, nxd_batch *batch, nxr_fault *fault) {
  const uint64_t n = input->wanted->made_up_tokens;
  nxd_record *record = nxd_batch_add(batch);
  int64_t *ids = record ? nxd_batch_field(batch, record, 0, NXD_IDS, n) : NULL;
  if (ids == NULL) {
    nxr_fault_set(fault, "out of memory for a document of %llu tokens", (unsigned long long)n);
    return NXD_FAILED;
  }
  for (uint64_t i = 0; i < n; i++) ids[i] = (int64_t)((i + 1) % input->wanted->vocab);
  ids[n - 1] = 0;
  input->line++;
  return NXD_GIVEN;
}

static bool seek_counting(nxd_input *input, uint64_t offset, uint64_t line, nxr_fault *fault) {
  (void)fault;
  input->offset = offset, input->line = line;
  return true;
}

static uint64_t used_of_counting(const nxd_input *input) {
  (void)input;
  return 0;
}

static void close_counting(nxd_input *input) {
  (void)input;
}

const nxd_input_kind nxd_input_counting = {"counting",    "",               open_counting, next_counting,
                                           seek_counting, used_of_counting, close_counting};
