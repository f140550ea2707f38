/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention in tiles of SIDE queries by SIDE keys, in fp32; scores never leave a thread's tile.
 *
 * A thread packs the keys (and, backward, the values) of one key head, transposed, tile by tile. Forward
 * keeps a running maximum and sum per query; backward recomputes the weights from lse and walks each query
 * tile once, summing dq in a tile and dk, dv for the whole key head. Division of the scores by the layer
 * number is undone inside the fp32 softmax, so nothing is left of it here. Dropped weights are drawn again,
 * backward, from the same counters. */
#include "kernels/cpu/attention.h"
#include "kernels/cpu/family.h"
#include "kernels/cpu/tile.h"

/* A thread's memory; every block is 64-byte aligned. */
typedef struct attention_space {
  float *k_packed, *v_packed; /* [n_key_tiles, width, SIDE] transposed; of values e_width, here and below */
  float *k, *v;               /* [n_key_tiles SIDE, width], where the operand is not fp32 of that width */
  float *dk, *dv;             /* [n_key_tiles SIDE, width] */
  float *q, *dq;              /* [SIDE, width]; q is o's too, before it */
  float *o;                   /* [SIDE, e_width] */
  float *score, *slope;       /* [SIDE, SIDE] */
  float *packed_row;          /* [SIDE, the wider] */
  uint32_t *words;            /* [SIDE, SIDE] */
  float *bias;                /* [distances] */
  double *sums, *dtable;      /* [distances]; [n_buckets, table_heads] */
} attention_space;

/* Divides a thread's memory; with base 0 it measures it. */
static uint64_t space_divide(const attention_shape *s, bool backward, char *base, attention_space *space) {
  char *at = base;
  int64_t keys = s->n_key_tiles * SIDE, wider = attention_wider(s->width, s->e_width);
  *space = (attention_space){.k_packed = attention_take(&at, keys * s->width),
                             .v = attention_take(&at, keys * s->e_width)};
  space->q = attention_take(&at, SIDE * wider);
  space->o = attention_take(&at, SIDE * s->e_width);
  space->packed_row = attention_take(&at, SIDE * wider);
  space->score = attention_take(&at, SIDE * SIDE);
  space->words = (uint32_t *)attention_take(&at, SIDE * SIDE);
  space->bias = attention_take(&at, attention_distances(s));
  if (backward) {
    space->sums = attention_take(&at, 2 * attention_distances(s));
    space->dtable = attention_take(&at, 2 * s->n_buckets * s->table_heads);
    space->v_packed = attention_take(&at, keys * s->e_width);
    space->k = attention_take(&at, keys * s->width);
    space->dk = attention_take(&at, keys * s->width);
    space->dv = attention_take(&at, keys * s->e_width);
    space->dq = attention_take(&at, SIDE * s->width);
    space->slope = attention_take(&at, SIDE * SIDE);
  }
  return (uint64_t)(at - base);
}

/* Rows of an operand: d elements, kept as `width` with zeros behind d. */
typedef struct row_form {
  const void *data;
  nx_dtype type;
  int64_t d, width;
} row_form;

/* Rows `stride` apart as fp32: in place where they are stored so. */
static const float *rows_read(row_form x, int64_t start, int64_t stride, int64_t n_rows, float *room,
                              int64_t *row) {
  if (x.type == NX_f32 && x.width == x.d) {
    *row = stride;
    return (const float *)x.data + start;
  }
  for (int64_t i = 0; i < n_rows; i++) {
    vec_copy(room, NX_f32, i * x.width, x.data, x.type, start + i * stride, x.d);
    for (int64_t j = x.d; j < x.width; j++) room[i * x.width + j] = 0;
  }
  *row = x.width;
  return room;
}

