/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/joined.h"

#include "runtime/files/safetensors.h"

#include <string.h>

static void read_chunk(const nxr_chunk *chunk, uint64_t row, uint64_t column, uint64_t n, float *values) {
  uint64_t first = (row - chunk->row) * chunk->row_stride + (column - chunk->column) * chunk->column_stride;
  uint64_t n_element = nx_dtype_bits(chunk->dtype) / 8;
  bool together = chunk->column_stride == 1;
  for (uint64_t i = 0; i < n; i += together ? n : 1)
    nxr_floats(chunk->dtype, chunk->bytes + (first + i * chunk->column_stride) * n_element, together ? n : 1,
               values + i);
}

/* Columns [first, first + n) of a row of a source. */
static void read_row(const nxr_joined_source *source, uint64_t row, uint64_t first, uint64_t n,
                     float *values) {
  memset(values, 0, n * sizeof *values);
  for (uint64_t i = 0; i < source->n_chunks; i++) {
    const nxr_chunk *chunk = &source->chunks[i];
    if (row < chunk->row || row - chunk->row >= chunk->n_rows) continue;
    uint64_t begin = chunk->column > first ? chunk->column : first;
    uint64_t end =
        chunk->column + chunk->n_columns < first + n ? chunk->column + chunk->n_columns : first + n;
    if (begin < end) read_chunk(chunk, row, begin, end - begin, values + (begin - first));
  }
}

void nxr_joined_floats(const nxr_joined *joined, uint64_t first, uint64_t n, float *values) {
  uint64_t length = joined->transposed ? joined->n_rows : joined->n_columns;
  for (uint64_t done = 0, run; done < n; done += run) {
    uint64_t line = (first + done) / length, place = (first + done) % length;
    run = joined->transposed ? 1 : length - place;
    if (run > n - done) run = n - done;
    const nxr_joined_row *row = &joined->rows[joined->transposed ? place : line];
    read_row(&joined->sources[row->source], row->row, joined->transposed ? line : place, run, values + done);
  }
}
