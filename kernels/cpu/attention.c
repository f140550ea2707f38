/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention in fp32, tile by tile of keys by queries; scores never leave a thread's tile.
 *
 *   forward    s' = k q'     o += p v
 *   backward   s' = k q'     dp' = v do'     dv += p' do     dk += ds' q     dq += ds k
 *
 * A prime is a transpose: scores stand [keys, queries], and the products read them either way. Only q and do
 * are transposed, a tile at a time. Forward keeps a running maximum and sum per query; backward recomputes
 * the weights from lse and walks each query tile once, summing dq in a tile and dk, dv for the whole key
 * head. Division of the scores by the layer number is undone inside the fp32 softmax, so nothing is left of
 * it here. Dropped weights are drawn again, backward, from the same counters. */
#include "kernels/cpu/attention_square.h"
#include "kernels/cpu/family.h"
#include "kernels/cpu/tile.h"

/* A thread's memory; every block is 64-byte aligned. */
typedef struct attention_space {
  float *k, *v;   /* [n_keys, width], where they are not stored so; of values e_width, here too */
  float *dk, *dv; /* [n_keys, width] */
  float *q, *dq;  /* [SIDE, width]; q is o's too, before it */
  float *o;       /* [SIDE, e_width]; do backward */
  float *q_across, *do_across; /* [width, SIDE], transposed */
  float *score, *slope;        /* [SIDE, SIDE] */
  uint32_t *words;             /* [SIDE, SIDE] */
  float *bias;                 /* [distances] */
  double *sums, *dtable;       /* [distances]; [n_buckets, table_heads] */
} attention_space;

/* Divides a thread's memory; with base 0 it measures it. */
static uint64_t space_divide(const attention_shape *s, bool backward, char *base, attention_space *space) {
  char *at = base;
  *space = (attention_space){.k = attention_take(&at, s->n_keys * s->width),
                             .v = attention_take(&at, s->n_keys * s->e_width)};
  space->q = attention_take(&at, SIDE * attention_wider(s->width, s->e_width));
  space->o = attention_take(&at, SIDE * s->e_width);
  space->q_across = attention_take(&at, SIDE * s->width);
  space->score = attention_take(&at, SIDE * SIDE);
  space->words = attention_take(&at, SIDE * SIDE);
  space->bias = attention_take(&at, attention_distances(s));
  if (backward) {
    space->sums = attention_take(&at, 2 * attention_distances(s));
    space->dtable = attention_take(&at, 2 * s->n_buckets * s->table_heads);
    space->dk = attention_take(&at, s->n_keys * s->width);
    space->dv = attention_take(&at, s->n_keys * s->e_width);
    space->dq = attention_take(&at, SIDE * s->width);
    space->do_across = attention_take(&at, SIDE * s->e_width);
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

/* Rows `stride` apart as fp32, side by side: in place where they are stored so. */
static const float *rows_read(row_form x, int64_t start, int64_t stride, int64_t n_rows, float *room) {
  if (x.type == NX_f32 && x.width == x.d && stride == x.d) return (const float *)x.data + start;
  for (int64_t i = 0; i < n_rows; i++) {
    vec_copy(room, NX_f32, i * x.width, x.data, x.type, start + i * stride, x.d);
    for (int64_t j = x.d; j < x.width; j++) room[i * x.width + j] = 0;
  }
  return room;
}

/* At most SIDE rows transposed to [width, SIDE]; zeros stand behind the last. */
static void rows_across(const float *rows, int64_t n, int64_t width, float *across) {
  if (n < SIDE) memset(across, 0, (size_t)(width * SIDE) * sizeof *across);
  for (int64_t j = 0; j < width; j++) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) across[j * SIDE + i] = rows[i * width + j];
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

/* The keys and values of a key head. */
typedef struct head_rows {
  const float *k, *v;
} head_rows;

static head_rows head_read(const attention_shape *s, const attention_args *a, const attention_space *space,
                           int64_t head) {
  int64_t start = head * s->n_keys;
  return (head_rows){rows_read(key_form(s, a), start * s->d, s->d, s->n_keys, space->k),
                     rows_read(value_form(s, a), start * s->e, s->e, s->n_keys, space->v)};
}

static void rows_scale(float *o, const float *factors, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) {
    if (factors[i] == 1) continue;
#pragma omp simd
    for (int64_t j = 0; j < width; j++) o[i * width + j] *= factors[i];
  }
}

/* o over the sums of the weights, and lse. */
static void forward_finish(const attention_shape *s, const attention_args *a, const attention_space *space,
                           const square_run *run, int64_t batch, int64_t head, int64_t tile) {
  int64_t first = tile * SIDE, n = attention_tile_rows(s, tile);
  float kept = (float)(1 / (1 - s->dropout)), factors[SIDE];
  for (int64_t i = 0; i < n; i++) factors[i] = run->sum[i] > 0 ? kept / run->sum[i] : 0.0F;
  rows_scale(space->o, factors, n, s->e_width);
  float *lse = a->lse + (batch * s->n_heads + head) * s->n_tokens + first;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = ((batch * s->n_tokens + first + i) * s->n_heads + head) * s->e;
    vec_copy(a->out, a->out_type, at, space->o, NX_f32, i * s->e_width, s->e);
    lse[i] = (float)((double)(run->max[i] * s->scale) + log((double)run->sum[i]));
  }
}

