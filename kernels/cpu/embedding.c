/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of rows: token and position embeddings and their gradients, and column sums.
 *
 * A gradient adds rows of dy to rows of a table. The pairs (table row, position) are sorted by row, stably,
 * so that every table row is summed in position order by one thread and rounded once: the bits depend on
 * nothing else. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/lanes.h"

enum { RADIX_BITS = 8, RADIX = 1 << RADIX_BITS };

bool CPU_NAME(cpu_embedding_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 1)) && cpu_is_real(cpu_out(kernel, 0)) &&
         cpu_in(kernel, 0)->dtype == NX_i32;
}

static void row_scale(void *y, nx_dtype y_type, int64_t y_start, const void *x, nx_dtype x_type,
                      int64_t x_start, int64_t n, float scale) {
  vec_buffer x_buffer, y_buffer;
  for (int64_t j = 0; j < n; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, n);
    const float *p = vec_read(x, x_type, x_start + j, count, x_buffer);
    float *r = vec_target(y, y_type, y_start + j, y_buffer);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) r[i] = scale * p[i];
    vec_commit(y, y_type, y_start + j, count, r);
  }
}

void CPU_NAME(cpu_embedding)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *table = cpu_in(kernel, 1), *y = cpu_out(kernel, 0);
  const int32_t *tokens = cpu_in_at(kernel, frame, 0);
  const void *rows = cpu_in_at(kernel, frame, 1);
  void *target = cpu_out_at(kernel, frame, 0);
  int64_t row_start = cpu_int(kernel, frame, NX_embedding_row_start), n = cpu_columns(table);
  int64_t n_tokens = cpu_rows(y), n_threads = kernel->device->n_threads;
  float scale = (float)cpu_real(kernel, NX_embedding_scale);
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n_tokens, 1, omp_get_thread_num(), n_threads);
    for (int64_t t = span.begin; t < span.end; t++) {
      int64_t row = tokens[t] - row_start;
      bool local = row >= 0 && row < table->dims[0];
      if (local && scale == 1) vec_copy(target, y->dtype, t * n, rows, table->dtype, row * n, n);
      else if (local) row_scale(target, y->dtype, t * n, rows, table->dtype, row * n, n, scale);
      else memset(vec_at(target, y->dtype, t * n), 0, (size_t)n * (y->dtype == NX_f32 ? 4 : 2));
    }
  }
}

bool CPU_NAME(cpu_position_add_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_is_real(cpu_in(kernel, 1)) &&
         cpu_is_real(cpu_out(kernel, 0)) && cpu_in(kernel, 2)->dtype == NX_i32;
}

/* positions[b, seq_start + s] of token b S + s. */
typedef struct position_map {
  const int32_t *positions;
  int64_t n_local, n_all, seq_start, n_rows;
} position_map;

/* -1 where the table has no such row. */
static int64_t position_row(const position_map *map, int64_t token) {
  int64_t at = map->seq_start + token % map->n_local;
  if (at >= map->n_all) return -1;
  int64_t row = map->positions[token / map->n_local * map->n_all + at];
  return row >= 0 && row < map->n_rows ? row : -1;
}

void CPU_NAME(cpu_position_add)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0), *table = cpu_in(kernel, 1), *y = cpu_out(kernel, 0);
  const void *source = cpu_in_at(kernel, frame, 0), *rows = cpu_in_at(kernel, frame, 1);
  void *target = cpu_out_at(kernel, frame, 0);
  position_map map = {cpu_in_at(kernel, frame, 2), x->dims[1], cpu_in(kernel, 2)->dims[1],
                      cpu_int(kernel, frame, NX_position_add_seq_start), table->dims[0]};
  int64_t n = cpu_columns(x), n_tokens = cpu_rows(x), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer x_buffer, row_buffer, y_buffer;
    cpu_span span = cpu_share(n_tokens, 1, omp_get_thread_num(), n_threads);
    for (int64_t t = span.begin; t < span.end; t++) {
      int64_t row = position_row(&map, t);
      for (int64_t j = 0; j < n; j += VEC_CHUNK) {
        int64_t count = vec_chunk_of(j, n);
        const float *p = vec_read(source, x->dtype, t * n + j, count, x_buffer);
        const float *q = vec_read(rows, table->dtype, (row < 0 ? 0 : row) * n + j, count, row_buffer);
        float *r = vec_target(target, y->dtype, t * n + j, y_buffer), present = row < 0 ? 0 : 1;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) r[i] = p[i] + present * q[i];
        vec_commit(target, y->dtype, t * n + j, count, r);
      }
    }
  }
}

