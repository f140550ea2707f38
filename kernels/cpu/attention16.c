/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention on bf16 operands with bf16 products, fp32 sums and an fp32 softmax; for AVX512_BF16 and
 * for AMX. attention16_grad.c has its gradient.
 *
 *   s = q k'     o += p v
 *
 * A prime is a transpose. Left sides are rows of bf16, queries as they lie in memory and weights as the
 * softmax leaves them; right sides are pairs of rows (tile16.h), made of keys and values once for a head, so
 * that queries, weights and o are never turned. A tile of queries goes as strips, whose scores stay in the
 * first cache. Tiles at the end of the sequence are padded with zeros. Weights are rounded to bf16. */
#include "kernels/cpu/attention16_softmax.h"
#include "kernels/cpu/family.h"

/* Query tiles that meet a tile of keys one after another, while it lies in the caches, and tiles of keys
 * whose products with the values are one. */
enum { TOGETHER = 4, PIECES = 4, STRIPS = SIDE / STRIP };

/* A thread's memory. w = d / 2 words in a row of d. */
typedef struct attention_space {
  uint32_t *k_across;      /* [n_key_tiles, w, SIDE] */
  uint32_t *v_pairs;       /* [n_key_tiles, PAIRS, e] */
  uint32_t *q_end;         /* [SIDE, w]: the last tile, padded */
  uint32_t *row_room;      /* [SIDE, the wider w] */
  float *o;                /* [TOGETHER, SIDE, e] */
  float *score;            /* [STRIP, SIDE] */
  float *turned;           /* [SIDE, STRIP] */
  uint32_t *weights;       /* [STRIPS, PIECES, STRIP, PAIRS] */
  uint32_t *drawn, *words; /* [SIDE, SIDE] random, [keys, queries] and turned */
  float *bias;             /* [distances] */
} attention_space;

#include "kernels/cpu/attention_forward.h"

static uint64_t space_divide(const attention_shape *s, char *base, attention_space *x) {
  char *at = base;
  int64_t rows = SIDE * s->d / 2, value_rows = SIDE * s->e / 2;
  *x = (attention_space){.k_across = attention_take(&at, s->n_key_tiles * rows),
                         .v_pairs = attention_take(&at, s->n_key_tiles * value_rows)};
  x->q_end = attention_take(&at, rows);
  x->row_room = attention_take(&at, attention_wider(rows, value_rows));
  x->o = attention_take(&at, TOGETHER * SIDE * s->e);
  x->score = attention_take(&at, STRIP * SIDE);
  x->turned = attention_take(&at, STRIP * SIDE);
  x->weights = attention_take(&at, PIECES * SIDE * PAIRS);
  x->drawn = attention_take(&at, SIDE * SIDE);
  x->words = attention_take(&at, SIDE * SIDE);
  x->bias = attention_take(&at, attention_distances(s));
  return (uint64_t)(at - base);
}

static void share_begin(const attention_shape *s, const attention_space *x) {
  (void)s, (void)x;
  tile16_begin();
}

static void share_end(void) {
  tile16_end();
}

/* STRIP queries on their way over the tiles of keys. */
typedef struct strip16 {
  int64_t first, n_pending; /* tiles of keys whose weights wait */
  bool met;                 /* a product is in o */
  uint32_t *weights;        /* [PIECES, STRIP, PAIRS] */
  float *o;
  softmax_run run;
} strip16;

/* A query tile, as strips. */
typedef struct query16 {
  int64_t batch, head, tile, begin, end; /* key tiles from begin to end */
  attention_mask mask;
  word_rows rows;
  bool finished;
  int64_t n_strips;
  strip16 strips[STRIPS];
} query16;

/* Where its queries begin among those of all heads. */
static int64_t query_start(const attention_shape *s, const query16 *q) {
  return (q->batch * s->n_heads + q->head) * s->n_tokens + q->tile * SIDE;
}

