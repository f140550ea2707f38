/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm and LayerNorm. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/norm_rows.h"
#include "kernels/norm.h"

enum { SUMS = 4 /* side by side, for each waits for its last addition */ };

/* A row as it is read: where it is stored, or widened in a room. */
typedef struct norm_row {
  const void *x;
  nx_dtype type;
  int64_t start;
} norm_row;

static inline const float *row_read(const norm_row *row, int64_t j, int64_t count, float *buffer) {
  return vec_read(row->x, row->type, row->start + j, count, buffer);
}

/* Some columns of a row that is summed. */
typedef struct sums_chunk {
  const void *x;
  float *wide;   /* where they are left as fp32, unless it is NULL */
  const void *y; /* what will be written, unless it is NULL */
  nx_dtype y_type;
  int64_t n;
  float shift;
} sums_chunk;

INLINED void sums_lanes(lanes *plain, lanes *square, const sums_chunk c, const nx_dtype type, int64_t i,
                        int64_t n) {
  if (c.y) ask_ahead(c.x, type, i), ask_to_write(c.y, c.y_type, i);
  lanes here = lanes_first(c.x, type, i, n, c.shift), centred = here - lanes_of(c.shift);
  if (c.wide) lanes_keep(c.wide, NX_f32, i, n, here);
  *plain += centred;
  *square += centred * centred;
}

INLINED void sums_add(norm_sums *sums, const sums_chunk c, const nx_dtype type) {
  lanes plain[SUMS], square[SUMS];
  int64_t i = 0;
  for (int k = 0; k < SUMS; k++) plain[k] = square[k] = lanes_of(0);
  for (; i + SUMS * LANES <= c.n; i += SUMS * LANES)
    for (int k = 0; k < SUMS; k++) sums_lanes(&plain[k], &square[k], c, type, i + k * LANES, LANES);
  for (; i < c.n; i += LANES) sums_lanes(&plain[0], &square[0], c, type, i, c.n - i);
  sums->plain += (double)lanes_sum((plain[0] + plain[1]) + (plain[2] + plain[3]));
  sums->square += (double)lanes_sum((square[0] + square[1]) + (square[2] + square[3]));
}

/* Sums of x - shift and of its square over a row, of which y, where it is not NULL, will be made. */
static norm_sums row_sums(const norm_row *row, int64_t n, float shift, float *wide, const void *y,
                          nx_dtype y_type) {
  vec_buffer buffer;
  norm_sums sums = {0, 0};
  for (int64_t j = 0; j < n; j += VEC_CHUNK) {
    sums_chunk c = {.x = vec_at(row->x, row->type, row->start + j),
                    .wide = wide ? wide + j : NULL,
                    .y = y ? vec_at(y, y_type, j) : NULL,
                    .y_type = y_type,
                    .n = vec_chunk_of(j, n),
                    .shift = shift};
    if (row->type == NX_f16) c.x = row_read(row, j, c.n, buffer);
    if (row->type == NX_bf16) sums_add(&sums, c, NX_bf16);
    else sums_add(&sums, c, NX_f32);
  }
  return sums;
}

typedef struct norm_forward {
  const void *x;
  void *y;
  nx_dtype x_type, y_type;
  norm_vector g, b; /* b's x is NULL where there are no biases */
  int64_t n;
} norm_forward;

/* A row for the passes that follow, and its sums. */
static norm_row row_open(const norm_forward *f, int64_t row, float *room, norm_sums *sums) {
  norm_row stored = {f->x, f->x_type, row * f->n};
  bool widened = f->x_type != NX_f32 && f->n <= ROW_ROOM;
  *sums = row_sums(&stored, f->n, 0, widened ? room : NULL, vec_at(f->y, f->y_type, row * f->n), f->y_type);
  return widened ? (norm_row){room, NX_f32, 0} : stored;
}

