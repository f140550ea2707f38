/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_write.h"

#include "schema/inlined.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  RUN_BYTES = 1 << 20,
  BLOCK_BYTES = 8 << 20,
  TURNED_BYTES = 64 << 20,
  LINES = 16,
  SYNC_BYTES = 256 << 20
};

/* The layout of the file, and this rank's hold on it: bytes that follow each other are gathered into a run
 * and written together. */
typedef struct writer {
  const nxr_part *part;
  const nxr_tensors *tensors;
  nxr_safetensor *layout;   /* the tensors that the file has */
  nxr_safetensor **of_tensor; /* [tensors], NULL where the file has it not */
  char *header;
  uint64_t n_header_bytes, n_file_bytes;
  int file;
  const uint8_t *taken;     /* what comes next of part.taken */
  uint8_t *run;             /* [RUN_BYTES] */
  uint64_t run_offset, n_run_bytes, n_unsynced_bytes;
  nxr_sum *sum;
  nxr_fault *fault;
} writer;

bool nxr_world_all(nxr_world *world, bool own) {
  uint64_t failed = !own;
  nxr_world_max(world, &failed, 1);
  return failed == 0;
}

static bool write_fault(const writer *out) {
  return nxr_fault_set(out->fault, "cannot write %s: %s", out->part->path, strerror(errno));
}