static void query_begin(const attention_shape *s, const attention_args *a, const attention_space *x,
                        int64_t index, query16 *q) {
  int64_t n = attention_tile_rows(s, q->tile);
  q->finished = false;
  q->begin = attention_tiles_begin(s, q->batch, q->tile);
  q->end = attention_tiles_end(s, q->tile);
  q->rows = rows_of(a->q, s->d, query_start(s, q) * s->d, s->d, n, x->q_end);
  q->n_strips = (n + STRIP - 1) / STRIP;
  for (int64_t i = 0; i < q->n_strips; i++) {
    strip16 *strip = &q->strips[i];
    strip->n_pending = 0;
    strip->met = false;
    strip->weights = x->weights + i * PIECES * STRIP * PAIRS;
    strip->o = x->o + (index * SIDE + i * STRIP) * s->e;
    softmax_begin(&strip->run);
  }
  attention_mask_queries(s, q->batch, q->tile, &q->mask);
}

/* What waits is multiplied. */
static void strip_flush(const attention_shape *s, const attention_space *x, strip16 *strip) {
  int64_t e = s->e;
  if (strip->n_pending == 0) return;
  tile16_multiply((tile16_product){STRIP, e, PAIRS, strip->weights, PAIRS,
                                   x->v_pairs + strip->first * PAIRS * e, e, strip->o, e, strip->met,
                                   strip->n_pending, STRIP * PAIRS, PAIRS * e});
  strip->met = true;
  strip->n_pending = 0;
}

static void strip_scale(const attention_shape *s, strip16 *strip, const float *factors) {
  for (int64_t i = 0; strip->met && i < STRIP; i++) {
    float *row = strip->o + i * s->e, factor = factors[i];
#pragma omp simd
    for (int64_t j = 0; j < s->e; j++) row[j] *= factor;
  }
}

/* Scores are bent as they are in the gradient, keys by queries. */
static void scores_bend(const attention_shape *s, const attention_space *x, const attention_bend *bend,
                        const query16 *q, attention_read read, int64_t from) {
  if (!square_bends(bend, read)) return;
  square_turn(x->score, STRIP, SIDE, x->turned);
  square_bend(s, bend, &q->mask, q->head, read, (square_part){0, SIDE, from, STRIP}, x->turned);
  square_turn(x->turned, SIDE, STRIP, x->score);
}

/* A strip's queries with tile t of keys. */
static void strip_meet(const attention_shape *s, const attention_space *x, const attention_bend *bend,
                       attention_read read, int64_t t, query16 *q, int64_t index) {
  float old[STRIP];
  int64_t from = index * STRIP;
  strip16 *strip = &q->strips[index];
  const softmax_part part = softmax_part_of(&q->mask, (int)from);
  if (t != strip->first + strip->n_pending) strip_flush(s, x, strip);
  tile16_multiply((tile16_product){STRIP, part.narrow ? SIDE / 2 : SIDE, s->d / 2,
                                   q->rows.words + from * q->rows.row, q->rows.row,
                                   x->k_across + t * SIDE * (s->d / 2), SIDE, x->score, SIDE, false});
  scores_bend(s, x, bend, q, read, from);
  if (softmax_base(x->score, &part, s->scale * log2_e, &strip->run, old)) {
    strip_flush(s, x, strip);
    strip_scale(s, strip, old);
  }
  if (strip->n_pending == 0) strip->first = t;
  softmax_weights(s, x->score, &part, x->words + from * SIDE, &strip->run,
                  strip->weights + strip->n_pending++ * STRIP * PAIRS);
}

static void query_meet(const attention_shape *s, const attention_space *x, const attention_bend *bend,
                       int64_t t, query16 *q) {
  if (t < q->begin || t >= q->end) return;
  attention_mask_keys(s, t, &q->mask);
  attention_read read = attention_tile_read(s, q->head, &q->mask);
  if (read == READ_NOTHING) return;
  if (s->threshold) {
    draw_square(s, q->batch, q->head, &q->mask, x->drawn);
    square_turn((const float *)(const void *)x->drawn, SIDE, SIDE, (float *)(void *)x->words);
  }
  for (int64_t i = 0; i < q->n_strips; i++) strip_meet(s, x, bend, read, t, q, i);
}

