/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention.c:
 *
 *   s' = k q'     dp' = v do'     dv += p' do     dk += ds' q     dq += ds k
 *
 * Weights are computed again from lse. Each query tile is walked once; dq is summed in a tile, dk and dv for
 * the whole key head. Only q and do are transposed. Division of the scores by the layer number is undone
 * inside the fp32 softmax, so nothing is left of it here. Dropped weights are drawn again from the same
 * counters. */
#include "kernels/cpu/attention32_query.h"
#include "kernels/cpu/attention_backward.h"
#include "kernels/cpu/family.h"

static uint64_t space_divide(const attention_shape *s, char *base, attention_space *space) {
  char *at = base;
  *space = space_take(s, &at);
  space->sums = attention_take(&at, 2 * attention_distances(s));
  space->dtable = attention_take(&at, 2 * s->n_buckets * s->table_heads);
  space->dk = attention_take(&at, s->n_keys * s->width);
  space->dv = attention_take(&at, s->n_keys * s->e_width);
  space->dq = attention_take(&at, TOGETHER * SIDE * s->width);
  space->do_across = attention_take(&at, TOGETHER * SIDE * s->e_width);
  space->slope = attention_take(&at, SIDE * SIDE);
  return (uint64_t)(at - base);
}

static void share_begin(const attention_shape *s, const attention_space *space) {
  memset(space->dtable, 0, (size_t)(s->n_buckets * s->table_heads) * sizeof *space->dtable);
}

static void share_end(void) {
}

/* What a query tile brings to the backward pass. */
static void backward_begin(const attention_shape *s, const attention_args *a, const attention_space *space,
                           int64_t index, query_tile *query) {
  int64_t start = query_rows_start(s, query), stride = s->n_heads * s->e, e = s->e_width;
  const row_form of_o = {a->o, a->o_type, s->e, e}, of_dout = {a->dout, a->dout_type, s->e, e};
  const float *o = rows_read(of_o, start, stride, query->n, query->room);
  const float *dout = query->dout = rows_read(of_dout, start, stride, query->n, query->o);
  for (int64_t i = 0; i < SIDE; i++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < (i < query->n ? e : 0); j++) sum += o[i * e + j] * dout[i * e + j];
    query->sums.product[i] = sum;
    query->sums.lse2[i] = i < query->n ? a->lse[query_start(s, query) + i] * log2_e : INFINITY;
  }
  query->dq = space->dq + index * SIDE * s->width;
  query->do_across = space->do_across + index * SIDE * e;
  rows_across(dout, query->n, e, query->do_across);
  query_read(s, a, query);
}

static void backward_meet(const attention_shape *s, const attention_space *space, const attention_bend *bend,
                          int64_t t, query_tile *query) {
  int64_t n_keys = attention_key_rows(s, t), n = query->n, width = s->width, e_width = s->e_width;
  int64_t at = t * SIDE * width, at_value = t * SIDE * e_width;
  attention_mask *mask = &query->mask;
  attention_mask_keys(s, t, mask);
  attention_read read = attention_tile_read(s, query->head, mask);
  if (read == READ_NOTHING) return;
  scores_multiply(mask, (tile_product){n_keys, SIDE, s->d, space->keys + at, width, 1, query->q_across, SIDE,
                                       space->score, SIDE, false});
  scores_multiply(mask, (tile_product){n_keys, SIDE, s->e, space->values + at_value, e_width, 1,
                                       query->do_across, SIDE, space->slope, SIDE, false});
  if (s->threshold) draw_square(s, query->batch, query->head, mask, space->words);
  square_bend(s, bend, mask, query->head, read, whole_square, space->score);
  square_slopes(s, space->score, space->slope, space->words, &query->sums, mask, bend);
  for (int64_t j = 0; bend->bias && j < n_keys; j++)
    attention_bias_sums(bend, space->slope + j * SIDE, mask->place[j], mask, space->sums);
  keys_multiply(mask, (tile_product){n_keys, e_width, n, space->score, SIDE, 1, query->dout, e_width,
                                     space->dv + at_value, e_width, true});
  keys_multiply(mask, (tile_product){n_keys, width, n, space->slope, SIDE, 1, query->q, width, space->dk + at,
                                     width, true});
  queries_multiply(mask, (tile_product){n, width, n_keys, space->slope, 1, SIDE, space->keys + at, width,
                                        query->dq, width, query->met});
  query->met = true;
}

static void backward_store(const attention_shape *s, const attention_args *a, const query_tile *query) {
  if (!query->met) memset(query->dq, 0, (size_t)(SIDE * s->width) * sizeof(float));
  for (int64_t i = 0; i < query->n; i++)
    vec_copy(a->dq, a->dq_type, (query_start(s, query) + i) * s->d, query->dq, NX_f32, i * s->width, s->d);
}

/* n query tiles of a head, each `step` behind the one before. */
static void backward_tiles(const attention_shape *s, const attention_args *a, const attention_space *space,
                           int64_t unit, int64_t head, int64_t tile, int64_t step, int64_t n) {
  query_tile queries[TOGETHER];
  for (int64_t i = 0; i < n; i++) {
    queries[i] = query_tile_of(s, space, unit / s->n_kv, head, tile + i * step, i);
    backward_begin(s, a, space, i, &queries[i]);
  }
  tiles_walk(s, space, queries, n, backward_meet);
  for (int64_t i = 0; i < n; i++) backward_store(s, a, &queries[i]);
}

static void backward_part(const attention_shape *s, const attention_args *a, attention_space *space,
                          attention_part part) {
  int64_t group = s->n_heads / s->n_kv, kv = part.unit % s->n_kv;
  head_read(s, a, space, part.unit);
  memset(space->dk, 0, (size_t)(s->n_keys * s->width) * sizeof(float));
  memset(space->dv, 0, (size_t)(s->n_keys * s->e_width) * sizeof(float));
  for (int64_t head = kv * group; head < (kv + 1) * group; head++) {
    memset(space->sums, 0, (size_t)attention_distances(s) * sizeof *space->sums);
    backward_head(s, a, space, part, head);
    if (s->n_buckets) attention_table_sums(s, head, space->sums, space->dtable);
  }
}

static void rows_finish(const attention_shape *s, const attention_args *a, const attention_space *space,
                        int64_t unit, cpu_span rows) {
  int64_t start = unit * s->n_keys;
  for (int64_t i = rows.begin; i < rows.end; i++) {
    vec_copy(a->dk, a->dk_type, (start + i) * s->d, space->dk, NX_f32, i * s->width, s->d);
    vec_copy(a->dv, a->dv_type, (start + i) * s->e, space->dv, NX_f32, i * s->e_width, s->e);
  }
}

/* The table's gradient, summed over the threads in order. */
static void table_finish(const nxk_kernel *kernel, const attention_shape *s, float *dtable) {
  for (int64_t i = 0; i < s->n_buckets * s->table_heads; i++) {
    double sum = 0;
    for (int64_t thread = 0; thread < kernel->device->n_threads; thread++)
      sum += space_at(s, kernel->device->scratch, thread).dtable[i];
    dtable[i] = (float)sum;
  }
}

bool CPU_NAME(cpu_attention_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  if (!attention_types(kernel, true, false)) return false;
  attention_shape s = attention_shape_of(kernel, true);
  return space_reserve(kernel, &s, "attention gradient", fault);
}

void CPU_NAME(cpu_attention_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = attention_shape_at(kernel, frame, true);
  attention_args a = attention_backward_args(kernel, frame);
  attention_backward(kernel, &s, &a);
  if (s.n_buckets) table_finish(kernel, &s, cpu_out_at(kernel, frame, 3));
}
