/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of rows: which bytes of a message's body are which column's. */
#include "datasets/arrow.h"
#include "datasets/arrow_flat.h"

#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { MESSAGE_KIND = 1, MESSAGE_HEADER = 2, KIND_DICTIONARY = 2, DICTIONARY_ROWS = 1 };
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VIEWS };
enum { PAIR_BYTES = 16 }; /* of a node: rows, nulls; of a buffer: offset, bytes */
/* Of a buffer that is unpacked: in all, and for each byte before (zstd does not reach it). */
static const uint64_t MOST_BYTES = UINT64_C(1) << 32, MOST_FACTOR = 1 << 16;

typedef bool (*unpack_function)(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to);

typedef struct batch {
  const nxd_arrow *arrow;
  nxd_arrow_rows *rows;
  nxd_flat_vector nodes, buffers, views;
  size_t node, buffer, view; /* that come next */
  nxd_arrow_bytes body;
  unpack_function unpack; /* NULL: it is not compressed */
  nxr_fault *fault;
} batch;

static bool unpack_zstd(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to) {
  return ZSTD_decompress(to, n_to, from, n_from) == n_to;
}

/* One frame. With a dictionary, which Arrow has no place for, it would come out wrong. */
static bool unpack_lz4(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to) {
  LZ4F_dctx *frame;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&frame, LZ4F_VERSION))) return false;
  LZ4F_frameInfo_t info;
  size_t n_read = n_from, n_written = n_to;
  bool unpacked = !LZ4F_isError(LZ4F_getFrameInfo(frame, &info, from, &n_read)) && info.dictID == 0;
  if (unpacked) {
    size_t n_rest = n_from - n_read;
    unpacked = LZ4F_decompress(frame, to, &n_written, from + n_read, &n_rest, NULL) == 0 && n_written == n_to;
  }
  LZ4F_freeDecompressionContext(frame);
  return unpacked;
}

static const unpack_function codecs[] = {unpack_lz4, unpack_zstd}; /* by Arrow's numbers */

static bool damaged(const batch *b, const char *what) {
  return nxr_fault_set(b->fault, "%s is damaged: a batch %s", b->arrow->path, what);
}

static uint64_t load_pair(const nxd_flat_vector *list, size_t i, size_t which) {
  return (uint64_t)nxd_flat_load(list->in->bytes + list->at + PAIR_BYTES * i + 8 * which, 8);
}

/* Memory that stays until the next batch. */
static void *take_block(batch *b, size_t n_bytes) {
  void *block = malloc(n_bytes + 1);
  if (block != NULL && nxd_buffer_append(&b->rows->blocks, &block, sizeof block)) return block;
  free(block);
  nxr_fault_set(b->fault, "out of memory for %s", b->arrow->path);
  return NULL;
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
  uint8_t *to = take_block(b, (size_t)n);
  if (to == NULL) return false;
  if (!b->unpack(packed.at, packed.n, to, (size_t)n))
    return damaged(b, "has a buffer that does not unpack to what it says");
  *bytes = (nxd_arrow_bytes){to, (uint64_t)n};
  return true;
}

static bool take_buffer(batch *b, nxd_arrow_bytes *bytes) {
  if (b->buffer == b->buffers.n) return damaged(b, "has too few buffers");
  uint64_t at = load_pair(&b->buffers, b->buffer, 0), n = load_pair(&b->buffers, b->buffer, 1);
  b->buffer++;
  if (at > b->body.n || n > b->body.n - at) return damaged(b, "has a buffer outside of its body");
  *bytes = (nxd_arrow_bytes){b->body.at + at, n};
  return b->unpack == NULL || unpack(b, bytes);
}

/* Of a column of views as many as the batch says. */
static bool take_views(batch *b, nxd_arrow_column *column) {
  if (b->view == b->views.n) return damaged(b, "has too few numbers of buffers");
  uint64_t n = (uint64_t)nxd_flat_load(b->views.in->bytes + b->views.at + 8 * b->view, 8);
  b->view++;
  if (n > b->buffers.n - b->buffer) return damaged(b, "has too few buffers");
  nxd_arrow_bytes *views = take_block(b, (size_t)n * sizeof *views);
  if (views == NULL) return false;
  for (uint64_t i = 0; i < n; i++)
    if (!take_buffer(b, &views[i])) return false;
  column->views = views, column->n_views = n;
  return true;
}

