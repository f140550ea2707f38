/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of experts: routing, and the way of tokens to experts and back.
 *
 * What decides (choice, capacity) is kernels/moe.h, as in ref; threads share the tokens of what is computed
 * for each alone. Rows are copied or summed whole, by the thread that has the row or the token. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"
#include "kernels/moe.h"

/* ---- routing ---- */

/* Scratch of a route: what the whole micro-batch needs, then a row of doubles for each thread. */
typedef struct route_scratch {
  double *all, *columns; /* [n,E], [2E]; NULL where logits choose */
  double *correction;    /* [E] */
  float *weights;        /* [n,k] */
  int32_t *chosen;       /* [n,k] */
  nxk_moe_claim *claims; /* [capacity] */
  double *rows;          /* [threads][3 E + k] */
  double *sums;          /* [threads][2]: the losses */
  uint64_t n_bytes;
} route_scratch;

static void *take(char *base, uint64_t *at, uint64_t n_bytes) {
  void *taken = base ? base + *at : NULL;
  *at += cpu_align(n_bytes);
  return taken;
}

static route_scratch route_scratch_of(const nxk_device *device, const nxk_moe *moe, char *base) {
  uint64_t n = (uint64_t)(moe->n_sequences * moe->sequence), e = (uint64_t)moe->n_experts,
           k = (uint64_t)moe->top_k;
  route_scratch s = {0};
  if (moe->sinkhorn) {
    s.all = take(base, &s.n_bytes, n * e * sizeof *s.all);
    s.columns = take(base, &s.n_bytes, 2 * e * sizeof *s.columns);
  }
  s.correction = take(base, &s.n_bytes, e * sizeof *s.correction);
  s.weights = take(base, &s.n_bytes, n * k * sizeof *s.weights);
  s.chosen = take(base, &s.n_bytes, n * k * sizeof *s.chosen);
  s.claims = take(base, &s.n_bytes, (uint64_t)moe->capacity * sizeof *s.claims);
  s.rows = take(base, &s.n_bytes, device->n_threads * (3 * e + k) * sizeof *s.rows);
  s.sums = take(base, &s.n_bytes, device->n_threads * 2 * sizeof *s.sums);
  return s;
}

static nxk_moe route_form(const nxk_kernel *kernel) {
  const nxk_attr *attrs = kernel->operator.attrs;
  const int64_t *all = cpu_in(kernel, 1)->dims;
  return (nxk_moe){.n_sequences = all[0],
                   .sequence = all[1],
                   .n_experts = all[2],
                   .top_k = attrs[NX_moe_route_top_k].integer,
                   .score = attrs[NX_moe_route_score].integer,
                   .normalize = attrs[NX_moe_route_normalize].integer,
                   .scale = attrs[NX_moe_route_scale].real,
                   .sinkhorn = attrs[NX_moe_route_sinkhorn].integer,
                   .tolerance = attrs[NX_moe_route_tolerance].real,
                   .capacity = attrs[NX_moe_route_capacity].integer,
                   .drop = attrs[NX_moe_route_drop].integer,
                   .zigzag = attrs[NX_moe_route_zigzag].integer,
                   .groups = attrs[NX_moe_route_groups].integer,
                   .top_groups = attrs[NX_moe_route_top_groups].integer,
                   .group_best = attrs[NX_moe_route_group_best].integer,
                   .by_logits = attrs[NX_moe_route_by_logits].integer};
}

bool CPU_NAME(cpu_moe_route_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  for (uint32_t i = 0; i < kernel->operator.n_attrs; i++)
    if (i != NX_moe_route_seq_start && kernel->operator.attrs[i].kind == NXK_CONSTANT) return false;
  if (cpu_in(kernel, 0)->dtype != NX_f32 || cpu_out(kernel, 1)->dtype != NX_f32) return false;
  if (kernel->operator.n_in > 2 && cpu_in(kernel, 2)->dtype != NX_f32) return false;
  nxk_moe moe = route_form(kernel);
  return cpu_reserve(kernel->device, route_scratch_of(kernel->device, &moe, NULL).n_bytes, "moe_route",
                     fault);
}

static void widen(const float *x, int64_t n, double *y) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i];
}

