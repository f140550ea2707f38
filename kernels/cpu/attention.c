/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention in tiles of SIDE queries by SIDE keys, in fp32; scores never leave a thread's tile.
 *
 * A thread packs the keys (and, backward, the values) of one key head, transposed, tile by tile. Forward keeps a running
 * maximum and sum per query; backward recomputes the weights from lse and walks each query tile once, summing dq in a
 * tile and dk, dv for the whole key head. Division of the scores by the layer number is undone inside the fp32 softmax,
 * so nothing is left of it here. Dropped weights are drawn again, backward, from the same counters. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/tile.h"
#include "kernels/cpu/vec.h"

enum { SIDE = 64 };

typedef struct attention_shape {
  int64_t n_batch, n_heads, n_kv, n_tokens, d;
  int64_t width;   /* d rounded up to whole vectors */
  int64_t n_tiles; /* of SIDE tokens */
  float scale;
  double dropout;
  uint32_t threshold, tensor_id, head_start;
  uint64_t seed;
  const int64_t *samples;
} attention_shape;

/* A thread's memory; every block is 64-byte aligned. */
typedef struct attention_space {
  float *k_packed, *v_packed; /* [n_tiles, width, SIDE] transposed */
  float *k, *v;               /* [n_tiles SIDE, width], only where the operand is not fp32 of that width */
  float *dk, *dv;             /* [n_tiles SIDE, width] */
  float *q, *o, *dq;          /* [SIDE, width] */
  float *score, *slope;       /* [SIDE, SIDE] */
  float *packed_row;          /* [SIDE, width] */
  uint32_t *words;            /* [SIDE, SIDE] */
} attention_space;