/* One head [K,d] transposed to [tile][width][SIDE]; keys behind the last are zero. */
static void pack_transposed(const attention_shape *s, row_form x, int64_t start, float *room, float *packed) {
  for (int64_t tile = 0; tile < s->n_key_tiles; tile++) {
    int64_t first = tile * SIDE, n = attention_key_rows(s, tile), row;
    const float *rows = rows_read(x, start + first * x.d, x.d, n, room, &row);
    float *target = packed + tile * x.width * SIDE;
    if (n < SIDE) memset(target, 0, (size_t)(x.width * SIDE) * sizeof *target);
    for (int64_t j = 0; j < x.width; j++) {
#pragma omp simd
      for (int64_t i = 0; i < n; i++) target[j * SIDE + i] = rows[i * row + j];
    }
  }
}

enum { KEYS4 = SIDE / 4, DRAWN_ROWS = PHILOX_BLOCK / KEYS4 };

/* The words of a tile's mask, [n_rows, SIDE]: DRAWN_ROWS queries at a time, four keys at a time where their
 * words stand together. */
static void draw_tile(const attention_shape *s, int64_t batch, int64_t head, const attention_mask *mask,
                      int64_t n_rows, uint32_t *words) {
  uint64_t sample = (uint64_t)s->samples[batch];
  uint32_t high = (s->head_start + (uint32_t)head) ^ (uint32_t)(sample >> 32) << 16;
  uint32_t k0 = (uint32_t)s->seed ^ (s->tensor_id * UINT32_C(0x9E3779B1));
  uint32_t k1 = (uint32_t)(s->seed >> 32) ^ s->tensor_id;
  vec_counters v;
  for (int64_t row = 0; row < n_rows; row += DRAWN_ROWS)
    for (int pass = 0; pass < (mask->in_fours ? 1 : 4); pass++) {
      const int32_t *place = mask->place + pass;
#pragma omp simd
      for (int i = 0; i < PHILOX_BLOCK; i++) {
        int64_t query = row + i / KEYS4;
        v.c[0][i] = (uint32_t)place[i % KEYS4 * 4] / 4;
        v.c[1][i] = (uint32_t)mask->low[query] + mask->reach[query];
        v.c[2][i] = (uint32_t)sample;
        v.c[3][i] = high;
      }
      vec_philox_rounds(&v, k0, k1);
      uint32_t *target = words + row * SIDE;
      for (int i = 0; i < PHILOX_BLOCK; i++) {
        for (int word = 0; mask->in_fours && word < 4; word++) target[4 * i + word] = v.c[word][i];
        if (!mask->in_fours) target[4 * i + pass] = v.c[place[i % KEYS4 * 4] & 3][i];
      }
    }
}

/* Running softmax of one query over the tiles met so far. */
typedef struct softmax_row {
  float max, sum;
} softmax_row;