static void choose(const nxk_moe *moe, const route_scratch *s, const float *all, int64_t token, double *row) {
  int64_t n_experts = moe->n_experts, k = moe->top_k;
  double *p = row + n_experts, *weights = p + n_experts, *values = weights + k;
  int32_t *chosen = s->chosen + token * k;
  widen(all + token * n_experts, n_experts, row);
  if (!s->all) nxk_moe_choosing(moe, row, s->correction, p, values);
  nxk_moe_choose(s->all ? s->all + token * n_experts : values, n_experts, k, chosen);
  nxk_moe_weights(moe, row, chosen, p, weights);
  for (int64_t j = 0; j < k; j++) s->weights[token * k + j] = (float)weights[j];
}

static void count(const nxk_moe *moe, const int32_t *chosen, int64_t n_lists, float *counts) {
  int64_t n_each = moe->n_sequences * moe->sequence * moe->top_k / n_lists;
  memset(counts, 0, (size_t)(n_lists * moe->n_experts) * sizeof *counts);
  for (int64_t i = 0; i < n_each * n_lists; i++) counts[i / n_each * moe->n_experts + chosen[i]] += 1;
}

/* A thread's part of the losses of the rank's tokens. */
static void add_losses(const nxk_moe *moe, const float *logits, const float *counts, int64_t n_lists,
                       int64_t n_local, cpu_span span, double *row, double *total) {
  int64_t e = moe->n_experts;
  double sums[2];
  total[0] = total[1] = 0;
  for (int64_t t = span.begin; t < span.end; t++) {
    widen(logits + t * e, e, row);
    widen(counts + t / n_local * n_lists / moe->n_sequences * e, e, row + e);
    nxk_moe_losses(moe->score, row, row + e, e, 0, 0, row + 2 * e, NULL, sums);
    for (int i = 0; i < 2; i++) total[i] += sums[i];
  }
}

static void losses_run(const nxk_kernel *kernel, const nxk_frame *frame, const nxk_moe *moe,
                       const route_scratch *s) {
  double factors[2] = {cpu_real(kernel, NX_moe_route_aux), cpu_real(kernel, NX_moe_route_z)};
  double *losses = cpu_out_at(kernel, frame, 3);
  const float *logits = cpu_in_at(kernel, frame, 0), *counts = cpu_out_at(kernel, frame, 2);
  int64_t n_local = cpu_in(kernel, 0)->dims[1], n_lists = cpu_out(kernel, 2)->dims[0];
  int64_t n_threads = kernel->device->n_threads;
  losses[0] = losses[1] = 0;
  if (factors[0] == 0 && factors[1] == 0) return;
#pragma omp parallel num_threads(n_threads)
  {
    int thread = omp_get_thread_num();
    cpu_span span = cpu_share(moe->n_sequences * n_local, 1, thread, n_threads);
    add_losses(moe, logits, counts, n_lists, n_local, span,
               s->rows + thread * (3 * moe->n_experts + moe->top_k), s->sums + 2 * thread);
  }
  for (int64_t i = 0; i < 2 * n_threads; i++) losses[i % 2] += factors[i % 2] * s->sums[i];
}

void CPU_NAME(cpu_moe_route)(const nxk_kernel *kernel, const nxk_frame *frame) {
  nxk_moe moe = route_form(kernel);
  route_scratch s = route_scratch_of(kernel->device, &moe, kernel->device->scratch);
  const float *all = cpu_in_at(kernel, frame, 1);
  int64_t n = moe.n_sequences * moe.sequence, k = moe.top_k, n_threads = kernel->device->n_threads;
  int64_t n_local = cpu_in(kernel, 0)->dims[1], seq_start = cpu_int(kernel, frame, NX_moe_route_seq_start);
  const float *more = kernel->operator.n_in > 2 ? cpu_in_at(kernel, frame, 2) : NULL;
  bool ranked = moe.drop == NXK_MOE_LEAST;
  if (more && !ranked) widen(more, moe.n_experts, s.correction);
  else s.correction = NULL;
  if (s.all) {
    widen(all, n * moe.n_experts, s.all);
    nxk_moe_sinkhorn(&moe, s.all, n, s.columns);
  }
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, 1, omp_get_thread_num(), n_threads);
    double *row = s.rows + omp_get_thread_num() * (3 * moe.n_experts + k);
    for (int64_t token = span.begin; token < span.end; token++) choose(&moe, &s, all, token, row);
  }
  count(&moe, s.chosen, cpu_out(kernel, 2)->dims[0], cpu_out_at(kernel, frame, 2));
  nxk_moe_drop(&moe, s.weights, ranked ? more : NULL, s.chosen, s.claims);
  for (int64_t sequence = 0; sequence < moe.n_sequences; sequence++) {
    int64_t from = (sequence * moe.sequence + seq_start) * k, to = sequence * n_local * k;
    memcpy((int32_t *)cpu_out_at(kernel, frame, 0) + to, s.chosen + from,
           (size_t)(n_local * k) * sizeof *s.chosen);
    memcpy((float *)cpu_out_at(kernel, frame, 1) + to, s.weights + from,
           (size_t)(n_local * k) * sizeof *s.weights);
  }
  losses_run(kernel, frame, &moe, &s);
}

