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
#include "kernels/cpu/attention32.h"
#include "kernels/cpu/family.h"

/* Query tiles that a thread takes at a time, so that a tile of keys is read for all of them together. */
enum { TOGETHER = 4 };

static const square_part whole_square = {0, SIDE, 0, SIDE};

/* A thread's memory; every block is 64-byte aligned. */
typedef struct attention_space {
  float *k, *v;   /* [n_keys, width], where they are not stored so; of values e_width, here too */
  float *dk, *dv; /* [n_keys, width] */
  float *q, *dq;  /* [TOGETHER, SIDE, width]; q is o's too, before it */
  float *o;       /* [TOGETHER, SIDE, e_width]; do backward */
  float *q_across, *do_across; /* [TOGETHER, width, SIDE], transposed */
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
  space->q = attention_take(&at, TOGETHER * SIDE * attention_wider(s->width, s->e_width));
  space->o = attention_take(&at, TOGETHER * SIDE * s->e_width);
  space->q_across = attention_take(&at, TOGETHER * SIDE * s->width);
  space->score = attention_take(&at, SIDE * SIDE);
  space->words = attention_take(&at, SIDE * SIDE);
  space->bias = attention_take(&at, attention_distances(s));
  if (backward) {
    space->sums = attention_take(&at, 2 * attention_distances(s));
    space->dtable = attention_take(&at, 2 * s->n_buckets * s->table_heads);
    space->dk = attention_take(&at, s->n_keys * s->width);
    space->dv = attention_take(&at, s->n_keys * s->e_width);
    space->dq = attention_take(&at, TOGETHER * SIDE * s->width);
    space->do_across = attention_take(&at, TOGETHER * SIDE * s->e_width);
    space->slope = attention_take(&at, SIDE * SIDE);
  }
  return (uint64_t)(at - base);
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

/* A query tile on its way over the tiles of keys; its rooms are its part of the thread's memory. */
typedef struct query_tile {
  int64_t batch, head, tile, n, begin, end; /* key tiles from begin to end */
  attention_mask mask;
  const float *q, *dout;
  float *room, *q_across, *do_across, *o, *dq;
  bool met; /* a tile of keys */
  square_run run;
  square_queries sums;
} query_tile;

static query_tile query_tile_of(const attention_shape *s, const attention_space *space, int64_t batch,
                                int64_t head, int64_t tile, int64_t index) {
  int64_t at = index * SIDE;
  query_tile query = {.batch = batch,
                      .head = head,
                      .tile = tile,
                      .n = attention_tile_rows(s, tile),
                      .begin = attention_tiles_begin(s, batch, tile),
                      .end = attention_tiles_end(s, tile)};
  query.room = space->q + at * attention_wider(s->width, s->e_width);
  query.q_across = space->q_across + at * s->width;
  query.o = space->o + at * s->e_width;
  attention_mask_queries(s, batch, tile, &query.mask);
  return query;
}

/* Where its queries begin among those of all heads, and its rows of o among those of all tokens. */
static int64_t query_start(const attention_shape *s, const query_tile *query) {
  return (query->batch * s->n_heads + query->head) * s->n_tokens + query->tile * SIDE;
}

static int64_t query_rows_start(const attention_shape *s, const query_tile *query) {
  return ((query->batch * s->n_tokens + query->tile * SIDE) * s->n_heads + query->head) * s->e;
}

static void query_read(const attention_shape *s, const attention_args *a, query_tile *query) {
  query->q = rows_read(query_form(s, a), query_start(s, query) * s->d, s->d, query->n, query->room);
  rows_across(query->q, query->n, s->width, query->q_across);
}

/* What it does with key tile t. */
typedef void query_meet(const attention_shape *s, const attention_space *space, const attention_bend *bend,
                        head_rows rows, int64_t t, query_tile *query);

/* Every key tile meets those of n query tiles of a head that read it. */
static void tiles_walk(const attention_shape *s, const attention_space *space, head_rows rows,
                       query_tile *queries, int64_t n, query_meet *meet) {
  attention_bend bend = attention_bend_of(s, queries->head, space->bias);
  int64_t begin = s->n_key_tiles, end = 0;
  for (int64_t i = 0; i < n; i++) {
    if (queries[i].begin < begin) begin = queries[i].begin;
    if (queries[i].end > end) end = queries[i].end;
  }
  for (int64_t t = begin; t < end; t++)
    for (int64_t i = 0; i < n; i++)
      if (t >= queries[i].begin && t < queries[i].end) meet(s, space, &bend, rows, t, &queries[i]);
}

static void forward_begin(const attention_shape *s, const attention_args *a, query_tile *query) {
  query_read(s, a, query);
  for (int i = 0; i < SIDE; i++) query->run.max[i] = -INFINITY, query->run.sum[i] = 0;
  memset(query->o, 0, (size_t)(SIDE * s->e_width) * sizeof(float));
}

static void forward_meet(const attention_shape *s, const attention_space *space, const attention_bend *bend,
                         head_rows rows, int64_t t, query_tile *query) {
  int64_t n_keys = attention_key_rows(s, t), width = s->width, e_width = s->e_width;
  attention_mask *mask = &query->mask;
  float old[SIDE];
  attention_mask_keys(s, t, mask);
  attention_read read = attention_tile_read(s, query->head, mask);
  if (read == READ_NOTHING) return;
  scores_multiply(mask, (tile_product){n_keys, SIDE, s->d, rows.k + t * SIDE * width, width, 1,
                                       query->q_across, SIDE, space->score, SIDE, false});
  square_bend(s, bend, mask, query->head, read, whole_square, space->score);
  square_softmax(space->score, s->scale, mask, &query->run, old);
  if (s->threshold) {
    draw_square(s, query->batch, query->head, mask, space->words);
    square_drop(space->score, space->words, s->threshold);
  }
  if (query->met) rows_scale(query->o, old, query->n, e_width);
  queries_multiply(mask, (tile_product){query->n, e_width, n_keys, space->score, 1, SIDE,
                                        rows.v + t * SIDE * e_width, e_width, query->o, e_width, true});
  query->met = true;
}

/* o over the sums of the weights, and lse. */
static void forward_finish(const attention_shape *s, const attention_args *a, const query_tile *query) {
  const square_run *run = &query->run;
  float kept = (float)(1 / (1 - s->dropout)), factors[SIDE], *lse = a->lse + query_start(s, query);
  for (int64_t i = 0; i < query->n; i++) factors[i] = run->sum[i] > 0 ? kept / run->sum[i] : 0.0F;
  rows_scale(query->o, factors, query->n, s->e_width);
  for (int64_t i = 0; i < query->n; i++) {
    vec_copy(a->out, a->out_type, query_rows_start(s, query) + i * s->n_heads * s->e, query->o, NX_f32,
             i * s->e_width, s->e);
    lse[i] = (float)((double)(run->max[i] * s->scale) + log((double)run->sum[i]));
  }
}

/* n query tiles of a head. */
static void forward_tiles(const attention_shape *s, const attention_args *a, const attention_space *space,
                          head_rows rows, int64_t batch, int64_t head, int64_t tile, int64_t n) {
  query_tile queries[TOGETHER];
  for (int64_t i = 0; i < n; i++) {
    queries[i] = query_tile_of(s, space, batch, head, tile + i, i);
    forward_begin(s, a, &queries[i]);
  }
  tiles_walk(s, space, rows, queries, n, forward_meet);
  for (int64_t i = 0; i < n; i++) forward_finish(s, a, &queries[i]);
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
  for (int64_t item = begin, n; item < end; item += n) {
    int64_t head = item / s->n_tiles, batch = head / s->n_heads, local = head % s->n_heads;
    int64_t kv = batch * s->n_kv + local / group, tile = item % s->n_tiles;
    n = s->n_tiles - tile < end - item ? s->n_tiles - tile : end - item;
    if (n > TOGETHER) n = TOGETHER;
    if (kv != met) rows = head_read(s, a, space, kv);
    met = kv;
    forward_tiles(s, a, space, rows, batch, local, tile, n);
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
                          head_rows rows, int64_t t, query_tile *query) {
  int64_t n_keys = attention_key_rows(s, t), n = query->n, width = s->width, e_width = s->e_width;
  int64_t at = t * SIDE * width, at_value = t * SIDE * e_width;
  attention_mask *mask = &query->mask;
  attention_mask_keys(s, t, mask);
  attention_read read = attention_tile_read(s, query->head, mask);
  if (read == READ_NOTHING) return;
  scores_multiply(mask, (tile_product){n_keys, SIDE, s->d, rows.k + at, width, 1, query->q_across, SIDE,
                                       space->score, SIDE, false});
  scores_multiply(mask, (tile_product){n_keys, SIDE, s->e, rows.v + at_value, e_width, 1, query->do_across,
                                       SIDE, space->slope, SIDE, false});
  if (s->threshold) draw_square(s, query->batch, query->head, mask, space->words);
  square_bend(s, bend, mask, query->head, read, whole_square, space->score);
  square_slopes(s, space->score, space->slope, space->words, &query->sums, mask, bend);
  for (int64_t j = 0; bend->bias && j < n_keys; j++)
    attention_bias_sums(bend, space->slope + j * SIDE, mask->place[j], mask, space->sums);
  keys_multiply(mask, (tile_product){n_keys, e_width, n, space->score, SIDE, 1, query->dout, e_width,
                                     space->dv + at_value, e_width, true});
  keys_multiply(mask, (tile_product){n_keys, width, n, space->slope, SIDE, 1, query->q, width, space->dk + at,
                                     width, true});
  queries_multiply(mask, (tile_product){n, width, n_keys, space->slope, 1, SIDE, rows.k + at, width,
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
                           head_rows rows, int64_t batch, int64_t head, int64_t tile, int64_t step,
                           int64_t n) {
  query_tile queries[TOGETHER];
  for (int64_t i = 0; i < n; i++) {
    queries[i] = query_tile_of(s, space, batch, head, tile + i * step, i);
    backward_begin(s, a, space, i, &queries[i]);
  }
  tiles_walk(s, space, rows, queries, n, backward_meet);
  for (int64_t i = 0; i < n; i++) backward_store(s, a, &queries[i]);
}

/* A part of one key head's query tiles; dk and dv of the part stay in the thread's memory. */
static void backward_part(const attention_shape *s, const attention_args *a, const attention_space *space,
                          attention_part part) {
  int64_t group = s->n_heads / s->n_kv, batch = part.unit / s->n_kv, kv = part.unit % s->n_kv;
  int64_t step = part.n_parts;
  head_rows rows = head_read(s, a, space, part.unit);
  memset(space->dk, 0, (size_t)(s->n_keys * s->width) * sizeof(float));
  memset(space->dv, 0, (size_t)(s->n_keys * s->e_width) * sizeof(float));
  for (int64_t head = kv * group; head < (kv + 1) * group; head++) {
    int64_t first = ((part.index - head) % step + step) % step;
    memset(space->sums, 0, (size_t)attention_distances(s) * sizeof *space->sums);
    for (int64_t tile = first; tile < s->n_tiles; tile += TOGETHER * step) {
      int64_t left = (s->n_tiles - tile + step - 1) / step;
      backward_tiles(s, a, space, rows, batch, head, tile, step, left < TOGETHER ? left : TOGETHER);
    }
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