/* Turns a row of scores into weights relative to the new maximum; returns the factor of everything before. */
static inline __attribute__((always_inline)) float row_softmax(float *score, const attention_mask *mask,
                                                               const bool whole, int64_t query, float scale,
                                                               softmax_row *row) {
  float max = row->max, sum = 0;
#pragma omp simd reduction(max : max)
  for (int64_t j = 0; j < SIDE; j++) {
    float x = whole || attention_reads(mask, query, j) ? score[j] : -INFINITY;
    max = x > max ? x : max;
  }
  float old = row->max == -INFINITY ? 0.0F : vec_exp_weight((row->max - max) * scale);
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < SIDE; j++) {
    float weight = vec_exp_weight((score[j] - max) * scale);
    weight = whole || attention_reads(mask, query, j) ? weight : 0.0F;
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

/* What n rows of scores go through before the softmax. */
static void rows_bend(const attention_shape *s, const attention_space *space, const attention_bend *bend,
                      const attention_mask *mask, int64_t head, int64_t n, attention_read read) {
  for (int64_t i = 0; i < n; i++) {
    float *score = space->score + i * SIDE;
    attention_bend_row(bend, score, mask->query[i], mask->place, 1);
    if (read == READ_SOME) attention_block_row(s, head, score, mask->query[i], mask->place, true);
  }
}

static row_form query_form(const attention_shape *s, const attention_args *a) {
  return (row_form){a->q, a->q_type, s->d, s->width};
}

static row_form key_form(const attention_shape *s, const attention_args *a) {
  return (row_form){a->k, a->k_type, s->d, s->width};
}

static row_form value_form(const attention_shape *s, const attention_args *a) {
  return (row_form){a->v, a->v_type, s->e, s->e_width};
}

static void forward_tile(const attention_shape *s, const attention_args *a, const attention_space *space,
                         const float *values, int64_t v_row, int64_t batch, int64_t head, int64_t tile) {
  softmax_row rows[SIDE];
  attention_mask mask;
  int64_t first = tile * SIDE, n = attention_tile_rows(s, tile), q_row;
  int64_t start = ((batch * s->n_heads + head) * s->n_tokens + first) * s->d;
  int64_t begin = attention_tiles_begin(s, batch, tile), end = attention_tiles_end(s, tile);
  const float *q = rows_read(query_form(s, a), start, s->d, n, space->q, &q_row);
  for (int64_t i = 0; i < n; i++) rows[i] = (softmax_row){-INFINITY, 0};
  memset(space->o, 0, (size_t)(SIDE * s->e_width) * sizeof(float));
  attention_mask_queries(s, batch, tile, &mask);
  attention_bend bend = attention_bend_of(s, head, space->bias);
  bool first_met = true;
  for (int64_t t = begin; t < end; t++) {
    attention_mask_keys(s, t, &mask);
    attention_read read = attention_tile_read(s, head, &mask);
    if (read == READ_NOTHING) continue;
    tile_multiply((tile_product){n, SIDE, s->d, q, q_row, 1, space->k_packed + t * s->width * SIDE, SIDE,
                                 space->score, SIDE, false});
    rows_bend(s, space, &bend, &mask, head, n, read);
    if (s->threshold) draw_tile(s, batch, head, &mask, n, space->words);
    for (int64_t i = 0; i < n; i++) {
      float *score = space->score + i * SIDE;
      float old = mask.whole ? row_softmax(score, &mask, true, i, s->scale, &rows[i])
                             : row_softmax(score, &mask, false, i, s->scale, &rows[i]);
      if (s->threshold) drop_row(score, space->words + i * SIDE, s->threshold);
      if (first_met || old == 1) continue;
      float *o = space->o + i * s->e_width;
#pragma omp simd
      for (int64_t j = 0; j < s->e_width; j++) o[j] *= old;
    }
    tile_multiply((tile_product){n, s->e_width, attention_key_rows(s, t), space->score, SIDE, 1,
                                 values + t * SIDE * v_row, v_row, space->o, s->e_width, true});
    first_met = false;
  }
  float kept = (float)(1 / (1 - s->dropout));
  for (int64_t i = 0; i < n; i++) {
    float *o = space->o + i * s->e_width, factor = rows[i].sum > 0 ? kept / rows[i].sum : 0.0F;
#pragma omp simd
    for (int64_t j = 0; j < s->e_width; j++) o[j] *= factor;
    vec_copy(a->out, a->out_type, ((batch * s->n_tokens + first + i) * s->n_heads + head) * s->e, o, NX_f32,
             0, s->e);
    a->lse[(batch * s->n_heads + head) * s->n_tokens + first + i] = (float)((double)(rows[i].max * s->scale) +
                                                                            log((double)rows[i].sum));
  }
}

bool CPU_NAME(cpu_attention_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  attention_space space;
  if (!attention_types(kernel, false, false)) return false;
  attention_shape s = attention_shape_of(kernel, false);
  return cpu_reserve(kernel->device, space_divide(&s, false, NULL, &space) * kernel->device->n_threads,
                     "attention", fault);
}

static void forward_share(const attention_shape *s, const attention_args *a, const attention_space *space,
                          int64_t begin, int64_t end) {
  int64_t group = s->n_heads / s->n_kv, packed = -1, v_row = 0;
  const float *values = NULL;
  for (int64_t item = begin; item < end; item++) {
    int64_t head = item / s->n_tiles, batch = head / s->n_heads, local = head % s->n_heads;
    int64_t kv = batch * s->n_kv + local / group, start = kv * s->n_keys;
    if (kv != packed) {
      pack_transposed(s, key_form(s, a), start * s->d, space->packed_row, space->k_packed);
      values = rows_read(value_form(s, a), start * s->e, s->e, s->n_keys, space->v, &v_row);
      packed = kv;
    }
    forward_tile(s, a, space, values, v_row, batch, local, item % s->n_tiles);
  }
}

void CPU_NAME(cpu_attention)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = attention_shape_at(kernel, frame, false);
  attention_args a = attention_forward_args(kernel, frame);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    attention_space space;
    int64_t thread = omp_get_thread_num();
    uint64_t n_bytes = space_divide(&s, false, NULL, &space);
    space_divide(&s, false, kernel->device->scratch + (uint64_t)thread * n_bytes, &space);
    forward_share(&s, &a, &space, attention_share_start(&s, thread, n_threads),
                  attention_share_start(&s, thread + 1, n_threads));
  }
}

