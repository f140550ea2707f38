/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm and LayerNorm with their gradients. Rows go to threads in order; a thread sums its rows' share of
 * dg and db in scratch, and the threads' sums are added in thread order. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"
#include "kernels/norm.h"

enum {
  NORM_UNIT = 64 /* columns that one thread finishes at a time */,
  ROW_ROOM = 8192 /* elements of a row that is widened once for all its passes */
};

typedef float row_room[ROW_ROOM] __attribute__((aligned(64)));

/* A row as it is read: where it is stored, or widened in a room. */
typedef struct norm_row {
  const void *x;
  nx_dtype type;
  int64_t start;
} norm_row;

static norm_row row_open(const void *x, nx_dtype type, int64_t row, int64_t n, float *room) {
  if (type == NX_f32 || n > ROW_ROOM) return (norm_row){x, type, row * n};
  vec_widen_from(type, room, (const uint16_t *)x + row * n, n);
  return (norm_row){room, NX_f32, 0};
}

static inline const float *row_read(const norm_row *row, int64_t j, int64_t count, float *buffer) {
  return vec_read(row->x, row->type, row->start + j, count, buffer);
}

typedef struct norm_sums {
  double plain, square;
} norm_sums;

/* Sums of x - shift and of its square over a row. */
static norm_sums row_sums(const norm_row *x, int64_t n, float shift) {
  vec_buffer buffer;
  norm_sums sums = {0, 0};
  for (int64_t j = 0; j < n; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, n);
    const float *p = row_read(x, j, count, buffer);
    float plain = 0, square = 0;
#pragma omp simd reduction(+ : plain, square)
    for (int64_t i = 0; i < count; i++) {
      float centred = p[i] - shift;
      plain += centred;
      square += centred * centred;
    }
    sums.plain += (double)plain;
    sums.square += (double)square;
  }
  return sums;
}

typedef struct norm_forward {
  const void *x, *g, *b; /* b may be NULL */
  void *y;
  nx_dtype x_type, g_type, b_type, y_type;
  float centre; /* of the gains: g + centre multiplies */
  int64_t n;
} norm_forward;

/* Gains and biases, widened for all rows; the second is not read where there are no biases. */
static void vectors_open(const norm_forward *f, row_room rooms[2], norm_row vectors[2]) {
  vectors[0] = row_open(f->g, f->g_type, 0, f->n, rooms[0]);
  if (f->b) vectors[1] = row_open(f->b, f->b_type, 0, f->n, rooms[1]);
}

/* y = (x - mean) rstd g (+ b) */
static void row_apply(const norm_forward *f, const norm_row *from, const norm_row *vectors, int64_t row,
                      float mean, float rstd) {
  vec_buffer x_buffer, g_buffer, b_buffer, y_buffer;
  for (int64_t j = 0; j < f->n; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, f->n), start = row * f->n + j;
    const float *x = row_read(from, j, count, x_buffer), *g = row_read(vectors, j, count, g_buffer);
    float *y = vec_target(f->y, f->y_type, start, y_buffer);
    if (f->b) {
      const float *b = row_read(vectors + 1, j, count, b_buffer);
#pragma omp simd
      for (int64_t i = 0; i < count; i++) y[i] = (x[i] - mean) * rstd * (g[i] + f->centre) + b[i];
    } else {
#pragma omp simd
      for (int64_t i = 0; i < count; i++) y[i] = (x[i] - mean) * rstd * (g[i] + f->centre);
    }
    vec_commit(f->y, f->y_type, start, count, y);
  }
}

static norm_forward forward_of(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0), *y = cpu_out(kernel, 0);
  norm_forward f = {.x = cpu_in_at(kernel, frame, 0),
                    .g = cpu_in_at(kernel, frame, 1),
                    .y = cpu_out_at(kernel, frame, 0),
                    .x_type = x->dtype,
                    .g_type = cpu_in(kernel, 1)->dtype,
                    .y_type = y->dtype,
                    .centre = cpu_int(kernel, frame, NX_rms_norm_zero_centred) ? 1 : 0,
                    .n = cpu_columns(x)};
  if (kernel->operator.n_in> 2) {
    f.b = cpu_in_at(kernel, frame, 2);
    f.b_type = cpu_in(kernel, 2)->dtype;
  }
  return f;
}

