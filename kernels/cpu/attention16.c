/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention on bf16 operands with bf16 products, fp32 sums and an fp32 softmax; for AVX512_BF16 and
 * for AMX. attention16_grad.c has its gradient.
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
#include "kernels/cpu/attention16_weights.h"
#include "kernels/cpu/family.h"

/* Query tiles that meet a tile of keys one after another, while it lies in the caches, and tiles of keys
 * whose products with the values are one. */
enum { TOGETHER = 4, PIECES = 4 };

/* A thread's memory. w = d / 2 words in a row of d. */
typedef struct space16 {
  uint32_t *packed;               /* [n_key_tiles, e, PAIRS]: v' */
  uint32_t *q_across;             /* [TOGETHER, w, SIDE]: q' as right sides */
  float *across;                  /* [TOGETHER, e, SIDE]: o' */
  uint32_t *k_end;                /* [SIDE, w]: the last tile, padded */
  uint32_t *row_room, *turn_room; /* [SIDE, the wider w] */
  float *score;                   /* [SIDE, SIDE] */
  uint32_t *pairs;                /* [PIECES, PAIRS, SIDE]: p' as right sides */
  uint32_t *words;                /* [SIDE, SIDE] random, [keys, queries] */
  float *bias;                    /* [distances] */
} space16;

/* Divides a thread's memory; with base 0 it measures it. */
static uint64_t space_divide(const attention_shape *s, char *base, space16 *x) {
  char *at = base;
  int64_t rows = SIDE * s->d / 2, value_rows = SIDE * s->e / 2, wider = attention_wider(rows, value_rows);
  *x = (space16){.packed = attention_take(&at, s->n_key_tiles * value_rows),
                 .q_across = attention_take(&at, TOGETHER * rows)};
  x->across = attention_take(&at, TOGETHER * s->e * SIDE);
  x->k_end = attention_take(&at, rows);
  x->row_room = attention_take(&at, wider);
  x->turn_room = attention_take(&at, wider);
  x->score = attention_take(&at, SIDE * SIDE);
  x->pairs = attention_take(&at, PIECES * PAIRS * SIDE);
  x->words = attention_take(&at, SIDE * SIDE);
  x->bias = attention_take(&at, attention_distances(s));
  return (uint64_t)(at - base);
}

/* A query tile on its way over the tiles of keys. */
typedef struct query16 {
  int64_t batch, head, tile, begin, end; /* key tiles from begin to end */
  attention_mask mask;
  uint32_t *q_across;
  float *across;
  int64_t first, n_pending; /* tiles of keys whose weights wait in pairs */
  bool met;                 /* a product is in `across` */
  square_run run;
} query16;

/* Where its queries begin among those of all heads. */
static int64_t query_start(const attention_shape *s, const query16 *q) {
  return (q->batch * s->n_heads + q->head) * s->n_tokens + q->tile * SIDE;
}

static void query_begin(const attention_shape *s, const attention_args *a, const space16 *x, int64_t index,
                        query16 *q) {
  q->begin = attention_tiles_begin(s, q->batch, q->tile);
  q->end = attention_tiles_end(s, q->tile);
  q->q_across = x->q_across + index * SIDE * (s->d / 2);
  q->across = x->across + index * SIDE * s->e;
  for (int i = 0; i < SIDE; i++) q->run.max[i] = -INFINITY, q->run.sum[i] = 0;
  int64_t start = query_start(s, q) * s->d, n = attention_tile_rows(s, q->tile);
  rows_across(s->d, rows_of(a->q, s->d, start, s->d, n, x->row_room), q->q_across);
  attention_mask_queries(s, q->batch, q->tile, &q->mask);
}

/* What waits is multiplied. */
static void query_flush(const attention_shape *s, const space16 *x, query16 *q) {
  int64_t e = s->e;
  if (q->n_pending == 0) return;
  tile16_multiply((tile16_product){e, SIDE, PAIRS, x->packed + q->first * e * PAIRS, PAIRS, x->pairs, SIDE,
                                   q->across, SIDE, q->met, q->n_pending, e * PAIRS, PAIRS * SIDE});
  q->met = true;
  q->n_pending = 0;
}

static void query_scale(const attention_shape *s, query16 *q, const float *factors) {
  for (int64_t j = 0; q->met && j < s->e; j++) {
    float *row = q->across + j * SIDE;
#pragma omp simd
    for (int i = 0; i < SIDE; i++) row[i] *= factors[i];
  }
}

static void query_meet(const attention_shape *s, const space16 *x, const attention_bend *bend, word_rows k,
                       int64_t t, query16 *q) {
  float old[SIDE];
  attention_mask_keys(s, t, &q->mask);
  attention_read read = attention_tile_read(s, q->head, &q->mask);
  if (read == READ_NOTHING) return;
  if (t != q->first + q->n_pending) query_flush(s, x, q);
  tile16_multiply(
      (tile16_product){SIDE, SIDE, s->d / 2, k.words, k.row, q->q_across, SIDE, x->score, SIDE, false});
  square_bend(s, bend, &q->mask, q->head, read, x->score);
  if (weights_base(s, x->score, &q->mask, &q->run, old)) {
    query_flush(s, x, q);
    query_scale(s, q, old);
  }
  if (s->threshold) draw_square(s, q->batch, q->head, &q->mask, x->words);
  if (q->n_pending == 0) q->first = t;
  weights_pairs(s, x->score, &q->mask, x->words, &q->run, x->pairs + q->n_pending++ * PAIRS * SIDE);
}

