/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention on bf16 operands with bf16 products, fp32 sums and an fp32 softmax; for AVX512_BF16 and
 * for AMX.
 *
 * As attention.c, but every tile stands on its side: scores are [keys, queries], so that a vector holds
 * queries, the softmax runs down the rows, and weights and slopes come out in the layouts that the next
 * products read:
 *
 *   forward    s' = k q'     o' += v' p'
 *   backward   s' = k q'     dp' = v do'     dv += p' do     dk += ds' q     dq' += k' ds'
 *
 * A prime is a transpose. Left sides are rows of bf16, k and v as they lie in memory; right sides are pairs
 * of rows (tile16.h). Tiles at the end of the sequence are padded with zeros. Weights and slopes are rounded
 * to bf16. */
#include "kernels/cpu/attention16.h"
#include "kernels/cpu/family.h"

/* A thread's memory. w = d / 2 words in a row of d; of v, o and do d is e. */
typedef struct space16 {
  uint32_t *packed;                   /* [n_key_tiles, d, PAIRS]: v' forward, k' backward */
  uint32_t *q_across, *do_across;     /* [w, SIDE]: q', do' as right sides */
  uint32_t *q_pairs, *do_pairs;       /* [PAIRS, d]: q, do as right sides */
  uint32_t *k_end, *v_end;            /* [SIDE, w]: the last tile, padded */
  uint32_t *row_room, *turn_room;     /* [SIDE, the wider w] */
  float *score, *slope;               /* [SIDE, SIDE] */
  uint32_t *weight_rows, *slope_rows; /* [SIDE, PAIRS] bf16 */
  uint32_t *pairs;                    /* [PAIRS, SIDE]: p' or ds' as right side */
  float *across;                      /* [d, SIDE]: o' or dq' */
  float *dk, *dv;                     /* [n_key_tiles SIDE, d] */
  uint32_t *words;                    /* [SIDE, SIDE] random, [keys, queries] */
  float *bias;                        /* [distances] */
} space16;

/* Divides a thread's memory; with base 0 it measures it. */
static uint64_t space_divide(const attention_shape *s, bool backward, char *base, space16 *x) {
  char *at = base;
  int64_t rows = SIDE * s->d / 2, value_rows = SIDE * s->e / 2, square = SIDE * SIDE;
  int64_t packed = backward ? rows : value_rows, wider = attention_wider(rows, value_rows);
  *x = (space16){.packed = attention_take(&at, s->n_key_tiles * packed),
                 .q_across = attention_take(&at, rows)};
  x->k_end = attention_take(&at, rows);
  x->row_room = attention_take(&at, wider);
  x->turn_room = attention_take(&at, wider);
  x->score = attention_take(&at, square);
  x->pairs = attention_take(&at, square / 2);
  x->across = attention_take(&at, (backward ? s->d : s->e) * SIDE);
  x->words = attention_take(&at, square);
  x->bias = attention_take(&at, attention_distances(s));
  if (backward) {
    x->do_across = attention_take(&at, value_rows);
    x->q_pairs = attention_take(&at, rows);
    x->do_pairs = attention_take(&at, value_rows);
    x->v_end = attention_take(&at, value_rows);
    x->slope = attention_take(&at, square);
    x->weight_rows = attention_take(&at, square / 2);
    x->slope_rows = attention_take(&at, square / 2);
    x->dk = attention_take(&at, s->n_key_tiles * SIDE * s->d);
    x->dv = attention_take(&at, s->n_key_tiles * SIDE * s->e);
  }
  return (uint64_t)(at - base);
}

/* A tile of keys (or values) of d features of a head. */
static word_rows key_rows(const attention_shape *s, const void *x, int64_t d, int64_t head, int64_t tile,
                          const uint32_t *end) {
  if (attention_key_rows(s, tile) < SIDE) return (word_rows){end, d / 2};
  const uint16_t *from = (const uint16_t *)x + (head * s->n_keys + tile * SIDE) * d;
  return (word_rows){(const uint32_t *)(const void *)from, d / 2};
}

/* All keys (or values) of d features of a head, as left sides of their transposes. */
static void pack_transposed(const attention_shape *s, const space16 *x, const void *rows, int64_t d,
                            int64_t head) {
  for (int64_t t = 0; t < s->n_key_tiles; t++) {
    int64_t start = (head * s->n_keys + t * SIDE) * d;
    word_rows tile = rows_of(rows, d, start, d, attention_key_rows(s, t), x->row_room);
    rows_transposed(d, tile, x->turn_room, x->packed + t * d * PAIRS);
  }
}