static int64_t whole(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

static attention_shape shape_of(const nxk_kernel *kernel, const nxk_tensor *q, const nxk_tensor *k) {
  attention_shape s = {.n_batch = q->dims[0], .n_heads = q->dims[1], .n_kv = k->dims[1], .n_tokens = q->dims[2],
                       .d = q->dims[3], .width = whole(q->dims[3], TILE_LANES)};
  s.n_tiles = (s.n_tokens + SIDE - 1) / SIDE;
  s.scale = (float)cpu_real(kernel, NX_attention_scale);
  s.dropout = cpu_real(kernel, NX_attention_dropout);
  s.threshold = nx_philox_threshold(s.dropout);
  return s;
}

static void shape_finish(attention_shape *s, const nxk_kernel *kernel, const nxk_frame *frame, uint32_t samples) {
  s->tensor_id = (uint32_t)cpu_int(kernel, frame, NX_attention_tensor_id);
  s->head_start = (uint32_t)cpu_int(kernel, frame, NX_attention_head_start);
  s->seed = frame->seed;
  s->samples = cpu_in_at(kernel, frame, samples);
}

static float *space_take(char **at, int64_t n_elements) {
  float *block = (float *)*at;
  *at += cpu_align((uint64_t)n_elements * sizeof(float));
  return block;
}

/* Divides a thread's memory; with base 0 it measures it. */
static uint64_t space_divide(const attention_shape *s, bool backward, char *base, attention_space *space) {
  char *at = base;
  int64_t all = s->n_tiles * SIDE * s->width, tile = SIDE * s->width;
  *space = (attention_space){.k_packed = space_take(&at, all), .v = space_take(&at, all)};
  space->q = space_take(&at, tile);
  space->o = space_take(&at, tile);
  space->packed_row = space_take(&at, tile);
  space->score = space_take(&at, SIDE * SIDE);
  space->words = (uint32_t *)space_take(&at, SIDE * SIDE);
  if (backward) {
    space->v_packed = space_take(&at, all);
    space->k = space_take(&at, all);
    space->dk = space_take(&at, all);
    space->dv = space_take(&at, all);
    space->dq = space_take(&at, tile);
    space->slope = space_take(&at, SIDE * SIDE);
  }
  return (uint64_t)(at - base);
}

/* Rows of d elements, `stride` apart, as fp32 of `width`, with zeros behind d: in place where they are stored so. */
static const float *rows_read(const attention_shape *s, const void *x, nx_dtype type, int64_t start, int64_t stride,
                              int64_t n_rows, float *place, int64_t *row) {
  if (type == NX_f32 && s->width == s->d) {
    *row = stride;
    return (const float *)x + start;
  }
  for (int64_t i = 0; i < n_rows; i++) {
    vec_copy(place, NX_f32, i * s->width, x, type, start + i * stride, s->d);
    for (int64_t j = s->d; j < s->width; j++) place[i * s->width + j] = 0;
  }
  *row = s->width;
  return place;
}

/* One head [S,d] transposed to [tile][width][SIDE]; tokens behind the last are zero. */
static void pack_transposed(const attention_shape *s, const void *x, nx_dtype type, int64_t start, float *place,
                            float *packed) {
  for (int64_t tile = 0; tile < s->n_tiles; tile++) {
    int64_t first = tile * SIDE, n = s->n_tokens - first < SIDE ? s->n_tokens - first : SIDE, row;
    const float *rows = rows_read(s, x, type, start + first * s->d, s->d, n, place, &row);
    float *target = packed + tile * s->width * SIDE;
    if (n < SIDE) memset(target, 0, (size_t)(s->width * SIDE) * sizeof *target);
    for (int64_t j = 0; j < s->width; j++) {
#pragma omp simd
      for (int64_t i = 0; i < n; i++) target[j * SIDE + i] = rows[i * row + j];
    }
  }
}

enum { KEYS4 = SIDE / 4, DRAWN_ROWS = PHILOX_BLOCK / KEYS4 };

/* The words of a tile's mask, [n_rows, SIDE]: DRAWN_ROWS queries at a time. */
static void draw_tile(const attention_shape *s, int64_t batch, int64_t head, int64_t query, int64_t key,
                      int64_t n_rows, uint32_t *words) {
  uint64_t sample = (uint64_t)s->samples[batch];
  uint32_t high = (s->head_start + (uint32_t)head) ^ (uint32_t)(sample >> 32) << 16;
  uint32_t k0 = (uint32_t)s->seed ^ (s->tensor_id * UINT32_C(0x9E3779B1));
  uint32_t k1 = (uint32_t)(s->seed >> 32) ^ s->tensor_id;
  vec_counters v;
  for (int64_t row = 0; row < n_rows; row += DRAWN_ROWS) {
#pragma omp simd
    for (int i = 0; i < PHILOX_BLOCK; i++) {
      v.c[0][i] = (uint32_t)(key / 4) + (uint32_t)(i % KEYS4);
      v.c[1][i] = (uint32_t)(query + row) + (uint32_t)(i / KEYS4);
      v.c[2][i] = (uint32_t)sample;
      v.c[3][i] = high;
    }
    vec_philox_rounds(&v, k0, k1);
    for (int i = 0; i < PHILOX_BLOCK; i++)
      for (int word = 0; word < 4; word++) words[row * SIDE + 4 * i + word] = v.c[word][i];
  }
}

/* Running softmax of one query over the tiles met so far. */
typedef struct softmax_row {
  float max, sum;
} softmax_row;

/* Turns a row of scores into weights relative to the new maximum; returns the factor of everything before. */
static float row_softmax(float *score, int64_t n_live, float scale, softmax_row *row) {
  float max = row->max, sum = 0;
#pragma omp simd reduction(max : max)
  for (int64_t j = 0; j < n_live; j++) max = score[j] > max ? score[j] : max;
  float old = row->max == -INFINITY ? 0.0F : vec_exp((row->max - max) * scale);
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < SIDE; j++) {
    float weight = vec_exp((score[j] - max) * scale);
    weight = j < n_live ? weight : 0.0F;
    score[j] = weight;
    sum += weight;
  }
  row->sum = row->sum * old + sum;
  row->max = max;
  return old;
}

static void drop_row(float *weight, const uint32_t *words, uint32_t threshold) {
#pragma omp simd
  for (int64_t j = 0; j < SIDE; j++) weight[j] = words[j] >= threshold ? weight[j] : 0.0F;
}

typedef struct attention_args {
  const void *q, *k, *v, *dout, *o;
  nx_dtype q_type, k_type, v_type, dout_type, o_type;
  void *out, *dq, *dk, *dv;
  nx_dtype out_type, dq_type, dk_type, dv_type;
  float *lse;
} attention_args;