void CPU_NAME(cpu_rms_norm)(const nxk_kernel *kernel, const nxk_frame *frame) {
  norm_forward f = forward_of(kernel, frame);
  float *rstd = cpu_out_at(kernel, frame, 1);
  double epsilon = cpu_real(kernel, NX_rms_norm_epsilon);
  int64_t n_rows = cpu_rows(cpu_in(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    row_room rooms[2], room;
    norm_row vectors[2];
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    vectors_open(&f, rooms, vectors);
    for (int64_t row = span.begin; row < span.end; row++) {
      norm_row x = row_open(f.x, f.x_type, row, f.n, room);
      norm_sums sums = row_sums(&x, f.n, 0);
      rstd[row] = (float)nxk_rstd(sums.square, sums.square / (double)f.n, epsilon);
      row_apply(&f, &x, vectors, row, 0, rstd[row]);
    }
  }
}

void CPU_NAME(cpu_layer_norm)(const nxk_kernel *kernel, const nxk_frame *frame) {
  norm_forward f = forward_of(kernel, frame);
  float *mean = cpu_out_at(kernel, frame, 1), *rstd = cpu_out_at(kernel, frame, 2);
  double epsilon = cpu_real(kernel, NX_layer_norm_epsilon);
  int64_t n_rows = cpu_rows(cpu_in(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    row_room rooms[2], room;
    norm_row vectors[2];
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    vectors_open(&f, rooms, vectors);
    for (int64_t row = span.begin; row < span.end; row++) {
      norm_row x = row_open(f.x, f.x_type, row, f.n, room);
      float about = (float)(row_sums(&x, f.n, 0).plain / (double)f.n);
      norm_sums sums = row_sums(&x, f.n, about);
      double rest = sums.plain / (double)f.n;
      mean[row] = (float)((double)about + rest);
      rstd[row] = (float)nxk_rstd(sums.square, sums.square / (double)f.n - rest * rest, epsilon);
      row_apply(&f, &x, vectors, row, mean[row], rstd[row]);
    }
  }
}

typedef struct norm_backward {
  const void *dy, *x, *g;
  void *dx;
  nx_dtype dy_type, x_type, g_type, dx_type;
  const float *mean; /* NULL: RMSNorm */
  const float *rstd;
  float centre; /* of the gains */
  int64_t n;
} norm_backward;

/* What a row of the gradient is made of. */
typedef struct backward_rows {
  norm_row dy, x, g;
} backward_rows;

/* Sums over a row of dy g and dy g xhat, where xhat = (x - mean) rstd; adds dy xhat to dg and dy to db. */
static norm_sums row_gradient_sums(const norm_backward *b, const backward_rows *r, int64_t row, float mean,
                                   float *dg, float *db) {
  vec_buffer dy_buffer, x_buffer, g_buffer;
  norm_sums sums = {0, 0};
  float rstd = b->rstd[row];
  for (int64_t j = 0; j < b->n; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, b->n);
    const float *dy = row_read(&r->dy, j, count, dy_buffer), *x = row_read(&r->x, j, count, x_buffer),
                *g = row_read(&r->g, j, count, g_buffer);
    float plain = 0, product = 0;
#pragma omp simd reduction(+ : plain, product)
    for (int64_t i = 0; i < count; i++) {
      float scaled = dy[i] * (g[i] + b->centre), hat = (x[i] - mean) * rstd;
      plain += scaled;
      product += scaled * hat;
      dg[j + i] += dy[i] * hat;
    }
    if (db) {
#pragma omp simd
      for (int64_t i = 0; i < count; i++) db[j + i] += dy[i];
    }
    sums.plain += (double)plain;
    sums.square += (double)product;
  }
  return sums;
}

/* dx = rstd (dy g - a - xhat c) */
static void row_gradient(const norm_backward *b, const backward_rows *r, int64_t row, float mean, float a,
                         float c) {
  vec_buffer dy_buffer, x_buffer, g_buffer, dx_buffer;
  float rstd = b->rstd[row];
  for (int64_t j = 0; j < b->n; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, b->n), start = row * b->n + j;
    const float *dy = row_read(&r->dy, j, count, dy_buffer), *x = row_read(&r->x, j, count, x_buffer),
                *g = row_read(&r->g, j, count, g_buffer);
    float *dx = vec_target(b->dx, b->dx_type, start, dx_buffer);
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
      dx[i] = rstd * (dy[i] * (g[i] + b->centre) - a - (x[i] - mean) * rstd * c);
    vec_commit(b->dx, b->dx_type, start, count, dx);
  }
}

