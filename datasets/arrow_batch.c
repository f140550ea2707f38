/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of rows: which bytes of a message's body are which column's. */
#include "datasets/arrow.h"
#include "datasets/arrow_flat.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { MESSAGE_HEADER = 2, BATCH_LENGTH = 0, BATCH_NODES = 1, BATCH_BUFFERS = 2, BATCH_COMPRESSION = 3 };
enum { PAIR_BYTES = 16 }; /* of a node: rows, nulls; of a buffer: offset, bytes */
/* Of a buffer that is unpacked: in all, and for each byte before (zstd does not reach it). */
static const uint64_t MOST_BYTES = UINT64_C(1) << 32, MOST_FACTOR = 1 << 16;

typedef struct batch {
  nxd_arrow *arrow;
  nxd_flat_vector nodes, buffers;
  size_t node, buffer; /* that come next */
  nxd_arrow_bytes body;
  bool compressed;
  nxr_fault *fault;
} batch;

static bool damaged(const batch *b, const char *what) {
  return nxr_fault_set(b->fault, "%s is damaged: a batch %s", b->arrow->path, what);
}

static uint64_t load_pair(const nxd_flat_vector *list, size_t i, size_t which) {
  return (uint64_t)nxd_flat_load(list->in->bytes + list->at + PAIR_BYTES * i + 8 * which, 8);
}

/* A compressed buffer: how many bytes it has, -1 where they are stored as they are, then they. */
static bool unpack(batch *b, nxd_arrow_bytes *bytes) {
  if (bytes->n == 0) return true;
  if (bytes->n < 8) return damaged(b, "has a compressed buffer without a length");
  int64_t n = nxd_flat_load(bytes->at, 8);
  const nxd_arrow_bytes packed = {bytes->at + 8, bytes->n - 8};
  *bytes = packed;
  if (n == -1) return true;
  if (n < 0 || (uint64_t)n > MOST_BYTES || (uint64_t)n / MOST_FACTOR > packed.n)
    return damaged(b, "has a buffer that would have more bytes than can be");
  uint8_t *to = malloc((size_t)n + 1);
  if (to == NULL || !nxd_buffer_append(&b->arrow->unpacked, &to, sizeof to)) {
    free(to);
    return nxr_fault_set(b->fault, "out of memory for %s", b->arrow->path);
  }
  size_t n_done = ZSTD_decompress(to, (size_t)n, packed.at, packed.n);
  if (ZSTD_isError(n_done) || n_done != (size_t)n)
    return damaged(b, "has a buffer that zstd does not unpack");
  *bytes = (nxd_arrow_bytes){to, (uint64_t)n};
  return true;
}

static bool take_buffer(batch *b, nxd_arrow_bytes *bytes) {
  if (b->buffer == b->buffers.n) return damaged(b, "has too few buffers");
  uint64_t at = load_pair(&b->buffers, b->buffer, 0), n = load_pair(&b->buffers, b->buffer, 1);
  b->buffer++;
  if (at > b->body.n || n > b->body.n - at) return damaged(b, "has a buffer outside of its body");
  *bytes = (nxd_arrow_bytes){b->body.at + at, n};
  return !b->compressed || unpack(b, bytes);
}

/* Which buffers a column has, in order. */
static bool take_buffers(batch *b, nxd_arrow_column *column) {
  column->valid = column->offsets = column->data = (nxd_arrow_bytes){0};
  if (column->has_dictionary) return take_buffer(b, &column->valid) && take_buffer(b, &column->data);
  switch (column->type) {
    case NXD_ARROW_NULL: return true;
    case NXD_ARROW_STRUCT:
    case NXD_ARROW_FIXED_LIST: return take_buffer(b, &column->valid);
    case NXD_ARROW_LIST:
    case NXD_ARROW_LARGE_LIST:
    case NXD_ARROW_MAP: return take_buffer(b, &column->valid) && take_buffer(b, &column->offsets);
    case NXD_ARROW_BINARY:
    case NXD_ARROW_UTF8:
    case NXD_ARROW_LARGE_BINARY:
    case NXD_ARROW_LARGE_UTF8:
      return take_buffer(b, &column->valid) && take_buffer(b, &column->offsets) &&
             take_buffer(b, &column->data);
    default: return take_buffer(b, &column->valid) && take_buffer(b, &column->data);
  }
}

static bool take_column(batch *b, nxd_arrow_column *column) {
  if (b->node == b->nodes.n) return damaged(b, "has too few columns");
  column->n_rows = load_pair(&b->nodes, b->node, 0), column->n_nulls = load_pair(&b->nodes, b->node, 1);
  b->node++;
  uint64_t most = 8 * (b->body.n + 8) * (b->compressed ? MOST_FACTOR : 1); /* a row takes a bit at least */
  if (b->body.n > INT32_MAX) most = INT64_MAX;
  if (column->n_rows > most) return damaged(b, "has more rows than its body has bits");
  return take_buffers(b, column);
}

static bool read_compression(batch *b, const nxd_flat_table *rows) {
  nxd_flat_table compression = nxd_flat_member(rows, BATCH_COMPRESSION);
  b->compressed = nxd_flat_has(rows, BATCH_COMPRESSION);
  if (!b->compressed || nxd_flat_integer(&compression, 0, 1, 0) == 1) return true;
  return nxr_fault_set(
      b->fault, "%s is compressed with LZ4, which is not read: write it with compression='zstd', or without",
      b->arrow->path);
}

static void forget(nxd_arrow *arrow) {
  uint8_t **blocks = (uint8_t **)(void *)arrow->unpacked.bytes;
  for (size_t i = 0; i < arrow->unpacked.n / sizeof *blocks; i++) free(blocks[i]);
  arrow->unpacked.n = 0;
}

bool nxd_arrow_read_batch(nxd_arrow *arrow, const uint8_t *bytes, size_t n_bytes, nxd_arrow_bytes body,
                          nxr_fault *fault) {
  forget(arrow);
  nxd_flat flat = {.bytes = bytes, .n = n_bytes};
  nxd_flat_table message = nxd_flat_root(&flat), rows = nxd_flat_member(&message, MESSAGE_HEADER);
  batch b = {.arrow = arrow, .body = body, .fault = fault,
             .nodes = nxd_flat_list(&rows, BATCH_NODES, PAIR_BYTES),
             .buffers = nxd_flat_list(&rows, BATCH_BUFFERS, PAIR_BYTES)};
  if (!read_compression(&b, &rows)) return false;
  for (uint32_t i = 0; i < arrow->n_columns; i++)
    if (!take_column(&b, &arrow->columns[i])) return false;
  arrow->n_rows = (uint64_t)nxd_flat_integer(&rows, BATCH_LENGTH, 8, 0);
  for (uint32_t i = 0; i < arrow->n_columns; i += 1 + arrow->columns[i].n_below)
    if (arrow->columns[i].n_rows != arrow->n_rows)
      return damaged(&b, "has columns of other lengths than its own");
  return !flat.damaged || damaged(&b, "leads out of itself");
}