/* Which buffers a column has, in order. */
static bool take_buffers(batch *b, nxd_arrow_column *column) {
  column->valid = column->offsets = column->data = (nxd_arrow_bytes){0};
  column->views = NULL, column->n_views = 0;
  switch (column->type) {
    case NXD_ARROW_NULL: return true;
    case NXD_ARROW_STRUCT:
    case NXD_ARROW_FIXED_LIST: return take_buffer(b, &column->valid);
    case NXD_ARROW_LIST:
    case NXD_ARROW_LARGE_LIST:
    case NXD_ARROW_MAP: return take_buffer(b, &column->valid) && take_buffer(b, &column->offsets);
    case NXD_ARROW_BINARY_VIEW:
    case NXD_ARROW_UTF8_VIEW:
      return take_buffer(b, &column->valid) && take_buffer(b, &column->data) && take_views(b, column);
    case NXD_ARROW_BINARY:
    case NXD_ARROW_UTF8:
    case NXD_ARROW_LARGE_BINARY:
    case NXD_ARROW_LARGE_UTF8:
    case NXD_ARROW_LIST_VIEW:
    case NXD_ARROW_LARGE_LIST_VIEW:
      return take_buffer(b, &column->valid) && take_buffer(b, &column->offsets) &&
             take_buffer(b, &column->data);
    default: return take_buffer(b, &column->valid) && take_buffer(b, &column->data);
  }
}

static bool take_column(batch *b, nxd_arrow_column *column) {
  if (b->node == b->nodes.n) return damaged(b, "has too few columns");
  column->n_rows = load_pair(&b->nodes, b->node, 0), column->n_nulls = load_pair(&b->nodes, b->node, 1);
  b->node++;
  uint64_t most = 8 * (b->body.n + 8) * (b->unpack ? MOST_FACTOR : 1); /* a row takes a bit at least */
  if (b->body.n > INT32_MAX) most = INT64_MAX;
  if (column->n_rows > most) return damaged(b, "has more rows than its body has bits");
  return take_buffers(b, column);
}

static bool read_compression(batch *b, const nxd_flat_table *rows) {
  nxd_flat_table compression = nxd_flat_member(rows, BATCH_COMPRESSION);
  if (!nxd_flat_has(rows, BATCH_COMPRESSION)) return true;
  uint64_t codec = (uint64_t)nxd_flat_integer(&compression, 0, 1, 0);
  if (codec >= sizeof codecs / sizeof *codecs) return damaged(b, "is compressed in a way that is not known");
  b->unpack = codecs[codec];
  return true;
}

void nxd_arrow_forget(nxd_arrow_rows *rows) {
  void **blocks = (void **)(void *)rows->blocks.bytes;
  for (size_t i = 0; i < rows->blocks.n / sizeof *blocks; i++) free(blocks[i]);
  rows->blocks.n = 0;
  rows->n_rows = 0;
}

static bool take_columns(batch *b, uint64_t n_rows) {
  nxd_arrow_rows *rows = b->rows;
  for (uint32_t i = 0; i < rows->n_columns; i++)
    if (!take_column(b, &rows->columns[i])) return false;
  for (uint32_t i = 0; i < rows->n_columns; i += 1 + rows->columns[i].n_below)
    if (rows->columns[i].n_rows != n_rows) return damaged(b, "has columns of other lengths than its own");
  return true;
}

bool nxd_arrow_read_batch(const nxd_arrow *arrow, nxd_arrow_rows *rows, const uint8_t *bytes, size_t n_bytes,
                          nxd_arrow_bytes body, nxr_fault *fault) {
  nxd_arrow_forget(rows);
  nxd_flat flat = {.bytes = bytes, .n = n_bytes};
  nxd_flat_table message = nxd_flat_root(&flat), header = nxd_flat_member(&message, MESSAGE_HEADER);
  bool dictionary = nxd_flat_integer(&message, MESSAGE_KIND, 1, 0) == KIND_DICTIONARY;
  nxd_flat_table is = dictionary ? nxd_flat_member(&header, DICTIONARY_ROWS) : header;
  batch b = {.arrow = arrow, .rows = rows, .body = body, .fault = fault,
             .nodes = nxd_flat_list(&is, BATCH_NODES, PAIR_BYTES),
             .buffers = nxd_flat_list(&is, BATCH_BUFFERS, PAIR_BYTES),
             .views = nxd_flat_list(&is, BATCH_VIEWS, 8)};
  uint64_t n_rows = (uint64_t)nxd_flat_integer(&is, BATCH_LENGTH, 8, 0);
  if (!read_compression(&b, &is) || !take_columns(&b, n_rows)) return false;
  rows->n_rows = n_rows;
  return !flat.damaged || damaged(&b, "leads out of itself");
}