/* The last tile of them, padded where it is not whole. */
static void pad_last(const attention_shape *s, const void *rows, int64_t d, int64_t head, uint32_t *end) {
  int64_t last = s->n_key_tiles - 1;
  rows_of(rows, d, (head * s->n_keys + last * SIDE) * d, d, attention_key_rows(s, last), end);
}

static void forward_tile(const attention_shape *s, const attention_args *a, const space16 *x, int64_t batch,
                         int64_t head, int64_t tile) {
  int64_t n = attention_tile_rows(s, tile), first = tile * SIDE, w = s->d / 2, e = s->e;
  int64_t kv = batch * s->n_kv + head / (s->n_heads / s->n_kv);
  int64_t queries = (batch * s->n_heads + head) * s->n_tokens + first;
  int64_t begin = attention_tiles_begin(s, batch, tile), end = attention_tiles_end(s, tile);
  attention_mask mask;
  attention_bend bend = attention_bend_of(s, head, x->bias);
  bool first_met = true;
  square_run run;
  float old[SIDE];
  for (int i = 0; i < SIDE; i++) run.max[i] = -INFINITY, run.sum[i] = 0;
  rows_across(s->d, rows_of(a->q, s->d, queries * s->d, s->d, n, x->row_room), x->q_across);
  attention_mask_queries(s, batch, tile, &mask);
  for (int64_t t = begin; t < end; t++) {
    attention_mask_keys(s, t, &mask);
    attention_read read = attention_tile_read(s, head, &mask);
    if (read == READ_NOTHING) continue;
    word_rows k = key_rows(s, a->k, s->d, kv, t, x->k_end);
    tile16_multiply(
        (tile16_product){SIDE, SIDE, w, k.words, k.row, x->q_across, SIDE, x->score, SIDE, false});
    square_bend(s, &bend, &mask, head, read, x->score);
    square_softmax(x->score, s->scale, &mask, &run, old);
    if (s->threshold) {
      draw_square(s, batch, head, &mask, x->words);
      square_drop(x->score, x->words, s->threshold);
    }
    square_paired(x->score, x->pairs);
    for (int64_t j = 0; !first_met && j < e; j++) {
      float *row = x->across + j * SIDE;
#pragma omp simd
      for (int i = 0; i < SIDE; i++) row[i] *= old[i];
    }
    tile16_multiply((tile16_product){e, SIDE, PAIRS, x->packed + t * e * PAIRS, PAIRS, x->pairs, SIDE,
                                     x->across, SIDE, !first_met});
    first_met = false;
  }
  if (first_met) memset(x->across, 0, (size_t)(e * SIDE) * sizeof *x->across);
  float kept = (float)(1 / (1 - s->dropout)), factors[SIDE];
  for (int i = 0; i < SIDE; i++) factors[i] = run.sum[i] > 0 ? kept / run.sum[i] : 0.0F;
  int64_t start = ((batch * s->n_tokens + first) * s->n_heads + head) * e;
  across_store(e, x->across, factors, n, a->out, a->out_type, start, s->n_heads * e);
  for (int64_t i = 0; i < n; i++)
    a->lse[queries + i] = (float)((double)(run.max[i] * s->scale) + log((double)run.sum[i]));
}

static void forward_share(const attention_shape *s, const attention_args *a, const space16 *x, int64_t begin,
                          int64_t end) {
  int64_t group = s->n_heads / s->n_kv, packed = -1;
  for (int64_t item = begin; item < end; item++) {
    int64_t head = item / s->n_tiles, batch = head / s->n_heads, local = head % s->n_heads;
    int64_t kv = batch * s->n_kv + local / group;
    if (kv != packed) {
      pack_transposed(s, x, a->v, s->e, kv);
      pad_last(s, a->k, s->d, kv, x->k_end);
      packed = kv;
    }
    forward_tile(s, a, x, batch, local, item % s->n_tiles);
  }
}

static bool shape_fits(const nxk_kernel *kernel, bool backward) {
  attention_shape s = attention_shape_of(kernel, backward);
  return attention_types(kernel, backward, true) && s.d % 32 == 0 && s.e % 32 == 0;
}

bool CPU_NAME(cpu_attention16_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  space16 space;
  if (!shape_fits(kernel, false)) return false;
  attention_shape s = attention_shape_of(kernel, false);
  return cpu_reserve(kernel->device, space_divide(&s, false, NULL, &space) * kernel->device->n_threads,
                     "attention", fault);
}