/* What a query tile brings to the backward pass. */
typedef struct query_tile {
  const float *q, *dout;
  int64_t q_row, dout_row, n, first;
  float lse[SIDE], product[SIDE]; /* product: sum of dout x o */
} query_tile;

/* Weights in `score` (dropped ones zero, for dv) and slopes of the scores in `slope`. */
static inline __attribute__((always_inline)) void
backward_rows_as(const attention_shape *s, const attention_space *space, const query_tile *tile,
                 const attention_mask *mask, const bool whole, const bool drops, const float inverse) {
  float kept = (float)(1 / (1 - s->dropout)), scale = s->scale;
  uint32_t threshold = s->threshold;
  for (int64_t i = 0; i < tile->n; i++) {
    float *score = space->score + i * SIDE, *slope = space->slope + i * SIDE;
    float lse = tile->lse[i], product = tile->product[i];
    const uint32_t *words = space->words + i * SIDE;
#pragma omp simd
    for (int64_t j = 0; j < SIDE; j++) {
      float weight = vec_exp_weight(score[j] * scale - lse), capped = score[j] * inverse;
      weight = whole || attention_reads(mask, i, j) ? weight : 0.0F;
      float keep = !drops ? 1.0F : words[j] >= threshold ? kept : 0.0F;
      score[j] = weight * keep;
      slope[j] =
          weight * (slope[j] * keep - product) * (inverse != 0 ? scale * (1 - capped * capped) : scale);
    }
  }
}

static void backward_rows(const attention_shape *s, const attention_space *space, const query_tile *tile,
                          const attention_mask *mask, const attention_bend *bend) {
  if (s->threshold || bend->cap > 0)
    backward_rows_as(s, space, tile, mask, false, s->threshold != 0, bend->cap > 0 ? 1 / bend->cap : 0);
  else if (mask->whole) backward_rows_as(s, space, tile, mask, true, false, 0);
  else backward_rows_as(s, space, tile, mask, false, false, 0);
}

static void query_read(const attention_shape *s, const attention_args *a, const attention_space *space,
                       int64_t batch, int64_t head, int64_t tile, query_tile *query) {
  int64_t first = tile * SIDE, row = s->n_heads * s->e, o_row;
  query->first = first;
  query->n = attention_tile_rows(s, tile);
  int64_t heads = (batch * s->n_heads + head) * s->n_tokens + first;
  int64_t rows = ((batch * s->n_tokens + first) * s->n_heads + head) * s->e;
  const row_form of_o = {a->o, a->o_type, s->e, s->e_width},
                 of_dout = {a->dout, a->dout_type, s->e, s->e_width};
  const float *o = rows_read(of_o, rows, row, query->n, space->q, &o_row);
  query->dout = rows_read(of_dout, rows, row, query->n, space->o, &query->dout_row);
  for (int64_t i = 0; i < query->n; i++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < s->e; j++) sum += o[i * o_row + j] * query->dout[i * query->dout_row + j];
    query->product[i] = sum;
    query->lse[i] = a->lse[heads + i];
  }
  query->q = rows_read(query_form(s, a), heads * s->d, s->d, query->n, space->q, &query->q_row);
}