static void forward_tile(const attention_shape *s, const attention_args *a, const attention_space *space,
                         head_rows rows, int64_t batch, int64_t head, int64_t tile) {
  square_run run;
  attention_mask mask;
  int64_t n = attention_tile_rows(s, tile), width = s->width, e_width = s->e_width;
  int64_t start = ((batch * s->n_heads + head) * s->n_tokens + tile * SIDE) * s->d;
  int64_t begin = attention_tiles_begin(s, batch, tile), end = attention_tiles_end(s, tile);
  float old[SIDE];
  rows_across(rows_read(query_form(s, a), start, s->d, n, space->q), n, width, space->q_across);
  for (int i = 0; i < SIDE; i++) run.max[i] = -INFINITY, run.sum[i] = 0;
  memset(space->o, 0, (size_t)(SIDE * e_width) * sizeof(float));
  attention_mask_queries(s, batch, tile, &mask);
  attention_bend bend = attention_bend_of(s, head, space->bias);
  bool first_met = true;
  for (int64_t t = begin; t < end; t++) {
    int64_t n_keys = attention_key_rows(s, t);
    attention_mask_keys(s, t, &mask);
    attention_read read = attention_tile_read(s, head, &mask);
    if (read == READ_NOTHING) continue;
    tile_multiply((tile_product){n_keys, SIDE, s->d, rows.k + t * SIDE * width, width, 1, space->q_across,
                                 SIDE, space->score, SIDE, false});
    square_bend(s, &bend, &mask, head, read, space->score);
    square_softmax(space->score, s->scale, &mask, &run, old);
    if (s->threshold) {
      draw_square(s, batch, head, &mask, space->words);
      square_drop(space->score, space->words, s->threshold);
    }
    if (!first_met) rows_scale(space->o, old, n, e_width);
    tile_multiply((tile_product){n, e_width, n_keys, space->score, 1, SIDE, rows.v + t * SIDE * e_width,
                                 e_width, space->o, e_width, true});
    first_met = false;
  }
  forward_finish(s, a, space, &run, batch, head, tile);
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
  int64_t group = s->n_heads / s->n_kv, met = -1;
  head_rows rows = {0};
  for (int64_t item = begin; item < end; item++) {
    int64_t head = item / s->n_tiles, batch = head / s->n_heads, local = head % s->n_heads;
    int64_t kv = batch * s->n_kv + local / group;
    if (kv != met) rows = head_read(s, a, space, kv);
    met = kv;
    forward_tile(s, a, space, rows, batch, local, item % s->n_tiles);
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
  square_queries sums;
} query_tile;

static void query_read(const attention_shape *s, const attention_args *a, const attention_space *space,
                       int64_t batch, int64_t head, int64_t tile, query_tile *query) {
  int64_t first = tile * SIDE, n = attention_tile_rows(s, tile), stride = s->n_heads * s->e, e = s->e_width;
  int64_t queries = (batch * s->n_heads + head) * s->n_tokens + first;
  int64_t start = ((batch * s->n_tokens + first) * s->n_heads + head) * s->e;
  const row_form of_o = {a->o, a->o_type, s->e, e}, of_dout = {a->dout, a->dout_type, s->e, e};
  const float *o = rows_read(of_o, start, stride, n, space->q);
  query->dout = rows_read(of_dout, start, stride, n, space->o);
  for (int64_t i = 0; i < SIDE; i++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < (i < n ? e : 0); j++) sum += o[i * e + j] * query->dout[i * e + j];
    query->sums.product[i] = sum;
    query->sums.lse2[i] = i < n ? a->lse[queries + i] * log2_e : INFINITY;
  }
  query->q = rows_read(query_form(s, a), queries * s->d, s->d, n, space->q);
  rows_across(query->q, n, s->width, space->q_across);
  rows_across(query->dout, n, e, space->do_across);
}