/* y = (x - mean) rstd g (+ b) of n <= LANES elements */
INLINED void apply_lanes(void *y, const nx_dtype type, const float *x, const float *g, const float *b,
                         int64_t i, int64_t n, float mean, float rstd) {
  lanes here = (lanes_first(x, NX_f32, i, n, 0) - lanes_of(mean)) * lanes_of(rstd);
  here *= lanes_first(g, NX_f32, i, n, 0);
  if (b) here += lanes_first(b, NX_f32, i, n, 0);
  lanes_keep(y, type, i, n, here);
}

INLINED void chunk_apply(void *y, const nx_dtype type, const float *x, const float *g, const float *b,
                         int64_t n, float mean, float rstd) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) apply_lanes(y, type, x, g, b, i, LANES, mean, rstd);
  if (i < n) apply_lanes(y, type, x, g, b, i, n - i, mean, rstd);
}

static void row_apply(const norm_forward *f, const norm_row *from, int64_t row, float mean, float rstd) {
  vec_buffer x_buffer, g_buffer, b_buffer, y_buffer;
  for (int64_t j = 0; j < f->n; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, f->n), start = row * f->n + j;
    const float *x = row_read(from, j, count, x_buffer), *g = vector_read(&f->g, j, count, g_buffer),
                *b = f->b.x ? vector_read(&f->b, j, count, b_buffer) : NULL;
    if (lanes_round_to(f->y_type)) {
      chunk_apply((uint16_t *)f->y + start, NX_bf16, x, g, b, count, mean, rstd);
      continue;
    }
    float *y = vec_target(f->y, f->y_type, start, y_buffer);
    chunk_apply(y, NX_f32, x, g, b, count, mean, rstd);
    vec_commit(f->y, f->y_type, start, count, y);
  }
}

static norm_forward forward_of(const nxk_kernel *kernel, const nxk_frame *frame, row_room rooms[2]) {
  const nxk_tensor *x = cpu_in(kernel, 0), *y = cpu_out(kernel, 0), *g = cpu_in(kernel, 1);
  const nxk_tensor *b = kernel->operator.n_in > 2 ? cpu_in(kernel, 2) : NULL;
  int64_t n = cpu_columns(x);
  float centre = cpu_int(kernel, frame, NX_rms_norm_zero_centred) ? 1 : 0;
  return (norm_forward){
      .x = cpu_in_at(kernel, frame, 0),
      .y = cpu_out_at(kernel, frame, 0),
      .x_type = x->dtype,
      .y_type = y->dtype,
      .g = vector_open(cpu_in_at(kernel, frame, 1), g->dtype, centre, n, rooms[0]),
      .b = vector_open(b ? cpu_in_at(kernel, frame, 2) : NULL, b ? b->dtype : NX_f32, 0, n, rooms[1]),
      .n = n};
}

/* mean: where it goes; NULL: none is taken off. */
static void norm_run(const nxk_kernel *kernel, const nxk_frame *frame, float *mean, float *rstd,
                     double epsilon) {
  int64_t n_rows = cpu_rows(cpu_in(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    row_room rooms[2], room;
    norm_forward f = forward_of(kernel, frame, rooms);
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) {
      norm_sums sums;
      norm_row x = row_open(&f, row, room, &sums);
      double n = (double)f.n, rest = 0;
      if (mean) {
        float about = (float)(sums.plain / n);
        sums = row_sums(&x, f.n, about, NULL, NULL, NX_f32);
        rest = sums.plain / n;
        mean[row] = (float)((double)about + rest);
      }
      rstd[row] = (float)nxk_rstd(sums.square, sums.square / n - rest * rest, epsilon);
      row_apply(&f, &x, row, mean ? mean[row] : 0, rstd[row]);
    }
  }
}

void CPU_NAME(cpu_rms_norm)(const nxk_kernel *kernel, const nxk_frame *frame) {
  norm_run(kernel, frame, NULL, cpu_out_at(kernel, frame, 1), cpu_real(kernel, NX_rms_norm_epsilon));
}

void CPU_NAME(cpu_layer_norm)(const nxk_kernel *kernel, const nxk_frame *frame) {
  norm_run(kernel, frame, cpu_out_at(kernel, frame, 1), cpu_out_at(kernel, frame, 2),
           cpu_real(kernel, NX_layer_norm_epsilon));
}