static void forward_tile(const attention_shape *s, const attention_args *a, const attention_space *space,
                         const float *values, int64_t v_row, int64_t batch, int64_t head, int64_t tile) {
  softmax_row rows[SIDE];
  int64_t first = tile * SIDE, n = s->n_tokens - first < SIDE ? s->n_tokens - first : SIDE, q_row;
  int64_t start = ((batch * s->n_heads + head) * s->n_tokens + first) * s->d;
  const float *q = rows_read(s, a->q, a->q_type, start, s->d, n, space->q, &q_row);
  for (int64_t i = 0; i < n; i++) rows[i] = (softmax_row){-INFINITY, 0};
  memset(space->o, 0, (size_t)(SIDE * s->width) * sizeof(float));
  for (int64_t t = 0; t <= tile; t++) {
    tile_multiply((tile_product){n, SIDE, s->d, q, q_row, 1, space->k_packed + t * s->width * SIDE, SIDE,
                                 space->score, SIDE, false});
    if (s->threshold) draw_tile(s, batch, head, first, t * SIDE, n, space->words);
    for (int64_t i = 0; i < n; i++) {
      float old = row_softmax(space->score + i * SIDE, t == tile ? i + 1 : SIDE, s->scale, &rows[i]);
      if (s->threshold) drop_row(space->score + i * SIDE, space->words + i * SIDE, s->threshold);
      if (t == 0 || old == 1) continue;
      float *o = space->o + i * s->width;
#pragma omp simd
      for (int64_t j = 0; j < s->width; j++) o[j] *= old;
    }
    tile_multiply((tile_product){n, s->width, t == tile ? n : SIDE, space->score, SIDE, 1,
                                 values + t * SIDE * v_row, v_row, space->o, s->width, true});
  }
  float kept = (float)(1 / (1 - s->dropout));
  for (int64_t i = 0; i < n; i++) {
    float *o = space->o + i * s->width, factor = kept / rows[i].sum;
#pragma omp simd
    for (int64_t j = 0; j < s->width; j++) o[j] *= factor;
    vec_copy(a->out, a->out_type, ((batch * s->n_tokens + first + i) * s->n_heads + head) * s->d, o, NX_f32, 0, s->d);
    a->lse[(batch * s->n_heads + head) * s->n_tokens + first + i] =
      (float)((double)(rows[i].max * s->scale) + log((double)rows[i].sum));
  }
}

/* Where a thread's share of the query tiles begins: tile t of a head costs t + 1. */
static int64_t share_start(const attention_shape *s, int64_t index, int64_t n_shares) {
  int64_t per_head = s->n_tiles * (s->n_tiles + 1) / 2, n_heads = s->n_batch * s->n_heads;
  int64_t cost = (int64_t)((double)(per_head * n_heads) * (double)index / (double)n_shares);
  int64_t head = cost / per_head, rest = cost % per_head, tile = 0;
  while (tile < s->n_tiles && (tile + 1) * (tile + 2) / 2 <= rest) tile++;
  return head >= n_heads ? n_heads * s->n_tiles : head * s->n_tiles + tile;
}

static bool attention_types(const nxk_kernel *kernel, uint32_t lse, uint32_t samples) {
  for (uint32_t i = 0; i < kernel->operator.n_in + kernel->operator.n_out; i++)
    if (i != lse && i != samples && !cpu_is_real(&kernel->operator.args[i])) return false;
  return kernel->operator.args[lse].dtype == NX_f32 && kernel->operator.args[samples].dtype == NX_i64;
}

bool CPU_NAME(cpu_attention_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  attention_space space;
  if (!attention_types(kernel, 5, 3)) return false;
  attention_shape s = shape_of(kernel, cpu_in(kernel, 0), cpu_in(kernel, 1));
  return cpu_reserve(kernel->device, space_divide(&s, false, NULL, &space) * kernel->device->n_threads, "attention",
                     fault);
}

static attention_args forward_args(const nxk_kernel *kernel, const nxk_frame *frame) {
  return (attention_args){.q = cpu_in_at(kernel, frame, 0), .k = cpu_in_at(kernel, frame, 1),
                          .v = cpu_in_at(kernel, frame, 2), .q_type = cpu_in(kernel, 0)->dtype,
                          .k_type = cpu_in(kernel, 1)->dtype, .v_type = cpu_in(kernel, 2)->dtype,
                          .out = cpu_out_at(kernel, frame, 0), .out_type = cpu_out(kernel, 0)->dtype,
                          .lse = cpu_out_at(kernel, frame, 1)};
}

static void forward_share(const attention_shape *s, const attention_args *a, const attention_space *space,
                          int64_t begin, int64_t end) {
  int64_t group = s->n_heads / s->n_kv, packed = -1, v_row = 0;
  const float *values = NULL;
  for (int64_t item = begin; item < end; item++) {
    int64_t head = item / s->n_tiles, batch = head / s->n_heads, local = head % s->n_heads;
    int64_t kv = batch * s->n_kv + local / group, start = kv * s->n_tokens * s->d;
    if (kv != packed) {
      pack_transposed(s, a->k, a->k_type, start, space->packed_row, space->k_packed);
      values = rows_read(s, a->v, a->v_type, start, s->d, s->n_tokens, space->v, &v_row);
      packed = kv;
    }
    forward_tile(s, a, space, values, v_row, batch, local, item % s->n_tiles);
  }
}

