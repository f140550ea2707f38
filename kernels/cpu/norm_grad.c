/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of RMSNorm and LayerNorm. Rows go to threads in order; a thread sums its rows' share of dg and db
 * in scratch, and the threads' sums are added in thread order. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/norm_rows.h"

enum { NORM_UNIT = 64 /* columns that one thread finishes at a time */ };

typedef struct norm_backward {
  const void *dy, *x;
  void *dx;
  nx_dtype dy_type, x_type, dx_type;
  norm_vector g;
  const float *mean; /* NULL: RMSNorm */
  const float *rstd;
  int64_t n;
} norm_backward;

/* Some columns of a row, with xhat = (x - mean) rstd. */
typedef struct norm_chunk {
  const void *dy, *x;
  const float *g;
  void *dx;
  nx_dtype dx_type;
  float *wide, *hat; /* dy and xhat as fp32 */
  float *dg, *db;    /* sums; db is NULL where nobody asks for them */
  int64_t n;
  float mean, rstd;
} norm_chunk;

/* Sums dy g and dy g xhat; adds dy xhat to dg and dy to db. */
INLINED void sums_of_lanes(lanes *plain, lanes *product, const norm_chunk c, const nx_dtype dy_type,
                           const nx_dtype x_type, int64_t i, int64_t n) {
  ask_ahead(c.dy, dy_type, i), ask_ahead(c.x, x_type, i), ask_to_write(c.dx, c.dx_type, i);
  lanes dy = lanes_first(c.dy, dy_type, i, n, 0), scaled = dy * lanes_first(c.g, NX_f32, i, n, 0);
  lanes hat = (lanes_first(c.x, x_type, i, n, c.mean) - lanes_of(c.mean)) * lanes_of(c.rstd);
  *plain += scaled;
  *product += scaled * hat;
  lanes_keep(c.dg, NX_f32, i, n, lanes_first(c.dg, NX_f32, i, n, 0) + dy * hat);
  if (c.db) lanes_keep(c.db, NX_f32, i, n, lanes_first(c.db, NX_f32, i, n, 0) + dy);
  lanes_keep(c.wide, NX_f32, i, n, dy);
  lanes_keep(c.hat, NX_f32, i, n, hat);
}

INLINED void sums_of_chunk(norm_sums *sums, const norm_chunk c, const nx_dtype dy_type,
                           const nx_dtype x_type) {
  lanes plain[2] = {lanes_of(0), lanes_of(0)}, product[2] = {lanes_of(0), lanes_of(0)};
  int64_t i = 0;
  for (; i + 2 * LANES <= c.n; i += 2 * LANES)
    for (int k = 0; k < 2; k++)
      sums_of_lanes(&plain[k], &product[k], c, dy_type, x_type, i + k * LANES, LANES);
  for (; i < c.n; i += LANES) sums_of_lanes(&plain[0], &product[0], c, dy_type, x_type, i, c.n - i);
  sums->plain += (double)lanes_sum(plain[0] + plain[1]);
  sums->square += (double)lanes_sum(product[0] + product[1]);
}

/* f16 is widened before. */
static void chunk_sums(norm_sums *sums, norm_chunk c, nx_dtype dy_type, nx_dtype x_type) {
  vec_buffer dy_buffer, x_buffer;
  if (dy_type == NX_f16) c.dy = vec_read(c.dy, dy_type, 0, c.n, dy_buffer);
  if (x_type == NX_f16) c.x = vec_read(c.x, x_type, 0, c.n, x_buffer);
  if (dy_type == NX_bf16 && x_type == NX_bf16) sums_of_chunk(sums, c, NX_bf16, NX_bf16);
  else if (dy_type == NX_bf16) sums_of_chunk(sums, c, NX_bf16, NX_f32);
  else if (x_type == NX_bf16) sums_of_chunk(sums, c, NX_f32, NX_bf16);
  else sums_of_chunk(sums, c, NX_f32, NX_f32);
}

/* dx = rstd (dy g - a - xhat c) */
INLINED void gradient_lanes(void *dx, const nx_dtype type, const norm_chunk k, int64_t i, int64_t n, float a,
                            float c) {
  lanes scaled = lanes_first(k.wide, NX_f32, i, n, 0) * lanes_first(k.g, NX_f32, i, n, 0) - lanes_of(a);
  lanes_keep(dx, type, i, n, lanes_of(k.rstd) * (scaled - lanes_first(k.hat, NX_f32, i, n, 0) * lanes_of(c)));
}

INLINED void chunk_gradient(void *dx, const nx_dtype type, const norm_chunk k, float a, float c) {
  int64_t i = 0;
  for (; i + LANES <= k.n; i += LANES) gradient_lanes(dx, type, k, i, LANES, a, c);
  if (i < k.n) gradient_lanes(dx, type, k, i, k.n - i, a, c);
}

/* Rows that are too long for the rooms, whose beginning they hold then. */
static void chunk_again(const norm_chunk *c, nx_dtype dy_type, nx_dtype x_type) {
  vec_copy(c->wide, NX_f32, 0, c->dy, dy_type, 0, c->n);
  vec_copy(c->hat, NX_f32, 0, c->x, x_type, 0, c->n);
#pragma omp simd
  for (int64_t i = 0; i < c->n; i++) c->hat[i] = (c->hat[i] - c->mean) * c->rstd;
}

