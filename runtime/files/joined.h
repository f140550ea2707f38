/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that other tensors are put together of: shards, in whatever order their rows stand.
 *
 * A source is a matrix, or a vector as a matrix of one column; its chunks are boxes of it. A row of the
 * tensor is a row of a source. */
#ifndef NXR_JOINED_H
#define NXR_JOINED_H

#include "schema/ops.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct nxr_chunk {
  uint64_t row, column, n_rows, n_columns; /* in the source */
  uint64_t row_stride, column_stride;      /* elements */
  nx_dtype dtype;                          /* f32, bf16, f16 or f64 */
  const uint8_t *bytes;
} nxr_chunk;

typedef struct nxr_joined_source {
  const nxr_chunk *chunks;
  uint64_t n_chunks;
} nxr_joined_source;

typedef struct nxr_joined_row {
  uint32_t source, row;
} nxr_joined_row;

typedef struct nxr_joined {
  const nxr_joined_source *sources;
  const nxr_joined_row *rows; /* [n_rows] */
  uint64_t n_rows, n_columns;
  bool transposed; /* elements are counted along the columns */
} nxr_joined;

/* Elements [first, first + n); those that no chunk has are 0. */
void nxr_joined_floats(const nxr_joined *joined, uint64_t first, uint64_t n, float *values);

#endif