void CPU_NAME(cpu_attention)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = shape_of(kernel, cpu_in(kernel, 0), cpu_in(kernel, 1));
  attention_args a = forward_args(kernel, frame);
  shape_finish(&s, kernel, frame, 3);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    attention_space space;
    int64_t thread = omp_get_thread_num();
    uint64_t n_bytes = space_divide(&s, false, NULL, &space);
    space_divide(&s, false, kernel->device->scratch + (uint64_t)thread * n_bytes, &space);
    forward_share(&s, &a, &space, share_start(&s, thread, n_threads), share_start(&s, thread + 1, n_threads));
  }
}

/* What a query tile brings to the backward pass. */
typedef struct query_tile {
  const float *q, *dout;
  int64_t q_row, dout_row, n, first;
  float lse[SIDE], product[SIDE]; /* product: sum of dout x o */
} query_tile;

/* Weights in `score` (dropped ones zero, for dv) and slopes of the scores in `slope`. */
static void backward_rows(const attention_shape *s, const attention_space *space, const query_tile *tile,
                          bool diagonal) {
  float kept = (float)(1 / (1 - s->dropout)), scale = s->scale;
  for (int64_t i = 0; i < tile->n; i++) {
    float *score = space->score + i * SIDE, *slope = space->slope + i * SIDE;
    float lse = tile->lse[i], product = tile->product[i];
    const uint32_t *words = space->words + i * SIDE;
    int64_t n_live = diagonal ? i + 1 : SIDE;
    uint32_t threshold = s->threshold;
    if (threshold) {
#pragma omp simd
      for (int64_t j = 0; j < SIDE; j++) {
        float weight = vec_exp(score[j] * scale - lse), keep = words[j] >= threshold ? kept : 0.0F;
        weight = j < n_live ? weight : 0.0F;
        score[j] = weight * keep;
        slope[j] = weight * (slope[j] * keep - product) * scale;
      }
    } else {
#pragma omp simd
      for (int64_t j = 0; j < SIDE; j++) {
        float weight = vec_exp(score[j] * scale - lse);
        weight = j < n_live ? weight : 0.0F;
        score[j] = weight;
        slope[j] = weight * (slope[j] - product) * scale;
      }
    }
  }
}

static void query_read(const attention_shape *s, const attention_args *a, const attention_space *space, int64_t batch,
                       int64_t head, int64_t tile, query_tile *query) {
  int64_t first = tile * SIDE, row = s->n_heads * s->d, o_row;
  query->first = first;
  query->n = s->n_tokens - first < SIDE ? s->n_tokens - first : SIDE;
  int64_t heads = (batch * s->n_heads + head) * s->n_tokens + first;
  int64_t rows = ((batch * s->n_tokens + first) * s->n_heads + head) * s->d;
  const float *o = rows_read(s, a->o, a->o_type, rows, row, query->n, space->q, &o_row);
  query->dout = rows_read(s, a->dout, a->dout_type, rows, row, query->n, space->o, &query->dout_row);
  for (int64_t i = 0; i < query->n; i++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < s->d; j++) sum += o[i * o_row + j] * query->dout[i * query->dout_row + j];
    query->product[i] = sum;
    query->lse[i] = a->lse[heads + i];
  }
  query->q = rows_read(s, a->q, a->q_type, heads * s->d, s->d, query->n, space->q, &query->q_row);
}