void CPU_NAME(cpu_attention16)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = attention_shape_at(kernel, frame, false);
  attention_args a = attention_forward_args(kernel, frame);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    space16 space;
    int64_t thread = omp_get_thread_num();
    uint64_t n_bytes = space_divide(&s, false, NULL, &space);
    space_divide(&s, false, kernel->device->scratch + (uint64_t)thread * n_bytes, &space);
    tile16_begin();
    forward_share(&s, &a, &space, attention_share_start(&s, thread, n_threads),
                  attention_share_start(&s, thread + 1, n_threads));
    tile16_end();
  }
}

static void query_read(const attention_shape *s, const attention_args *a, const space16 *x, int64_t batch,
                       int64_t head, int64_t tile, square_queries *query) {
  int64_t n = attention_tile_rows(s, tile), first = tile * SIDE, e = s->e, row = s->n_heads * e;
  int64_t queries = (batch * s->n_heads + head) * s->n_tokens + first;
  int64_t start = ((batch * s->n_tokens + first) * s->n_heads + head) * e;
  word_rows rows = rows_of(a->dout, e, start, row, n, x->row_room);
  rows_across(e, rows, x->do_across);
  rows_paired(e, rows, x->do_pairs);
  for (int64_t i = 0; i < SIDE; i++) {
    const uint16_t *dout = (const uint16_t *)a->dout + start + i * row,
                   *o = (const uint16_t *)a->o + start + i * row;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < (i < n ? e : 0); j++)
      sum += vec_float((uint32_t)dout[j] << 16) * vec_float((uint32_t)o[j] << 16);
    query->product[i] = sum;
    query->lse2[i] = i < n ? a->lse[queries + i] * log2_e : INFINITY;
  }
  rows = rows_of(a->q, s->d, queries * s->d, s->d, n, x->row_room);
  rows_across(s->d, rows, x->q_across);
  rows_paired(s->d, rows, x->q_pairs);
}

static void square_backward(const attention_shape *s, const space16 *x, const square_queries *query,
                            const attention_mask *mask, const attention_bend *bend) {
  square_slopes(s, x->score, x->slope, x->words, query, mask, bend);
  rows_round(x->score, (uint16_t *)x->weight_rows, SIDE * SIDE);
  rows_round(x->slope, (uint16_t *)x->slope_rows, SIDE * SIDE);
  square_paired(x->slope, x->pairs);
}

/* One query tile against all key tiles that it reads. */
static void backward_tile(const attention_shape *s, const attention_args *a, const space16 *x, int64_t batch,
                          int64_t head, int64_t tile) {
  int64_t d = s->d, e = s->e, kv = batch * s->n_kv + head / (s->n_heads / s->n_kv);
  int64_t begin = attention_tiles_begin(s, batch, tile), end = attention_tiles_end(s, tile);
  square_queries query;
  attention_mask mask;
  attention_bend bend = attention_bend_of(s, head, x->bias);
  bool first_met = true;
  query_read(s, a, x, batch, head, tile, &query);
  attention_mask_queries(s, batch, tile, &mask);
  for (int64_t t = begin; t < end; t++) {
    attention_mask_keys(s, t, &mask);
    attention_read read = attention_tile_read(s, head, &mask);
    if (read == READ_NOTHING) continue;
    word_rows k = key_rows(s, a->k, d, kv, t, x->k_end), v = key_rows(s, a->v, e, kv, t, x->v_end);
    tile16_multiply(
        (tile16_product){SIDE, SIDE, d / 2, k.words, k.row, x->q_across, SIDE, x->score, SIDE, false});
    tile16_multiply(
        (tile16_product){SIDE, SIDE, e / 2, v.words, v.row, x->do_across, SIDE, x->slope, SIDE, false});
    if (s->threshold) draw_square(s, batch, head, &mask, x->words);
    square_bend(s, &bend, &mask, head, read, x->score);
    square_backward(s, x, &query, &mask, &bend);
    tile16_multiply((tile16_product){SIDE, e, PAIRS, x->weight_rows, PAIRS, x->do_pairs, e,
                                     x->dv + t * SIDE * e, e, true});
    tile16_multiply(
        (tile16_product){SIDE, d, PAIRS, x->slope_rows, PAIRS, x->q_pairs, d, x->dk + t * SIDE * d, d, true});
    tile16_multiply((tile16_product){d, SIDE, PAIRS, x->packed + t * d * PAIRS, PAIRS, x->pairs, SIDE,
                                     x->across, SIDE, !first_met});
    first_met = false;
  }
  if (first_met) memset(x->across, 0, (size_t)(d * SIDE) * sizeof *x->across);
  float ones[SIDE];
  for (int i = 0; i < SIDE; i++) ones[i] = 1;
  across_store(d, x->across, ones, attention_tile_rows(s, tile), a->dq, a->dq_type,
               ((batch * s->n_heads + head) * s->n_tokens + tile * SIDE) * d, d);
}

