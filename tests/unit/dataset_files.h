/* SPDX-License-Identifier: Apache-2.0 */
/* Writes indexed datasets of any type and shape, good ones and bad ones, byte by byte. */
#ifndef TESTS_UNIT_DATASET_FILES_H
#define TESTS_UNIT_DATASET_FILES_H

#include "tests/unit/temporary.h"

typedef struct dataset_files {
  uint8_t type_code;
  uint64_t n_sequences, n_borders;
  const int32_t *sizes;
  const int64_t *pointers, *borders;
} dataset_files;

/* Returns how many bytes of `bytes` (with room for all) the index has. */
static inline size_t dataset_files_index(const dataset_files *files, uint8_t *bytes) {
  const uint64_t version = 1;
  size_t n = 0;
  memcpy(bytes, "MMIDIDX\0\0", 9), n += 9;
  memcpy(bytes + n, &version, 8), n += 8;
  bytes[n++] = files->type_code;
  memcpy(bytes + n, &files->n_sequences, 8), n += 8;
  memcpy(bytes + n, &files->n_borders, 8), n += 8;
  memcpy(bytes + n, files->sizes, 4 * files->n_sequences), n += 4 * files->n_sequences;
  memcpy(bytes + n, files->pointers, 8 * files->n_sequences), n += 8 * files->n_sequences;
  memcpy(bytes + n, files->borders, 8 * files->n_borders), n += 8 * files->n_borders;
  return n;
}

#endif