/* One query tile against all key tiles that it reads. */
static void backward_tile(const attention_shape *s, const attention_args *a, const attention_space *space,
                          head_rows rows, int64_t batch, int64_t head, int64_t tile) {
  query_tile query;
  attention_mask mask;
  attention_bend bend = attention_bend_of(s, head, space->bias);
  bool first_met = true;
  query_read(s, a, space, batch, head, tile, &query);
  int64_t n = attention_tile_rows(s, tile), width = s->width, e_width = s->e_width;
  int64_t begin = attention_tiles_begin(s, batch, tile), end = attention_tiles_end(s, tile);
  attention_mask_queries(s, batch, tile, &mask);
  for (int64_t t = begin; t < end; t++) {
    int64_t n_keys = attention_key_rows(s, t), at = t * SIDE * width, at_value = t * SIDE * e_width;
    attention_mask_keys(s, t, &mask);
    attention_read read = attention_tile_read(s, head, &mask);
    if (read == READ_NOTHING) continue;
    tile_multiply((tile_product){n_keys, SIDE, s->d, rows.k + at, width, 1, space->q_across, SIDE,
                                 space->score, SIDE, false});
    tile_multiply((tile_product){n_keys, SIDE, s->e, rows.v + at_value, e_width, 1, space->do_across, SIDE,
                                 space->slope, SIDE, false});
    if (s->threshold) draw_square(s, batch, head, &mask, space->words);
    square_bend(s, &bend, &mask, head, read, space->score);
    square_slopes(s, space->score, space->slope, space->words, &query.sums, &mask, &bend);
    for (int64_t j = 0; bend.bias && j < n_keys; j++)
      attention_bias_sums(&bend, space->slope + j * SIDE, mask.place[j], &mask, space->sums);
    tile_multiply((tile_product){n_keys, e_width, n, space->score, SIDE, 1, query.dout, e_width,
                                 space->dv + at_value, e_width, true});
    tile_multiply(
        (tile_product){n_keys, width, n, space->slope, SIDE, 1, query.q, width, space->dk + at, width, true});
    tile_multiply((tile_product){n, width, n_keys, space->slope, 1, SIDE, rows.k + at, width, space->dq,
                                 width, !first_met});
    first_met = false;
  }
  if (first_met) memset(space->dq, 0, (size_t)(SIDE * width) * sizeof(float));
  int64_t start = ((batch * s->n_heads + head) * s->n_tokens + tile * SIDE) * s->d;
  for (int64_t i = 0; i < n; i++)
    vec_copy(a->dq, a->dq_type, start + i * s->d, space->dq, NX_f32, i * width, s->d);
}

/* A part of one key head's query tiles; dk and dv of the part stay in the thread's memory. */
static void backward_part(const attention_shape *s, const attention_args *a, const attention_space *space,
                          attention_part part) {
  int64_t group = s->n_heads / s->n_kv, batch = part.unit / s->n_kv, kv = part.unit % s->n_kv;
  head_rows rows = head_read(s, a, space, part.unit);
  memset(space->dk, 0, (size_t)(s->n_keys * s->width) * sizeof(float));
  memset(space->dv, 0, (size_t)(s->n_keys * s->e_width) * sizeof(float));
  for (int64_t head = kv * group; head < (kv + 1) * group; head++) {
    memset(space->sums, 0, (size_t)attention_distances(s) * sizeof *space->sums);
    for (int64_t tile = 0; tile < s->n_tiles; tile++)
      if ((head + tile) % part.n_parts == part.index) backward_tile(s, a, space, rows, batch, head, tile);
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