/* One query tile against all key tiles that it reads. */
static void backward_tile(const attention_shape *s, const attention_args *a, const attention_space *space,
                          const float *keys, int64_t k_row, int64_t batch, int64_t head, int64_t tile) {
  query_tile query;
  attention_mask mask;
  attention_bend bend = attention_bend_of(s, head, space->bias);
  bool first_met = true;
  query_read(s, a, space, batch, head, tile, &query);
  int64_t n = query.n, begin = attention_tiles_begin(s, batch, tile), end = attention_tiles_end(s, tile);
  attention_mask_queries(s, batch, tile, &mask);
  for (int64_t t = begin; t < end; t++) {
    int64_t n_keys = attention_key_rows(s, t), at = t * SIDE * s->width, at_value = t * SIDE * s->e_width;
    attention_mask_keys(s, t, &mask);
    attention_read read = attention_tile_read(s, head, &mask);
    if (read == READ_NOTHING) continue;
    tile_multiply((tile_product){n, SIDE, s->d, query.q, query.q_row, 1, space->k_packed + at, SIDE,
                                 space->score, SIDE, false});
    tile_multiply((tile_product){n, SIDE, s->e, query.dout, query.dout_row, 1, space->v_packed + at_value,
                                 SIDE, space->slope, SIDE, false});
    if (s->threshold) draw_tile(s, batch, head, &mask, n, space->words);
    rows_bend(s, space, &bend, &mask, head, n, read);
    backward_rows(s, space, &query, &mask, &bend);
    for (int64_t i = 0; bend.bias && i < n; i++)
      attention_bias_sums(&bend, space->slope + i * SIDE, mask.query[i], mask.place, 1, space->sums);
    tile_multiply((tile_product){n_keys, s->e_width, n, space->score, 1, SIDE, query.dout, query.dout_row,
                                 space->dv + at_value, s->e_width, true});
    tile_multiply((tile_product){n_keys, s->width, n, space->slope, 1, SIDE, query.q, query.q_row,
                                 space->dk + at, s->width, true});
    tile_multiply((tile_product){n, s->width, n_keys, space->slope, SIDE, 1, keys + t * SIDE * k_row, k_row,
                                 space->dq, s->width, !first_met});
    first_met = false;
  }
  if (first_met) memset(space->dq, 0, (size_t)(SIDE * s->width) * sizeof(float));
  int64_t start = ((batch * s->n_heads + head) * s->n_tokens + query.first) * s->d;
  for (int64_t i = 0; i < n; i++)
    vec_copy(a->dq, a->dq_type, start + i * s->d, space->dq, NX_f32, i * s->width, s->d);
}

/* A part of one key head's query tiles; dk and dv of the part stay in the thread's memory. */
static void backward_part(const attention_shape *s, const attention_args *a, const attention_space *space,
                          attention_part part) {
  int64_t group = s->n_heads / s->n_kv, batch = part.unit / s->n_kv, kv = part.unit % s->n_kv, k_row;
  int64_t start = part.unit * s->n_keys;
  size_t n_rows = (size_t)(s->n_key_tiles * SIDE);
  pack_transposed(s, key_form(s, a), start * s->d, space->packed_row, space->k_packed);
  pack_transposed(s, value_form(s, a), start * s->e, space->packed_row, space->v_packed);
  const float *keys = rows_read(key_form(s, a), start * s->d, s->d, s->n_keys, space->k, &k_row);
  memset(space->dk, 0, n_rows * (size_t)s->width * sizeof(float));
  memset(space->dv, 0, n_rows * (size_t)s->e_width * sizeof(float));
  for (int64_t head = kv * group; head < (kv + 1) * group; head++) {
    memset(space->sums, 0, (size_t)attention_distances(s) * sizeof *space->sums);
    for (int64_t tile = 0; tile < s->n_tiles; tile++)
      if ((head + tile) % part.n_parts == part.index)
        backward_tile(s, a, space, keys, k_row, batch, head, tile);
    if (s->n_buckets) attention_table_sums(s, head, space->sums, space->dtable);
  }
}