/* out[j] (+)= sum over threads of parts[thread][j], for a thread's columns. */
static void columns_finish(void *out, nx_dtype type, const float *parts, int64_t stride, int64_t n_parts,
                           cpu_span span, bool accumulate) {
  vec_buffer buffer, sum;
  for (int64_t j = span.begin; j < span.end; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, span.end);
    const float *old = vec_read(out, type, j, count, buffer);
    if (accumulate) memcpy(sum, old, (size_t)count * sizeof *sum);
    else memset(sum, 0, sizeof sum);
    for (int64_t part = 0; part < n_parts; part++) {
      const float *p = parts + part * stride + j;
#pragma omp simd
      for (int64_t i = 0; i < count; i++) sum[i] += p[i];
    }
    vec_copy(out, type, j, sum, NX_f32, 0, count);
  }
}

static void backward_run(const nxk_kernel *kernel, const nxk_frame *frame, const norm_backward *b,
                         bool accumulate) {
  int64_t n_rows = cpu_rows(cpu_in(kernel, 1)), n_threads = kernel->device->n_threads;
  int64_t stride = (b->n + 15) / 16 * 16;
  uint32_t n_out = kernel->operator.n_out;
  const nxk_tensor *dg = n_out > 1 ? cpu_out(kernel, 1) : NULL, *db = n_out > 2 ? cpu_out(kernel, 2) : NULL;
  float *dg_parts = (float *)kernel->device->scratch, *db_parts = db ? dg_parts + n_threads * stride : NULL;
  void *dg_out = dg ? cpu_out_at(kernel, frame, 1) : NULL, *db_out = db ? cpu_out_at(kernel, frame, 2) : NULL;
#pragma omp parallel num_threads(n_threads)
  {
    int64_t thread = omp_get_thread_num();
    float *dg_part = dg_parts + thread * stride, *db_part = db ? db_parts + thread * stride : NULL;
    memset(dg_part, 0, (size_t)stride * sizeof *dg_part);
    if (db) memset(db_part, 0, (size_t)stride * sizeof *db_part);
    row_room rooms[3];
    backward_rows r = {.g = row_open(b->g, b->g_type, 0, b->n, rooms[0])};
    cpu_span rows = cpu_share(n_rows, 1, thread, n_threads);
    for (int64_t row = rows.begin; row < rows.end; row++) {
      float mean = b->mean ? b->mean[row] : 0;
      r.dy = row_open(b->dy, b->dy_type, row, b->n, rooms[1]);
      r.x = row_open(b->x, b->x_type, row, b->n, rooms[2]);
      norm_sums sums = row_gradient_sums(b, &r, row, mean, dg_part, db_part);
      float a = b->mean ? (float)(sums.plain / (double)b->n) : 0;
      row_gradient(b, &r, row, mean, a, (float)(sums.square / (double)b->n));
    }
#pragma omp barrier
    cpu_span columns = cpu_share(b->n, NORM_UNIT, thread, n_threads);
    if (dg) columns_finish(dg_out, dg->dtype, dg_parts, stride, n_threads, columns, accumulate);
    if (db) columns_finish(db_out, db->dtype, db_parts, stride, n_threads, columns, accumulate);
  }
}

bool CPU_NAME(cpu_norm_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return CPU_NAME(cpu_bind_real)(kernel, fault) && cpu_reserve_said(kernel, fault);
}

static norm_backward backward_of(const nxk_kernel *kernel, const nxk_frame *frame) {
  return (norm_backward){.dy = cpu_in_at(kernel, frame, 0),
                         .x = cpu_in_at(kernel, frame, 1),
                         .g = cpu_in_at(kernel, frame, 2),
                         .dx = cpu_out_at(kernel, frame, 0),
                         .dy_type = cpu_in(kernel, 0)->dtype,
                         .x_type = cpu_in(kernel, 1)->dtype,
                         .g_type = cpu_in(kernel, 2)->dtype,
                         .dx_type = cpu_out(kernel, 0)->dtype,
                         .centre = cpu_int(kernel, frame, NX_rms_norm_grad_zero_centred) ? 1 : 0,
                         .n = cpu_columns(cpu_in(kernel, 1))};
}

void CPU_NAME(cpu_rms_norm_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  norm_backward b = backward_of(kernel, frame);
  b.rstd = cpu_in_at(kernel, frame, 3);
  backward_run(kernel, frame, &b, cpu_int(kernel, frame, NX_rms_norm_grad_accumulate));
}

void CPU_NAME(cpu_layer_norm_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  norm_backward b = backward_of(kernel, frame);
  b.mean = cpu_in_at(kernel, frame, 3);
  b.rstd = cpu_in_at(kernel, frame, 4);
  backward_run(kernel, frame, &b, cpu_int(kernel, frame, NX_layer_norm_grad_accumulate));
}