bool CPU_NAME(cpu_moe_route_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  if (cpu_in(kernel, 0)->dtype != NX_f32 || cpu_in(kernel, 1)->dtype != NX_f32 ||
      cpu_in(kernel, 3)->dtype != NX_f32 || !cpu_is_real(cpu_out(kernel, 0)))
    return false;
  return cpu_reserve_said(kernel, fault);
}

void CPU_NAME(cpu_moe_route_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const int64_t *dims = cpu_in(kernel, 1)->dims;
  const float *dweights = cpu_in_at(kernel, frame, 0), *logits = cpu_in_at(kernel, frame, 1),
              *counts = cpu_in_at(kernel, frame, 3);
  const int32_t *chosen = cpu_in_at(kernel, frame, 2);
  void *dlogits = cpu_out_at(kernel, frame, 0);
  nx_dtype type = cpu_out(kernel, 0)->dtype;
  int64_t n = dims[0] * dims[1], e = dims[2], k = cpu_in(kernel, 2)->dims[2],
          n_threads = kernel->device->n_threads;
  nxk_moe moe = {.n_experts = e,
                 .top_k = k,
                 .score = cpu_int(kernel, frame, NX_moe_route_grad_score),
                 .normalize = cpu_int(kernel, frame, NX_moe_route_grad_normalize),
                 .scale = cpu_real(kernel, NX_moe_route_grad_scale)};
  const double *factor = kernel->operator.n_in > 4 ? cpu_in_at(kernel, frame, 4) : NULL;
  double each = factor ? *factor : 1;
  double aux = each * cpu_real(kernel, NX_moe_route_grad_aux);
  double z = each * cpu_real(kernel, NX_moe_route_grad_z);
  int64_t n_lists = cpu_in(kernel, 3)->dims[0];
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, 1, omp_get_thread_num(), n_threads);
    double *x = (double *)(void *)kernel->device->scratch + omp_get_thread_num() * (4 * e + 2 * k),
           *p = x + e, *dx = p + e, *load = dx + e, *dw = load + e, sums[2];
    for (int64_t t = span.begin; t < span.end; t++) {
      widen(logits + t * e, e, x);
      widen(counts + t / dims[1] * n_lists / dims[0] * e, e, load);
      widen(dweights + t * k, k, dw);
      nxk_moe_weights_grad(&moe, x, chosen + t * k, dw, p, dw + k, dx);
      if (aux != 0 || z != 0) nxk_moe_losses(moe.score, x, load, e, aux, z, p, dx, sums);
      for (int64_t i = 0; i < e; i++) {
        float value = (float)dx[i];
        vec_copy(dlogits, type, t * e + i, &value, NX_f32, 0, 1);
      }
    }
  }
}

/* ---- tokens ---- */

/* Whether all operands but the rows are real, and weights fp32. */
static bool tokens_real(const nxk_kernel *kernel, uint32_t rows) {
  for (uint32_t i = 0; i < kernel->operator.n_in + kernel->operator.n_out; i++)
    if (i != rows && !cpu_is_real(&kernel->operator.args[i])) return false;
  return true;
}

static void clear_rows(void *y, nx_dtype type, int64_t n, int64_t n_threads) {
  int64_t size = type == NX_f32 ? 4 : 2;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    memset((char *)y + span.begin * size, 0, (size_t)((span.end - span.begin) * size));
  }
}

bool CPU_NAME(cpu_moe_permute_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return tokens_real(kernel, 1);
}