typedef struct scatter_pair {
  uint32_t row, position;
} scatter_pair;

/* Sorts by row, stably, a digit at a time; `other` is as long. Returns the sorted one. */
static scatter_pair *pairs_sort(scatter_pair *pairs, scatter_pair *other, int64_t n, int64_t n_rows) {
  for (int shift = 0; n_rows > INT64_C(1) << shift; shift += RADIX_BITS) {
    int64_t starts[RADIX + 1] = {0};
    for (int64_t i = 0; i < n; i++) starts[(pairs[i].row >> shift & (RADIX - 1)) + 1]++;
    for (int digit = 0; digit < RADIX; digit++) starts[digit + 1] += starts[digit];
    for (int64_t i = 0; i < n; i++) other[starts[pairs[i].row >> shift & (RADIX - 1)]++] = pairs[i];
    scatter_pair *swap = pairs;
    pairs = other;
    other = swap;
  }
  return pairs;
}

typedef struct scatter {
  const void *dy;
  void *table;
  nx_dtype dy_type, table_type;
  int64_t n_columns;
  float scale; /* of dy */
} scatter;

/* Adds dy of pairs [begin, end), all of one row, to the table. */
static void scatter_row(const scatter *s, const scatter_pair *pairs, int64_t begin, int64_t end) {
  vec_buffer sum, buffer;
  for (int64_t j = 0; j < s->n_columns; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, s->n_columns), at = pairs[begin].row * s->n_columns + j;
    memcpy(sum, vec_read(s->table, s->table_type, at, count, buffer), (size_t)count * sizeof *sum);
    for (int64_t pair = begin; pair < end; pair++) {
      const float *p = vec_read(s->dy, s->dy_type, pairs[pair].position * s->n_columns + j, count, buffer);
#pragma omp simd
      for (int64_t i = 0; i < count; i++) sum[i] += s->scale * p[i];
    }
    vec_copy(s->table, s->table_type, at, sum, NX_f32, 0, count);
  }
}

/* A thread takes the rows whose first pair is in its share. */
static void scatter_run(const nxk_device *device, const scatter *s, const scatter_pair *pairs,
                        int64_t n_pairs) {
  int64_t n_threads = device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n_pairs, 1, omp_get_thread_num(), n_threads);
    int64_t begin = span.begin;
    while (begin > 0 && begin < span.end && pairs[begin].row == pairs[begin - 1].row) begin++;
    while (begin < span.end) {
      int64_t end = begin + 1;
      while (end < n_pairs && pairs[end].row == pairs[begin].row) end++;
      scatter_row(s, pairs, begin, end);
      begin = end;
    }
  }
}

bool CPU_NAME(cpu_embedding_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return CPU_NAME(cpu_embedding_bind)(kernel, fault) && cpu_reserve_said(kernel, fault);
}

void CPU_NAME(cpu_embedding_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *dy = cpu_in(kernel, 1), *table = cpu_out(kernel, 0);
  const int32_t *tokens = cpu_in_at(kernel, frame, 0);
  int64_t row_start = cpu_int(kernel, frame, NX_embedding_grad_row_start), n_tokens = cpu_rows(dy),
          n_pairs = 0;
  scatter_pair *pairs = (scatter_pair *)kernel->device->scratch;
  for (int64_t t = 0; t < n_tokens; t++) {
    int64_t row = tokens[t] - row_start;
    if (row >= 0 && row < table->dims[0]) pairs[n_pairs++] = (scatter_pair){(uint32_t)row, (uint32_t)t};
  }
  scatter s = {cpu_in_at(kernel, frame, 1), cpu_out_at(kernel, frame, 0), dy->dtype, table->dtype,
               cpu_columns(dy), (float)cpu_real(kernel, NX_embedding_grad_scale)};
  pairs = pairs_sort(pairs, pairs + n_tokens, n_pairs, table->dims[0]);
  scatter_run(kernel->device, &s, pairs, n_pairs);
}

bool CPU_NAME(cpu_position_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_is_real(cpu_out(kernel, 0)) &&
         cpu_in(kernel, 1)->dtype == NX_i32 && cpu_reserve_said(kernel, fault);
}