/* o over the sums of the weights, and lse. */
static void strip_finish(const attention_shape *s, const attention_args *a, const query16 *q, int64_t index) {
  const strip16 *strip = &q->strips[index];
  int64_t e = s->e, first = q->tile * SIDE + index * STRIP, left = s->n_tokens - first,
          n = left < STRIP ? left : STRIP;
  float kept = (float)(1 / (1 - s->dropout)), factors[STRIP], lse[STRIP], sums[STRIP];
  if (!strip->met) memset(strip->o, 0, (size_t)(STRIP * e) * sizeof *strip->o);
  softmax_sums(&strip->run, sums);
#pragma omp simd
  for (int i = 0; i < STRIP; i++) {
    factors[i] = sums[i] > 0 ? kept / sums[i] : 0.0F;
    lse[i] = strip->run.base[i] * s->scale + vec_log(sums[i]);
  }
  for (int64_t i = 0; i < n; i++)
    rows_store(strip->o + i * e, factors[i], a->out, a->out_type,
               ((q->batch * s->n_tokens + first + i) * s->n_heads + q->head) * e, e);
  memcpy(a->lse + query_start(s, q) + index * STRIP, lse, (size_t)n * sizeof *lse);
}

/* Once: what it summed is in the caches then. */
static void query_finish(const attention_shape *s, const attention_args *a, query16 *q) {
  for (int64_t i = 0; !q->finished && i < q->n_strips; i++) strip_finish(s, a, q, i);
  q->finished = true;
}

/* n query tiles of a head. */
static void forward_tiles(const attention_shape *s, const attention_args *a, const attention_space *x,
                          int64_t batch, int64_t head, int64_t tile, int64_t n) {
  query16 queries[TOGETHER];
  attention_bend bend = attention_bend_of(s, head, x->bias);
  int64_t begin = s->n_key_tiles, end = 0;
  for (int64_t i = 0; i < n; i++) {
    queries[i].batch = batch, queries[i].head = head, queries[i].tile = tile + i;
    query_begin(s, a, x, i, &queries[i]);
    if (queries[i].begin < begin) begin = queries[i].begin;
    if (queries[i].end > end) end = queries[i].end;
  }
  for (int64_t t = begin; t < end; t += PIECES)
    for (int64_t i = 0; i < n; i++) {
      for (int64_t u = t; u < t + PIECES; u++) query_meet(s, x, &bend, u, &queries[i]);
      for (int64_t j = 0; j < queries[i].n_strips; j++) strip_flush(s, x, &queries[i].strips[j]);
      if (queries[i].end <= t + PIECES) query_finish(s, a, &queries[i]);
    }
  for (int64_t i = 0; i < n; i++) query_finish(s, a, &queries[i]);
}

/* The keys and values of a head as right sides. */
static void head_begin(const attention_shape *s, const attention_args *a, attention_space *x, int64_t kv) {
  for (int64_t t = 0; t < s->n_key_tiles; t++) {
    int64_t at = kv * s->n_keys + t * SIDE, n = attention_key_rows(s, t);
    rows_across(s->d, rows_of(a->k, s->d, at * s->d, s->d, n, x->row_room),
                x->k_across + t * SIDE * (s->d / 2));
    rows_paired(s->e, rows_of(a->v, s->e, at * s->e, s->e, n, x->row_room), x->v_pairs + t * PAIRS * s->e);
  }
}

bool CPU_NAME(cpu_attention16_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  if (!attention16_fits(kernel, false)) return false;
  attention_shape s = attention_shape_of(kernel, false);
  return space_reserve(kernel, &s, "attention", fault);
}

void CPU_NAME(cpu_attention16)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_forward(kernel, frame);
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