/* A part of one key head's query tiles; dk and dv of the part stay in the thread's memory. */
static void backward_part(const attention_shape *s, const attention_args *a, const space16 *x,
                          attention_part part) {
  int64_t group = s->n_heads / s->n_kv, batch = part.unit / s->n_kv, kv = part.unit % s->n_kv;
  size_t n_rows = (size_t)(s->n_key_tiles * SIDE);
  pack_transposed(s, x, a->k, s->d, part.unit);
  pad_last(s, a->k, s->d, part.unit, x->k_end);
  pad_last(s, a->v, s->e, part.unit, x->v_end);
  memset(x->dk, 0, n_rows * (size_t)s->d * sizeof *x->dk);
  memset(x->dv, 0, n_rows * (size_t)s->e * sizeof *x->dv);
  for (int64_t head = kv * group; head < (kv + 1) * group; head++)
    for (int64_t tile = 0; tile < s->n_tiles; tile++)
      if ((head + tile) % part.n_parts == part.index) backward_tile(s, a, x, batch, head, tile);
}

/* The part's share of the rows of dk and dv, summed over the parts in order. `others` begins the parts'
 * memory. */
static void backward_finish(const attention_shape *s, const attention_args *a, attention_part part,
                            char *others, uint64_t n_bytes) {
  cpu_span rows = cpu_share(s->n_keys, 1, part.index, part.n_parts);
  int64_t start = part.unit * s->n_keys + rows.begin, n = rows.end - rows.begin;
  space16 first, other;
  space_divide(s, true, others, &first);
  for (int64_t p = 1; p < part.n_parts; p++) {
    space_divide(s, true, others + (uint64_t)p * n_bytes, &other);
    attention_add(first.dk, other.dk, rows.begin * s->d, rows.end * s->d);
    attention_add(first.dv, other.dv, rows.begin * s->e, rows.end * s->e);
  }
  rows_store(first.dk + rows.begin * s->d, a->dk, a->dk_type, start * s->d, n * s->d);
  rows_store(first.dv + rows.begin * s->e, a->dv, a->dv_type, start * s->e, n * s->e);
}

bool CPU_NAME(cpu_attention16_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  space16 space;
  if (!shape_fits(kernel, true)) return false;
  attention_shape s = attention_shape_of(kernel, true);
  return cpu_reserve(kernel->device, space_divide(&s, true, NULL, &space) * kernel->device->n_threads,
                     "attention gradient", fault);
}

void CPU_NAME(cpu_attention16_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = attention_shape_at(kernel, frame, true);
  attention_args a = attention_backward_args(kernel, frame);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    space16 space;
    attention_work work = attention_work_of(&s, omp_get_thread_num(), n_threads);
    uint64_t n_bytes = space_divide(&s, true, NULL, &space);
    char *scratch = kernel->device->scratch;
    space_divide(&s, true, scratch + (uint64_t)work.thread * n_bytes, &space);
    tile16_begin();
    for (int64_t unit = work.units.begin; unit < work.units.end; unit++) {
      attention_part part = {unit, work.part, work.n_parts};
      backward_part(&s, &a, &space, part);
      if (work.n_parts == 1)
        backward_finish(&s, &a, part, scratch + (uint64_t)work.thread * n_bytes, n_bytes);
    }
    tile16_end();
#pragma omp barrier
    if (work.n_parts > 1 && work.units.begin < work.units.end)
      backward_finish(&s, &a, (attention_part){work.units.begin, work.part, work.n_parts},
                      scratch + (uint64_t)(work.thread - work.part) * n_bytes, n_bytes);
  }
}

/* Only what is faster than in the AVX-512 table. */
const cpu_table CPU_NAME(cpu_table) = {
    .families =
        {
            [NX_OP_attention] = {CPU_NAME(cpu_attention16_bind), CPU_NAME(cpu_attention16)},
            [NX_OP_attention_grad] = {CPU_NAME(cpu_attention16_grad_bind), CPU_NAME(cpu_attention16_grad)},
            [NX_OP_attention_relative] = {CPU_NAME(cpu_attention16_bind), CPU_NAME(cpu_attention16)},
            [NX_OP_attention_sparse] = {CPU_NAME(cpu_attention16_bind), CPU_NAME(cpu_attention16)},
            [NX_OP_attention_sparse_grad] = {CPU_NAME(cpu_attention16_grad_bind),
                                             CPU_NAME(cpu_attention16_grad)},
        },
};