/* A tile of the keys of a head. */
static word_rows keys_of(const attention_shape *s, const attention_args *a, const space16 *x, int64_t kv,
                         int64_t t) {
  if (attention_key_rows(s, t) < SIDE) return (word_rows){x->k_end, s->d / 2};
  const uint16_t *from = (const uint16_t *)a->k + (kv * s->n_keys + t * SIDE) * s->d;
  return (word_rows){(const uint32_t *)(const void *)from, s->d / 2};
}

static void query_finish(const attention_shape *s, const attention_args *a, query16 *q) {
  int64_t n = attention_tile_rows(s, q->tile), e = s->e;
  float kept = (float)(1 / (1 - s->dropout)), factors[SIDE], lse[SIDE];
  const square_run *run = &q->run;
  if (!q->met) memset(q->across, 0, (size_t)(e * SIDE) * sizeof *q->across);
#pragma omp simd
  for (int i = 0; i < SIDE; i++) {
    factors[i] = run->sum[i] > 0 ? kept / run->sum[i] : 0.0F;
    lse[i] = run->max[i] * s->scale + vec_log(run->sum[i]);
  }
  int64_t start = ((q->batch * s->n_tokens + q->tile * SIDE) * s->n_heads + q->head) * e;
  across_store(e, q->across, factors, n, a->out, a->out_type, start, s->n_heads * e);
  memcpy(a->lse + query_start(s, q), lse, (size_t)n * sizeof *lse);
}

/* n query tiles of a head. */
static void forward_tiles(const attention_shape *s, const attention_args *a, const space16 *x, int64_t kv,
                          int64_t batch, int64_t head, int64_t tile, int64_t n) {
  query16 queries[TOGETHER];
  attention_bend bend = attention_bend_of(s, head, x->bias);
  int64_t begin = s->n_key_tiles, end = 0;
  for (int64_t i = 0; i < n; i++) {
    queries[i] = (query16){.batch = batch, .head = head, .tile = tile + i};
    query_begin(s, a, x, i, &queries[i]);
    if (queries[i].begin < begin) begin = queries[i].begin;
    if (queries[i].end > end) end = queries[i].end;
  }
  for (int64_t t = begin; t < end; t += PIECES)
    for (int64_t i = 0; i < n; i++) {
      for (int64_t u = t; u < t + PIECES; u++)
        if (u >= queries[i].begin && u < queries[i].end)
          query_meet(s, x, &bend, keys_of(s, a, x, kv, u), u, &queries[i]);
      query_flush(s, x, &queries[i]);
    }
  for (int64_t i = 0; i < n; i++) query_finish(s, a, &queries[i]);
}

/* The keys and values of a head: values as left sides of their transposes, and the last tile of keys padded.
 */
static void head_pack(const attention_shape *s, const attention_args *a, const space16 *x, int64_t kv) {
  for (int64_t t = 0; t < s->n_key_tiles; t++) {
    int64_t start = (kv * s->n_keys + t * SIDE) * s->e;
    word_rows tile = rows_of(a->v, s->e, start, s->e, attention_key_rows(s, t), x->row_room);
    rows_transposed(s->e, tile, x->turn_room, x->packed + t * s->e * PAIRS);
  }
  int64_t last = s->n_key_tiles - 1, start = (kv * s->n_keys + last * SIDE) * s->d;
  rows_of(a->k, s->d, start, s->d, attention_key_rows(s, last), x->k_end);
}

static void forward_share(const attention_shape *s, const attention_args *a, const space16 *x, int64_t begin,
                          int64_t end) {
  int64_t group = s->n_heads / s->n_kv, packed = -1;
  for (int64_t item = begin, n; item < end; item += n) {
    int64_t head = item / s->n_tiles, batch = head / s->n_heads, local = head % s->n_heads;
    int64_t kv = batch * s->n_kv + local / group, tile = item % s->n_tiles;
    n = s->n_tiles - tile < end - item ? s->n_tiles - tile : end - item;
    if (n > TOGETHER) n = TOGETHER;
    if (kv != packed) head_pack(s, a, x, kv);
    packed = kv;
    forward_tiles(s, a, x, kv, batch, local, tile, n);
  }
}

bool CPU_NAME(cpu_attention16_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  space16 space;
  if (!attention16_fits(kernel, false)) return false;
  attention_shape s = attention_shape_of(kernel, false);
  return cpu_reserve(kernel->device, space_divide(&s, NULL, &space) * kernel->device->n_threads, "attention",
                     fault);
}

void CPU_NAME(cpu_attention16)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = attention_shape_at(kernel, frame, false);
  attention_args a = attention_forward_args(kernel, frame);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    space16 space;
    int64_t thread = omp_get_thread_num();
    uint64_t n_bytes = space_divide(&s, NULL, &space);
    space_divide(&s, kernel->device->scratch + (uint64_t)thread * n_bytes, &space);
    tile16_begin();
    forward_share(&s, &a, &space, attention_share_start(&s, thread, n_threads),
                  attention_share_start(&s, thread + 1, n_threads));
    tile16_end();
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
