/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy over a shard of the vocabulary. Each row of logits is read once for its statistics and once
 * for its gradient; max and sum are kept together, chunk by chunk, so that no second pass looks for the
 * max. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"

bool CPU_NAME(cpu_ce_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_in(kernel, 1)->dtype == NX_i32;
}

typedef struct ce_row {
  float max;
  double sum; /* of exp(x - max) */
} ce_row;

/* Logits as they are read: a chunk of them capped, into `room`; in place where they stay. */
static const float *capped(const float *x, int64_t n, float cap, float *room) {
  if (cap == 0) return x;
  float inverse = 1 / cap;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) room[i] = cap * vec_tanh(x[i] * inverse);
  return room;
}

static ce_row row_stats(const void *x, nx_dtype type, int64_t start, int64_t n, float cap) {
  vec_buffer buffer, room;
  ce_row row = {-INFINITY, 0};
  for (int64_t j = 0; j < n; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, n);
    const float *p = capped(vec_read(x, type, start + j, count, buffer), count, cap, room);
    float max = row.max, sum = 0;
#pragma omp simd reduction(max : max)
    for (int64_t i = 0; i < count; i++) max = p[i] > max ? p[i] : max;
    if (max > row.max) row.sum *= exp((double)row.max - (double)max);
    row.max = max;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) sum += vec_exp(p[i] - max);
    row.sum += (double)sum;
  }
  return row;
}

static float element(const void *x, nx_dtype type, int64_t index, float cap) {
  float value, room;
  return *capped(vec_read(x, type, index, 1, &value), 1, cap, &room);
}

void CPU_NAME(cpu_ce_stats)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *logits = cpu_in(kernel, 0);
  const void *x = cpu_in_at(kernel, frame, 0);
  const int32_t *labels = cpu_in_at(kernel, frame, 1);
  float *stats = cpu_out_at(kernel, frame, 0);
  int64_t row_start = cpu_int(kernel, frame, NX_ce_stats_row_start);
  int64_t n_valid = cpu_int(kernel, frame, NX_ce_stats_n_valid);
  float cap = (float)cpu_real(kernel, NX_ce_stats_soft_cap);
  int64_t n_rows = cpu_rows(logits), n = cpu_columns(logits), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t t = span.begin; t < span.end; t++) {
      ce_row row = row_stats(x, logits->dtype, t * n, n_valid, cap);
      int64_t label = labels[t] - row_start;
      stats[3 * t] = row.max;
      stats[3 * t + 1] = (float)row.sum;
      stats[3 * t + 2] = label >= 0 && label < n_valid ? element(x, logits->dtype, t * n + label, cap) : 0;
    }
  }
}

bool CPU_NAME(cpu_ce_loss_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)kernel;
  (void)fault;
  return true;
}

/* Few numbers: one thread, fp64, in the order of tokens. */
void CPU_NAME(cpu_ce_loss)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const float *stats = cpu_in_at(kernel, frame, 0);
  const float *weights = kernel->operator.n_in > 1 ? cpu_in_at(kernel, frame, 1) : NULL;
  float *lse = cpu_out_at(kernel, frame, 0);
  double *loss = cpu_out_at(kernel, frame, 1), total = 0;
  int64_t n_shards = cpu_in(kernel, 0)->dims[0], n_rows = cpu_in(kernel, 0)->dims[1];
  for (int64_t t = 0; t < n_rows; t++) {
    double max = -INFINITY, sum = 0, label = 0;
    for (int64_t shard = 0; shard < n_shards; shard++) {
      const float *row = stats + 3 * (shard * n_rows + t);
      if ((double)row[0] > max) max = (double)row[0];
      label += (double)row[2];
    }
    for (int64_t shard = 0; shard < n_shards; shard++) {
      const float *row = stats + 3 * (shard * n_rows + t);
      if (row[1] != 0) sum += (double)row[1] * exp((double)row[0] - max);
    }
    double row_lse = max + log(sum);
    lse[t] = (float)row_lse;
    total += (weights ? (double)weights[t] : 1) * (row_lse - label);
  }
  *loss = (cpu_int(kernel, frame, NX_ce_loss_accumulate) ? *loss : 0) + total;
}

typedef struct ce_gradient {
  const void *x;
  void *y;
  nx_dtype x_type, y_type;
  int64_t n, n_valid;
  float cap;
} ce_gradient;

static void row_gradient(const ce_gradient *g, int64_t row, float lse, float scale, int64_t label) {
  vec_buffer x_buffer, room, y_buffer;
  float inverse = g->cap > 0 ? 1 / g->cap : 0;
  for (int64_t j = 0; j < g->n; j += VEC_CHUNK) {
    int64_t count = vec_chunk_of(j, g->n), start = row * g->n + j;
    int64_t n_live = g->n_valid - j < 0 ? 0 : g->n_valid - j < count ? g->n_valid - j : count;
    const float *p = capped(vec_read(g->x, g->x_type, start, count, x_buffer), n_live, g->cap, room);
    float *r = vec_target(g->y, g->y_type, start, y_buffer);
    float logit = label >= j && label < j + n_live ? p[label - j] : 0, at_label = vec_exp(logit - lse);
    float slope_at_label = 1 - logit * inverse * logit * inverse;
#pragma omp simd
    for (int64_t i = 0; i < n_live; i++) {
      float bent = p[i] * inverse;
      r[i] = scale * vec_exp(p[i] - lse) * (1 - bent * bent);
    }
    for (int64_t i = n_live; i < count; i++) r[i] = 0;
    if (label >= j && label < j + n_live) r[label - j] = scale * (at_label - 1) * slope_at_label;
    vec_commit(g->y, g->y_type, start, count, r);
  }
}

bool CPU_NAME(cpu_ce_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return CPU_NAME(cpu_ce_bind)(kernel, fault) && cpu_is_real(cpu_out(kernel, 0));
}

void CPU_NAME(cpu_ce_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *logits = cpu_in(kernel, 0);
  const int32_t *labels = cpu_in_at(kernel, frame, 1);
  const float *lse = cpu_in_at(kernel, frame, 2);
  int64_t row_start = cpu_int(kernel, frame, NX_ce_grad_row_start);
  ce_gradient g = {cpu_in_at(kernel, frame, 0),
                   cpu_out_at(kernel, frame, 0),
                   logits->dtype,
                   cpu_out(kernel, 0)->dtype,
                   cpu_columns(logits),
                   cpu_int(kernel, frame, NX_ce_grad_n_valid),
                   (float)cpu_real(kernel, NX_ce_grad_soft_cap)};
  const float *weights = kernel->operator.n_in > 3 ? cpu_in_at(kernel, frame, 3) : NULL;
  float scale = (float)cpu_real(kernel, NX_ce_grad_scale);
  int64_t n_rows = cpu_rows(logits), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n_rows, 1, omp_get_thread_num(), n_threads);
    for (int64_t t = span.begin; t < span.end; t++)
      row_gradient(&g, t, lse[t], weights ? scale * weights[t] : scale, labels[t] - row_start);
  }
}