/* The part's share of the rows of dk and dv, summed over the parts in order. `others` begins the parts'
 * memory. */
static void backward_finish(const attention_shape *s, const attention_args *a, attention_part part,
                            char *others, uint64_t n_bytes) {
  cpu_span rows = cpu_share(s->n_keys, 1, part.index, part.n_parts);
  int64_t start = part.unit * s->n_keys;
  attention_space first, other;
  space_divide(s, true, others, &first);
  for (int64_t p = 1; p < part.n_parts; p++) {
    space_divide(s, true, others + (uint64_t)p * n_bytes, &other);
    attention_add(first.dk, other.dk, rows.begin * s->width, rows.end * s->width);
    attention_add(first.dv, other.dv, rows.begin * s->e_width, rows.end * s->e_width);
  }
  for (int64_t i = rows.begin; i < rows.end; i++) {
    vec_copy(a->dk, a->dk_type, (start + i) * s->d, first.dk, NX_f32, i * s->width, s->d);
    vec_copy(a->dv, a->dv_type, (start + i) * s->e, first.dv, NX_f32, i * s->e_width, s->e);
  }
}

/* The table's gradient, summed over the threads in order. */
static void table_finish(const nxk_kernel *kernel, const nxk_frame *frame, const attention_shape *s,
                         int64_t n_threads) {
  attention_space space;
  uint64_t n_bytes = space_divide(s, true, NULL, &space);
  float *dtable = cpu_out_at(kernel, frame, 3);
  for (int64_t i = 0; i < s->n_buckets * s->table_heads; i++) {
    double sum = 0;
    for (int64_t thread = 0; thread < n_threads; thread++) {
      space_divide(s, true, kernel->device->scratch + (uint64_t)thread * n_bytes, &space);
      sum += space.dtable[i];
    }
    dtable[i] = (float)sum;
  }
}

bool CPU_NAME(cpu_attention_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  attention_space space;
  if (!attention_types(kernel, true, false)) return false;
  attention_shape s = attention_shape_of(kernel, true);
  return cpu_reserve(kernel->device, space_divide(&s, true, NULL, &space) * kernel->device->n_threads,
                     "attention gradient", fault);
}

void CPU_NAME(cpu_attention_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = attention_shape_at(kernel, frame, true);
  attention_args a = attention_backward_args(kernel, frame);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    attention_space space;
    attention_work work = attention_work_of(&s, omp_get_thread_num(), n_threads);
    uint64_t n_bytes = space_divide(&s, true, NULL, &space);
    char *scratch = kernel->device->scratch;
    space_divide(&s, true, scratch + (uint64_t)work.thread * n_bytes, &space);
    memset(space.dtable, 0, (size_t)(s.n_buckets * s.table_heads) * sizeof *space.dtable);
    for (int64_t unit = work.units.begin; unit < work.units.end; unit++) {
      attention_part part = {unit, work.part, work.n_parts};
      backward_part(&s, &a, &space, part);
      if (work.n_parts == 1)
        backward_finish(&s, &a, part, scratch + (uint64_t)work.thread * n_bytes, n_bytes);
    }
#pragma omp barrier
    if (work.n_parts > 1 && work.units.begin < work.units.end)
      backward_finish(&s, &a, (attention_part){work.units.begin, work.part, work.n_parts},
                      scratch + (uint64_t)(work.thread - work.part) * n_bytes, n_bytes);
  }
  if (s.n_buckets) table_finish(kernel, frame, &s, n_threads);
}