static bool write_at(const writer *out, const void *bytes, uint64_t n_bytes, uint64_t offset) {
  const uint8_t *from = bytes;
  nxr_sum_add(out->sum, bytes, n_bytes, offset);
  while (n_bytes > 0) {
    out->part->sign(out->part->context);
    ssize_t n = pwrite(out->file, from, n_bytes, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return write_fault(out);
    from += n, offset += (uint64_t)n, n_bytes -= (uint64_t)n;
  }
  return true;
}

/* Has the disk keep up, so that no sync at the end takes longer than the other ranks wait. */
static bool keep_up(writer *out, uint64_t n_written) {
  out->n_unsynced_bytes += n_written;
  if (out->n_unsynced_bytes < SYNC_BYTES) return true;
  out->n_unsynced_bytes = 0;
  return fdatasync(out->file) == 0 || write_fault(out);
}

static bool flush(writer *out) {
  uint64_t n_bytes = out->n_run_bytes;
  out->n_run_bytes = 0;
  return write_at(out, out->run, n_bytes, out->run_offset) && keep_up(out, n_bytes);
}

static bool put(writer *out, const void *bytes, uint64_t n_bytes, uint64_t offset) {
  bool follows = offset == out->run_offset + out->n_run_bytes;
  if ((!follows || out->n_run_bytes + n_bytes > RUN_BYTES) && !flush(out)) return false;
  if (n_bytes > RUN_BYTES) return write_at(out, bytes, n_bytes, offset) && keep_up(out, n_bytes);
  if (out->n_run_bytes == 0) out->run_offset = offset;
  memcpy(out->run + out->n_run_bytes, bytes, n_bytes);
  out->n_run_bytes += n_bytes;
  return true;
}

/* ---- layout ---- */

static int by_alignment(const void *a, const void *b) {
  const nxr_safetensor *x = a, *y = b;
  uint32_t x_bits = nx_dtype_bits(x->dtype), y_bits = nx_dtype_bits(y->dtype);
  return x_bits != y_bits ? (x_bits > y_bits ? -1 : 1) : strcmp(x->name, y->name);
}

static bool make_layout(writer *out) {
  const nxr_tensors *tensors = out->tensors;
  uint64_t n = 0;
  out->layout = calloc((size_t)tensors->n + 1, sizeof *out->layout);
  out->of_tensor = calloc((size_t)tensors->n + 1, sizeof *out->of_tensor);
  out->run = malloc(RUN_BYTES);
  if (!out->layout || !out->of_tensor || !out->run) return nxr_fault_set(out->fault, "out of memory");
  for (uint32_t i = 0; i < tensors->n; i++) {
    uint32_t piece = tensors->items[i].piece;
    if (nxr_tensors_in_shard(tensors, i, out->part->shard) &&
        nxr_pieces_has(tensors->pieces, nxr_tensors_kind(tensors, out->part->content, piece), piece))
      nxr_tensors_describe_stored(tensors, out->part->content, i, &out->layout[n++]);
  }
  qsort(out->layout, n, sizeof *out->layout, by_alignment);
  for (uint64_t i = 0; i < n; i++)
    out->of_tensor[nxr_tensors_find(tensors, out->layout[i].name)] = &out->layout[i];
  out->header = nxr_safetensors_layout(out->layout, n, &out->n_header_bytes, &out->n_file_bytes);
  return out->header != NULL || nxr_fault_set(out->fault, "out of memory");
}

static void drop_layout(writer *out) {
  if (out->file >= 0) close(out->file);
  free(out->layout);
  free(out->of_tensor);
  free(out->run);
  free(out->header);
}

/* ---- the spans of one piece ---- */

/* Rows [first, first + n) of the local box, each in its place of a dense block of the box's width; the spans
 * say which columns are there. */
static void gather(writer *out, uint32_t piece, int64_t first, int64_t n, uint8_t *block,
                   nxr_span *spans) {
  const nxr_pieces *pieces = out->tensors->pieces;
  const nx_piece *at = &pieces->plan->pieces[piece];
  nxr_kind kind = nxr_tensors_kind(out->tensors, out->part->content, piece);
  nx_dtype dtype = nxr_pieces_dtype(pieces, kind, piece);
  uint64_t size = nx_dtype_bits(dtype) / 8;
  int64_t column_start = nx_constant_value(pieces->plan, at->column_start, pieces->rank, at->chunk);
  for (int64_t i = 0; i < n; i++) {
    spans[i] = nxr_pieces_row(pieces, kind, piece, first + i);
    uint64_t element = (uint64_t)(i * at->columns + spans[i].column - column_start);
    if (out->taken) {
      memcpy(block + element * size, out->taken, (uint64_t)spans[i].n * size);
      out->taken += (uint64_t)spans[i].n * size;
    } else {
      nxr_pieces_get(pieces, dtype, &spans[i], block + element * size);
    }
    spans[i].address = block + element * size;
  }
}

static bool put_rows(writer *out, const nxr_safetensor *tensor, const nx_piece *piece, const nxr_span *spans,
                     int64_t n) {
  uint64_t size = nx_dtype_bits(tensor->dtype) / 8;
  for (int64_t i = 0; i < n; i++) {
    uint64_t element = (uint64_t)(spans[i].row * piece->logical_columns + spans[i].column);
    if (spans[i].n > 0 &&
        !put(out, spans[i].address, (uint64_t)spans[i].n * size, tensor->offset + element * size))
      return false;
  }
  return true;
}

static bool put_by_rows(writer *out, uint32_t index, const nxr_safetensor *tensor) {
  const nx_piece *piece = &out->tensors->pieces->plan->pieces[index];
  int64_t row_bytes = piece->columns * (int64_t)(nx_dtype_bits(tensor->dtype) / 8),
          n_rows = BLOCK_BYTES / row_bytes;
  if (n_rows < 1) n_rows = 1;
  if (n_rows > piece->rows) n_rows = piece->rows;
  uint8_t *block = malloc((size_t)(n_rows * row_bytes));
  nxr_span *spans = calloc((size_t)n_rows, sizeof *spans);
  bool good = block && spans;
  if (!good) nxr_fault_set(out->fault, "out of memory");
  for (int64_t row = 0; good && row < piece->rows; row += n_rows) {
    int64_t n = n_rows < piece->rows - row ? n_rows : piece->rows - row;
    gather(out, index, row, n, block, spans);
    good = put_rows(out, tensor, piece, spans, n);
  }
  free(block);
  free(spans);
  return good;
}

/* ---- a piece that stands in the file transposed ---- */

/* Some columns of all its rows, and LINES of them turned: what is one below the other in the block stands
 * side by side in the file. */
typedef struct turned {
  uint64_t size; /* of an element */
  int64_t n_rows, first, n; /* columns */
  nxr_span *spans;          /* of the rows */
  uint8_t *block;           /* [n_rows, n] */
  uint8_t *lines;           /* [LINES, n_rows] */
} turned;

static bool has_column(const nxr_span *span, int64_t column) {
  return column >= span->column && column < span->column + span->n;
}

/* The columns of the block, from memory or from what has been taken of it. */
static void turned_read(const writer *out, nx_dtype dtype, const turned *t) {
  const uint8_t *taken = out->taken;
  for (int64_t i = 0; i < t->n_rows; i++) {
    nxr_span part = t->spans[i];
    if (part.n == 0) continue;
    uint64_t n_bytes = (uint64_t)part.n * t->size;
    int64_t end = part.column + part.n < t->first + t->n ? part.column + part.n : t->first + t->n;
    int64_t before = part.column < t->first ? t->first - part.column : 0;
    part.column += before;
    part.n = end - part.column;
    part.address = (uint8_t *)part.address + (uint64_t)before * t->size;
    uint8_t *to = t->block + (uint64_t)(i * t->n + part.column - t->first) * t->size;
    if (part.n > 0 && taken) memcpy(to, taken + (uint64_t)before * t->size, (uint64_t)part.n * t->size);
    else if (part.n > 0) nxr_pieces_get(out->tensors->pieces, dtype, &part, to);
    if (taken) taken += n_bytes;
  }
}

INLINED void turn_as(const turned *t, int64_t column, int64_t n, const uint64_t size) {
  for (int64_t i = 0; i < t->n_rows; i++) {
    const uint8_t *from = t->block + (uint64_t)(i * t->n + column) * size;
    for (int64_t line = 0; line < n; line++)
      memcpy(t->lines + (uint64_t)(line * t->n_rows + i) * size, from + (uint64_t)line * size, size);
  }
}

/* Columns [column, column + n) of the block; those of a row lie in one line of a cache. */
static void turn_lines(const turned *t, int64_t column, int64_t n) {
  switch (t->size) {
  case 2: turn_as(t, column, n, 2); return;
  case 4: turn_as(t, column, n, 4); return;
  default: turn_as(t, column, n, t->size);
  }
}

/* A line, by the runs of rows that this rank has of it. */
static bool put_line(writer *out, const nxr_safetensor *tensor, const nx_piece *piece, const turned *t,
                     int64_t line, int64_t column) {
  for (int64_t i = 0, end; i < t->n_rows; i = end) {
    end = i + 1;
    if (!has_column(&t->spans[i], column)) continue;
    while (end < t->n_rows && has_column(&t->spans[end], column)) end++;
    uint64_t element = (uint64_t)(column * piece->logical_rows + t->spans[i].row);
    if (!put(out, t->lines + (uint64_t)(line * t->n_rows + i) * t->size, (uint64_t)(end - i) * t->size,
             tensor->offset + element * t->size))
      return false;
  }
  return true;
}

static bool put_columns(writer *out, const nxr_safetensor *tensor, const nx_piece *piece, const turned *t) {
  for (int64_t column = 0; column < t->n; column += LINES) {
    int64_t n = LINES < t->n - column ? LINES : t->n - column;
    turn_lines(t, column, n);
    for (int64_t line = 0; line < n; line++)
      if (!put_line(out, tensor, piece, t, line, t->first + column + line)) return false;
  }
  return true;
}

static bool put_turned(writer *out, uint32_t index, const nxr_safetensor *tensor) {
  const nxr_pieces *pieces = out->tensors->pieces;
  const nx_piece *piece = &pieces->plan->pieces[index];
  nxr_kind kind = nxr_tensors_kind(out->tensors, out->part->content, index);
  turned t = {.size = nx_dtype_bits(tensor->dtype) / 8, .n_rows = piece->rows};
  int64_t width = TURNED_BYTES / (t.n_rows * (int64_t)t.size), n_elements = 0;
  if (width < LINES) width = LINES;
  if (width > piece->columns) width = piece->columns;
  t.spans = calloc((size_t)t.n_rows, sizeof *t.spans);
  t.block = malloc((size_t)(t.n_rows * width) * t.size);
  t.lines = malloc((size_t)(t.n_rows * LINES) * t.size);
  bool good = t.spans && t.block && t.lines;
  if (!good) nxr_fault_set(out->fault, "out of memory");
  for (int64_t i = 0; good && i < t.n_rows; i++) {
    t.spans[i] = nxr_pieces_row(pieces, kind, index, i);
    n_elements += t.spans[i].n;
  }
  int64_t start = nx_constant_value(pieces->plan, piece->column_start, pieces->rank, piece->chunk);
  for (int64_t column = 0; good && column < piece->columns && n_elements > 0; column += width) {
    t.first = start + column;
    t.n = width < piece->columns - column ? width : piece->columns - column;
    turned_read(out, nxr_pieces_dtype(pieces, kind, index), &t);
    good = put_columns(out, tensor, piece, &t);
  }
  if (out->taken) out->taken += (uint64_t)n_elements * t.size;
  free(t.spans);
  free(t.block);
  free(t.lines);
  return good;
}

static bool put_piece(writer *out, uint32_t index) {
  const nx_piece *piece = &out->tensors->pieces->plan->pieces[index];
  const nxr_safetensor *tensor = out->of_tensor[out->tensors->of_piece[index]];
  if (tensor == NULL || !nxr_tensors_writes(out->tensors, out->part->content, index)) return true;
  bool transposed = piece->n_dims == 2 && (piece->flags & NX_PIECE_TRANSPOSED);
  return transposed ? put_turned(out, index, tensor) : put_by_rows(out, index, tensor);
}

/* ---- the file ---- */

/* Whichever rank comes first makes it. One takes the room at once, so that a full disk is found before much
 * is written. */
static bool open_file(writer *out) {
  out->file = open(out->part->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (out->file < 0) return write_fault(out);
  if (!out->part->first) return true;
  off_t n_bytes = (off_t)out->n_file_bytes;
  bool taken = fallocate(out->file, 0, 0, n_bytes) == 0, unsupported = errno == EOPNOTSUPP || errno == EINVAL;
  if (!taken && (!unsupported || ftruncate(out->file, n_bytes) != 0)) return write_fault(out);
  return write_at(out, out->header, out->n_header_bytes, 0);
}

static bool write_own(writer *out) {
  if (!open_file(out)) return false;
  for (uint32_t i = 0; i < out->tensors->pieces->plan->n[NX_SECTION_PIECES]; i++)
    if (!put_piece(out, i)) return false;
  if (!flush(out)) return false;
  bool good = fsync(out->file) == 0 || write_fault(out);
  if (close(out->file) != 0 && good) good = write_fault(out);
  out->file = -1;
  return good;
}

bool nxr_part_write(const nxr_part *part, nxr_sum *sum, nxr_fault *fault) {
  writer out = {.part = part, .tensors = part->tensors, .taken = part->taken, .file = -1, .sum = sum,
                .fault = fault};
  bool good = make_layout(&out) && write_own(&out);
  drop_layout(&out);
  return good;
}

/* ---- a copy of what will be written ---- */

/* Rows that lie one behind the other are copied at once. */
static uint64_t take_piece(const nxr_tensors *tensors, nxr_kind kind, uint32_t index, uint8_t *to) {
  const nxr_pieces *pieces = tensors->pieces;
  nx_dtype dtype = nxr_pieces_dtype(pieces, kind, index);
  uint64_t size = nx_dtype_bits(dtype) / 8, n_bytes = 0;
  nxr_span run = {0};
  for (int64_t row = 0; row < pieces->plan->pieces[index].rows; row++) {
    nxr_span span = nxr_pieces_row(pieces, kind, index, row);
    if (span.n == 0) continue;
    if (run.n > 0 && (uint8_t *)run.address + (uint64_t)run.n * size == span.address) {
      run.n += span.n;
      continue;
    }
    if (to) nxr_pieces_get(pieces, dtype, &run, to + n_bytes);
    n_bytes += (uint64_t)run.n * size;
    run = span;
  }
  if (to) nxr_pieces_get(pieces, dtype, &run, to + n_bytes);
  return n_bytes + (uint64_t)run.n * size;
}

uint64_t nxr_part_take(const nxr_tensors *tensors, nxr_content content, uint32_t shard, uint8_t *to) {
  uint64_t n_bytes = 0;
  for (uint32_t i = 0; i < tensors->pieces->plan->n[NX_SECTION_PIECES]; i++)
    if (nxr_tensors_in_shard(tensors, tensors->of_piece[i], shard) && nxr_tensors_writes(tensors, content, i))
      n_bytes += take_piece(tensors, nxr_tensors_kind(tensors, content, i), i, to ? to + n_bytes : NULL);
  return n_bytes;
}