void CPU_NAME(cpu_moe_permute)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0), *y = cpu_out(kernel, 0);
  const void *source = cpu_in_at(kernel, frame, 0);
  const int32_t *rows = cpu_in_at(kernel, frame, 1);
  void *target = cpu_out_at(kernel, frame, 0);
  int64_t width = cpu_columns(x), k = cpu_columns(cpu_in(kernel, 1)), n_threads = kernel->device->n_threads;
  int64_t n_rows = cpu_rows(y);
  clear_rows(target, y->dtype, nxk_n_elements(y), n_threads);
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(cpu_rows(x) * k, 1, omp_get_thread_num(), n_threads);
    for (int64_t i = span.begin; i < span.end; i++)
      if (nxk_moe_row(rows[i], n_rows) >= 0)
        vec_copy(target, y->dtype, rows[i] * width, source, x->dtype, i / k * width, width);
  }
}

bool CPU_NAME(cpu_moe_combine_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return tokens_real(kernel, 1) && (kernel->operator.n_in < 3 || cpu_in(kernel, 2)->dtype == NX_f32);
}

void CPU_NAME(cpu_moe_combine)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *y = cpu_in(kernel, 0), *x = cpu_out(kernel, 0);
  const void *source = cpu_in_at(kernel, frame, 0);
  const int32_t *rows = cpu_in_at(kernel, frame, 1);
  const float *weights = kernel->operator.n_in > 2 ? cpu_in_at(kernel, frame, 2) : NULL;
  void *target = cpu_out_at(kernel, frame, 0);
  int64_t width = cpu_columns(x), k = cpu_columns(cpu_in(kernel, 1)), n_threads = kernel->device->n_threads;
  int64_t n_rows = cpu_rows(y);
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer sum, buffer;
    cpu_span span = cpu_share(cpu_rows(x), 1, omp_get_thread_num(), n_threads);
    for (int64_t t = span.begin; t < span.end; t++)
      for (int64_t start = 0; start < width; start += VEC_CHUNK) {
        int64_t n = vec_chunk_of(start, width);
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (int64_t at = t * k; at < (t + 1) * k; at++) {
          if (nxk_moe_row(rows[at], n_rows) < 0) continue;
          const float *row = vec_read(source, y->dtype, rows[at] * width + start, n, buffer);
          float weight = weights ? weights[at] : 1;
#pragma omp simd
          for (int64_t i = 0; i < n; i++) sum[i] += weight * row[i];
        }
        vec_copy(target, x->dtype, t * width + start, sum, NX_f32, 0, n);
      }
  }
}

bool CPU_NAME(cpu_moe_combine_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  (void)fault;
  return tokens_real(kernel, 2) && cpu_in(kernel, 3)->dtype == NX_f32 && cpu_out(kernel, 1)->dtype == NX_f32;
}

void CPU_NAME(cpu_moe_combine_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *dx = cpu_in(kernel, 0), *y = cpu_in(kernel, 1), *dy = cpu_out(kernel, 0);
  const void *source = cpu_in_at(kernel, frame, 0), *outputs = cpu_in_at(kernel, frame, 1);
  const int32_t *rows = cpu_in_at(kernel, frame, 2);
  const float *weights = cpu_in_at(kernel, frame, 3);
  void *target = cpu_out_at(kernel, frame, 0);
  float *dweights = cpu_out_at(kernel, frame, 1);
  int64_t width = cpu_columns(dx), k = cpu_columns(cpu_in(kernel, 2)), n_threads = kernel->device->n_threads;
  int64_t n_rows = cpu_rows(dy);
  clear_rows(target, dy->dtype, nxk_n_elements(dy), n_threads);
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dx_buffer, y_buffer, dy_buffer;
    cpu_span span = cpu_share(cpu_rows(dx) * k, 1, omp_get_thread_num(), n_threads);
    for (int64_t at = span.begin; at < span.end; at++) {
      float weight = weights[at], inner = 0;
      for (int64_t start = 0; nxk_moe_row(rows[at], n_rows) >= 0 && start < width; start += VEC_CHUNK) {
        int64_t n = vec_chunk_of(start, width);
        const float *p = vec_read(source, dx->dtype, at / k * width + start, n, dx_buffer);
        const float *q = vec_read(outputs, y->dtype, rows[at] * width + start, n, y_buffer);
        float *r = vec_target(target, dy->dtype, rows[at] * width + start, dy_buffer), part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = 0; i < n; i++) {
          part += p[i] * q[i];
          r[i] = weight * p[i];
        }
        vec_commit(target, dy->dtype, rows[at] * width + start, n, r);
        inner += part;
      }
      dweights[at] = inner;
    }
  }
}