/* One query tile against all key tiles before it and its own. */
static void backward_tile(const attention_shape *s, const attention_args *a, const attention_space *space,
                          const float *keys, int64_t k_row, int64_t batch, int64_t head, int64_t tile) {
  query_tile query;
  query_read(s, a, space, batch, head, tile, &query);
  int64_t n = query.n;
  for (int64_t t = 0; t <= tile; t++) {
    int64_t n_keys = t == tile ? n : SIDE, packed = t * s->width * SIDE, at = t * SIDE * s->width;
    tile_multiply((tile_product){n, SIDE, s->d, query.q, query.q_row, 1, space->k_packed + packed, SIDE,
                                 space->score, SIDE, false});
    tile_multiply((tile_product){n, SIDE, s->d, query.dout, query.dout_row, 1, space->v_packed + packed, SIDE,
                                 space->slope, SIDE, false});
    if (s->threshold) draw_tile(s, batch, head, query.first, t * SIDE, n, space->words);
    backward_rows(s, space, &query, t == tile);
    tile_multiply((tile_product){n_keys, s->width, n, space->score, 1, SIDE, query.dout, query.dout_row,
                                 space->dv + at, s->width, true});
    tile_multiply((tile_product){n_keys, s->width, n, space->slope, 1, SIDE, query.q, query.q_row, space->dk + at,
                                 s->width, true});
    tile_multiply((tile_product){n, s->width, n_keys, space->slope, SIDE, 1, keys + t * SIDE * k_row, k_row,
                                 space->dq, s->width, t > 0});
  }
  int64_t start = ((batch * s->n_heads + head) * s->n_tokens + query.first) * s->d;
  for (int64_t i = 0; i < n; i++)
    vec_copy(a->dq, a->dq_type, start + i * s->d, space->dq, NX_f32, i * s->width, s->d);
}

static void backward_key_head(const attention_shape *s, const attention_args *a, const attention_space *space,
                              int64_t batch, int64_t kv) {
  int64_t group = s->n_heads / s->n_kv, start = (batch * s->n_kv + kv) * s->n_tokens * s->d, k_row;
  size_t n_bytes = (size_t)(s->n_tiles * SIDE * s->width) * sizeof(float);
  pack_transposed(s, a->k, a->k_type, start, space->packed_row, space->k_packed);
  pack_transposed(s, a->v, a->v_type, start, space->packed_row, space->v_packed);
  const float *keys = rows_read(s, a->k, a->k_type, start, s->d, s->n_tokens, space->k, &k_row);
  memset(space->dk, 0, n_bytes);
  memset(space->dv, 0, n_bytes);
  for (int64_t head = kv * group; head < (kv + 1) * group; head++)
    for (int64_t tile = 0; tile < s->n_tiles; tile++)
      backward_tile(s, a, space, keys, k_row, batch, head, tile);
  for (int64_t i = 0; i < s->n_tokens; i++) {
    vec_copy(a->dk, a->dk_type, start + i * s->d, space->dk, NX_f32, i * s->width, s->d);
    vec_copy(a->dv, a->dv_type, start + i * s->d, space->dv, NX_f32, i * s->width, s->d);
  }
}

bool CPU_NAME(cpu_attention_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  attention_space space;
  if (!attention_types(kernel, 5, 6)) return false;
  attention_shape s = shape_of(kernel, cpu_in(kernel, 1), cpu_in(kernel, 2));
  return cpu_reserve(kernel->device, space_divide(&s, true, NULL, &space) * kernel->device->n_threads,
                     "attention gradient", fault);
}

static attention_args backward_args(const nxk_kernel *kernel, const nxk_frame *frame) {
  return (attention_args){
    .dout = cpu_in_at(kernel, frame, 0), .q = cpu_in_at(kernel, frame, 1), .k = cpu_in_at(kernel, frame, 2),
    .v = cpu_in_at(kernel, frame, 3), .o = cpu_in_at(kernel, frame, 4), .lse = cpu_in_at(kernel, frame, 5),
    .dout_type = cpu_in(kernel, 0)->dtype, .q_type = cpu_in(kernel, 1)->dtype, .k_type = cpu_in(kernel, 2)->dtype,
    .v_type = cpu_in(kernel, 3)->dtype, .o_type = cpu_in(kernel, 4)->dtype, .dq = cpu_out_at(kernel, frame, 0),
    .dk = cpu_out_at(kernel, frame, 1), .dv = cpu_out_at(kernel, frame, 2), .dq_type = cpu_out(kernel, 0)->dtype,
    .dk_type = cpu_out(kernel, 1)->dtype, .dv_type = cpu_out(kernel, 2)->dtype};
}

void CPU_NAME(cpu_attention_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = shape_of(kernel, cpu_in(kernel, 1), cpu_in(kernel, 2));
  attention_args a = backward_args(kernel, frame);
  shape_finish(&s, kernel, frame, 6);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    attention_space space;
    int64_t thread = omp_get_thread_num();
    uint64_t n_bytes = space_divide(&s, true, NULL, &space);
    space_divide(&s, true, kernel->device->scratch + (uint64_t)thread * n_bytes, &space);
    cpu_span span = cpu_share(s.n_batch * s.n_kv, 1, thread, n_threads);
    for (int64_t item = span.begin; item < span.end; item++)
      backward_key_head(&s, &a, &space, item / s.n_kv, item % s.n_kv);
  }
}