void CPU_NAME(cpu_position_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *dy = cpu_in(kernel, 0), *table = cpu_out(kernel, 0);
  position_map map = {cpu_in_at(kernel, frame, 1), dy->dims[1], cpu_in(kernel, 1)->dims[1],
                      cpu_int(kernel, frame, NX_position_grad_seq_start), table->dims[0]};
  int64_t n_tokens = cpu_rows(dy), n_pairs = 0;
  scatter_pair *pairs = (scatter_pair *)kernel->device->scratch;
  for (int64_t t = 0; t < n_tokens; t++) {
    int64_t row = position_row(&map, t);
    if (row >= 0) pairs[n_pairs++] = (scatter_pair){(uint32_t)row, (uint32_t)t};
  }
  scatter s = {cpu_in_at(kernel, frame, 0), cpu_out_at(kernel, frame, 0), dy->dtype, table->dtype,
               cpu_columns(dy), 1};
  pairs = pairs_sort(pairs, pairs + n_tokens, n_pairs, table->dims[0]);
  scatter_run(kernel->device, &s, pairs, n_pairs);
}

enum {
  COLUMN_UNIT = 64,
  ROW_BLOCK = 64, /* rows summed before their sum is added: keeps fp32 sums short */
  ROWS_AT_ONCE = 4
};

/* Rows are added in their order, ROWS_AT_ONCE of them while a sum is in a register. */
static void rows_add_f32(const float *x, int64_t stride, int64_t count, float *restrict sum) {
#pragma omp simd
  for (int64_t i = 0; i < count; i++) {
    float all = sum[i];
    for (int64_t row = 0; row < ROWS_AT_ONCE; row++) all += x[row * stride + i];
    sum[i] = all;
  }
}

/* Memory is asked for the next rows: pieces of these are too short for a core to look far ahead. */
static void rows_add_bf16(const uint16_t *x, int64_t stride, int64_t count, float *sum) {
  for (int64_t i = 0; i < count; i += LANES) {
    lanes all = lanes_first(sum, NX_f32, i, count - i, 0);
    for (int64_t row = 0; row < ROWS_AT_ONCE; row++) {
      ask_at(x, NX_bf16, (row + ROWS_AT_ONCE) * stride + i);
      all += lanes_first(x, NX_bf16, row * stride + i, count - i, 0);
    }
    lanes_keep(sum, NX_f32, i, count - i, all);
  }
}

static void row_add(const void *x, nx_dtype type, int64_t count, float *sum) {
  vec_buffer buffer;
  const float *p = vec_read(x, type, 0, count, buffer);
#pragma omp simd
  for (int64_t i = 0; i < count; i++) sum[i] += p[i];
}

static void columns_sum(const void *x, nx_dtype type, int64_t n_rows, int64_t stride, int64_t j,
                        int64_t count, float *sum) {
  vec_buffer block;
  for (int64_t row0 = 0; row0 < n_rows; row0 += ROW_BLOCK) {
    int64_t row = row0, end = n_rows - row0 < ROW_BLOCK ? n_rows : row0 + ROW_BLOCK;
    memset(block, 0, (size_t)count * sizeof *block);
    for (; row + ROWS_AT_ONCE <= end && type != NX_f16; row += ROWS_AT_ONCE) {
      const void *rows = vec_at(x, type, row * stride + j);
      if (type == NX_bf16) rows_add_bf16(rows, stride, count, block);
      else rows_add_f32(rows, stride, count, block);
    }
    for (; row < end; row++) row_add(vec_at(x, type, row * stride + j), type, count, block);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) sum[i] += block[i];
  }
}

void CPU_NAME(cpu_bias_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *dy = cpu_in(kernel, 0), *db = cpu_out(kernel, 0);
  const void *x = cpu_in_at(kernel, frame, 0);
  void *y = cpu_out_at(kernel, frame, 0);
  bool accumulate = cpu_int(kernel, frame, NX_bias_grad_accumulate);
  int64_t n_rows = cpu_rows(dy), n = cpu_columns(dy), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer sum, buffer;
    cpu_span span = cpu_share(n, COLUMN_UNIT, omp_get_thread_num(), n_threads);
    for (int64_t j = span.begin; j < span.end; j += VEC_CHUNK) {
      int64_t count = vec_chunk_of(j, span.end);
      if (accumulate) memcpy(sum, vec_read(y, db->dtype, j, count, buffer), (size_t)count * sizeof *sum);
      else memset(sum, 0, sizeof sum);
      columns_sum(x, dy->dtype, n_rows, n, j, count, sum);
      vec_copy(y, db->dtype, j, sum, NX_f32, 0, count);
    }
  }
}