/* What a thread works in, and its sums of all its rows. */
typedef struct norm_rooms {
  float *dg, *db, *wide, *hat;
} norm_rooms;

static norm_chunk chunk_of(const norm_backward *b, const norm_rooms *rooms, int64_t row, int64_t j,
                           float *g_buffer) {
  int64_t n = vec_chunk_of(j, b->n), at = row * b->n + j, in_room = b->n > ROW_ROOM ? 0 : j;
  return (norm_chunk){.dy = vec_at(b->dy, b->dy_type, at),
                      .x = vec_at(b->x, b->x_type, at),
                      .g = vector_read(&b->g, j, n, g_buffer),
                      .dx = vec_at(b->dx, b->dx_type, at),
                      .dx_type = b->dx_type,
                      .wide = rooms->wide + in_room,
                      .hat = rooms->hat + in_room,
                      .dg = rooms->dg + j,
                      .db = rooms->db ? rooms->db + j : NULL,
                      .n = n,
                      .mean = b->mean ? b->mean[row] : 0,
                      .rstd = b->rstd[row]};
}

static void row_gradient(const norm_backward *b, const norm_rooms *rooms, int64_t row) {
  vec_buffer g_buffer, dx_buffer;
  norm_sums sums = {0, 0};
  for (int64_t j = 0; j < b->n; j += VEC_CHUNK)
    chunk_sums(&sums, chunk_of(b, rooms, row, j, g_buffer), b->dy_type, b->x_type);
  float a = b->mean ? (float)(sums.plain / (double)b->n) : 0, c = (float)(sums.square / (double)b->n);
  for (int64_t j = 0; j < b->n; j += VEC_CHUNK) {
    norm_chunk k = chunk_of(b, rooms, row, j, g_buffer);
    if (b->n > ROW_ROOM) chunk_again(&k, b->dy_type, b->x_type);
    if (lanes_round_to(b->dx_type)) {
      chunk_gradient(k.dx, NX_bf16, k, a, c);
      continue;
    }
    float *dx = vec_target(k.dx, b->dx_type, 0, dx_buffer);
    chunk_gradient(dx, NX_f32, k, a, c);
    vec_commit(k.dx, b->dx_type, 0, k.n, dx);
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

static void backward_run(const nxk_kernel *kernel, const nxk_frame *frame, const norm_backward *all,
                         bool accumulate) {
  int64_t n_rows = cpu_rows(cpu_in(kernel, 1)), n_threads = kernel->device->n_threads;
  int64_t stride = (all->n + 15) / 16 * 16;
  uint32_t n_out = kernel->operator.n_out;
  const nxk_tensor *dg = n_out > 1 ? cpu_out(kernel, 1) : NULL, *db = n_out > 2 ? cpu_out(kernel, 2) : NULL;
  float *dg_parts = (float *)kernel->device->scratch, *db_parts = db ? dg_parts + n_threads * stride : NULL;
  void *dg_out = dg ? cpu_out_at(kernel, frame, 1) : NULL, *db_out = db ? cpu_out_at(kernel, frame, 2) : NULL;
#pragma omp parallel num_threads(n_threads)
  {
    int64_t thread = omp_get_thread_num();
    row_room g, wide, hat;
    norm_rooms rooms = {dg_parts + thread * stride, db ? db_parts + thread * stride : NULL, wide, hat};
    memset(rooms.dg, 0, (size_t)stride * sizeof *rooms.dg);
    if (db) memset(rooms.db, 0, (size_t)stride * sizeof *rooms.db);
    norm_backward b = *all;
    b.g = vector_open(b.g.x, b.g.type, b.g.plus, b.n, g);
    cpu_span rows = cpu_share(n_rows, 1, thread, n_threads);
    for (int64_t row = rows.begin; row < rows.end; row++) row_gradient(&b, &rooms, row);
#pragma omp barrier
    cpu_span columns = cpu_share(b.n, NORM_UNIT, thread, n_threads);
    if (dg) columns_finish(dg_out, dg->dtype, dg_parts, stride, n_threads, columns, accumulate);
    if (db) columns_finish(db_out, db->dtype, db_parts, stride, n_threads, columns, accumulate);
  }
}

bool CPU_NAME(cpu_norm_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return CPU_NAME(cpu_bind_real)(kernel, fault) && cpu_reserve_said(kernel, fault);
}

static norm_backward backward_of(const nxk_kernel *kernel, const nxk_frame *frame) {
  float centre = cpu_int(kernel, frame, NX_rms_norm_grad_zero_centred) ? 1 : 0;
  return (norm_backward){.dy = cpu_in_at(kernel, frame, 0),
                         .x = cpu_in_at(kernel, frame, 1),
                         .dx = cpu_out_at(kernel, frame, 0),
                         .dy_type = cpu_in(kernel, 0)->dtype,
                         .x_type = cpu_in(kernel, 1)->dtype,
                         .dx_type = cpu_out(kernel, 0)->dtype,
                         .g = {cpu_in_at(kernel, frame, 2), cpu_in(kernel, 2)->dtype, centre},
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
