/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy over a shard of the vocabulary. Each row of logits is read once for its statistics and once
 * for its gradient; max and sum are kept together, block by block, so that no second pass looks for the
 * max. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/lanes.h"

#include <float.h>

bool CPU_NAME(cpu_ce_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return cpu_is_real(cpu_in(kernel, 0)) && cpu_in(kernel, 1)->dtype == NX_i32;
}

/* Logits that are looked at together, the max being compared once for all of them; how many blocks are summed
 * in fp32; and how many bytes ahead memory is asked for a block: one waits for its max, so that a core alone
 * does not look far enough. */
enum { CE_BLOCK = 128, CE_PIECE = 32 * CE_BLOCK, CE_AHEAD = 2048 };

/* A block as fp32, where it is not read in place: capped, and minus infinity behind its n logits. */
static void block_read(float *room, const void *x, nx_dtype type, int64_t at, int64_t n, float cap) {
  for (int64_t i = n; i < CE_BLOCK; i++) room[i] = -INFINITY;
  vec_copy(room, NX_f32, 0, x, type, at, n);
  if (cap > 0) lanes_cap(room, n, cap);
}

static float element(const void *x, nx_dtype type, int64_t index, float cap) {
  float room[CE_BLOCK];
  block_read(room, x, type, index, 1, cap);
  return room[0];
}

static bool read_in_place(nx_dtype type, float cap) {
  return cap == 0 && (type == NX_bf16 || type == NX_f32);
}

typedef struct ce_row {
  float max;    /* the least finite number before there is one */
  double sum;   /* of exp(x - max), but for */
  lanes recent; /* what the last blocks add */
} ce_row;

static void raise_max(ce_row *row, float max) {
  double less = exp((double)row->max - (double)max);
  row->sum *= less;
  row->recent *= lanes_of((float)less);
  row->max = max;
}

INLINED void add_block(ce_row *row, const void *x, const nx_dtype type, int64_t at) {
  lanes max = lanes_of(row->max), most = max, sum = lanes_of(0);
  uintptr_t ahead = (uintptr_t)vec_at(x, type, at) + CE_AHEAD;
  for (int i = 0; i < CE_BLOCK; i += LANES) {
    __builtin_prefetch((const void *)(ahead + (uintptr_t)i * (type == NX_f32 ? 4 : 2)));
    most = lanes_max(lanes_read(x, type, at + i), most);
  }
  if (lanes_any_above(most, max)) {
    raise_max(row, lanes_most(most));
    max = lanes_of(row->max);
  }
  for (int i = 0; i < CE_BLOCK; i += LANES) sum += lanes_exp(lanes_read(x, type, at + i) - max);
  row->recent += sum;
}

static void add_piece(ce_row *row, const void *x, nx_dtype type, int64_t start, int64_t n, float cap) {
  float room[CE_BLOCK];
  int64_t whole = read_in_place(type, cap) ? n / CE_BLOCK * CE_BLOCK : 0;
  row->recent = lanes_of(0);
  if (type == NX_bf16)
    for (int64_t j = 0; j < whole; j += CE_BLOCK) add_block(row, x, NX_bf16, start + j);
  else
    for (int64_t j = 0; j < whole; j += CE_BLOCK) add_block(row, x, NX_f32, start + j);
  for (int64_t j = whole; j < n; j += CE_BLOCK) {
    block_read(room, x, type, start + j, n - j < CE_BLOCK ? n - j : CE_BLOCK, cap);
    add_block(row, room, NX_f32, 0);
  }
  row->sum += (double)lanes_sum(row->recent);
}

/* Where all logits are minus infinity, how far below the max they stand is no number. */
static ce_row row_stats(const void *x, nx_dtype type, int64_t start, int64_t n, float cap) {
  ce_row row = {.max = -FLT_MAX};
  for (int64_t j = 0; j < n; j += CE_PIECE)
    add_piece(&row, x, type, start + j, n - j < CE_PIECE ? n - j : CE_PIECE, cap);
  if (row.sum > 0 || isnan(row.sum)) return row;
  return (ce_row){.max = -INFINITY, .sum = n ? NAN : 0};
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
  double *loss = cpu_out_at(kernel, frame, 1), total = 0, z = cpu_real(kernel, NX_ce_loss_z);
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
    total += (weights ? (double)weights[t] : 1) * (row_lse - label + z * row_lse * row_lse);
  }
  *loss = (cpu_int(kernel, frame, NX_ce_loss_accumulate) ? *loss : 0) + total;
}

typedef struct ce_gradient {
  const void *x;
  void *y;
  nx_dtype x_type, y_type;
  int64_t n, n_valid;
  float cap, z;
} ce_gradient;

/* Gradients that are written together where they replace their logits or are narrowed: long enough for whole
 * lines of memory, and short enough that a core reads the next ones meanwhile. */
enum { CE_GRAD_BLOCK = 2 * CE_BLOCK };

INLINED void grad_block(float *y, const void *x, const nx_dtype type, int64_t at, int64_t n, float lse,
                        float scale) {
  const lanes less = lanes_of(lse), times = lanes_of(scale);
  for (int64_t i = 0; i < n; i += LANES)
    lanes_write_f32(y + i, times * lanes_exp(lanes_read(x, type, at + i) - less));
}

/* 1 at a logit that is not capped. */
static float cap_slope(float logit, float inverse) {
  float bent = logit * inverse;
  return 1 - bent * bent;
}

static void row_gradient(const ce_gradient *g, int64_t row, float lse, float slope, int64_t label) {
  float room[CE_BLOCK], slopes[CE_GRAD_BLOCK], inverse = g->cap > 0 ? 1 / g->cap : 0;
  float scale = slope * (1 + 2 * g->z * lse);
  int64_t start = row * g->n, n = g->n_valid;
  int64_t whole = read_in_place(g->x_type, g->cap) ? n / CE_BLOCK * CE_BLOCK : 0;
  bool local = label >= 0 && label < n;
  float logit = local ? element(g->x, g->x_type, start + label, g->cap) : 0; /* y may be x */
  for (int64_t j = 0, count; j < whole; j += count) {
    count = whole - j < CE_GRAD_BLOCK ? whole - j : CE_GRAD_BLOCK;
    float *target = g->y == g->x ? slopes : vec_target(g->y, g->y_type, start + j, slopes);
    if (g->x_type == NX_bf16)
      grad_block(target, g->x, NX_bf16, start + j, count, lse, scale);
    else
      grad_block(target, g->x, NX_f32, start + j, count, lse, scale);
    if (target == slopes) vec_copy(g->y, g->y_type, start + j, slopes, NX_f32, 0, count);
  }
  for (int64_t j = whole; j < n; j += CE_BLOCK) {
    int64_t count = n - j < CE_BLOCK ? n - j : CE_BLOCK;
    block_read(room, g->x, g->x_type, start + j, count, g->cap);
    grad_block(slopes, room, NX_f32, 0, CE_BLOCK, lse, scale);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) slopes[i] *= cap_slope(room[i], inverse);
    vec_copy(g->y, g->y_type, start + j, slopes, NX_f32, 0, count);
  }
  memset(vec_at(g->y, g->y_type, start + n), 0, (size_t)(g->n - n) * (g->y_type == NX_f32 ? 4 : 2));
  if (!local) return;
  float at_label = (scale * one_exp(logit - lse) - slope) * cap_slope(logit, inverse);
  vec_copy(g->y, g->y_type, start + label, &at_label, NX_f32, 0, 1);
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
                   (float)cpu_real(kernel, NX_ce_grad_soft_cap),
                   (float)cpu_real(kernel, NX_ce_grad_z)};
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
