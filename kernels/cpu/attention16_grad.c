/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention16.c, with scores [keys, queries], so that weights and slopes come out in the
 * layouts that the next products read:
 *
 *   s' = k q'     dp' = v do'     dv += p' do     dk += ds' q     dq' += k' ds'
 *
 * Left sides are keys and values as they lie in memory, and p' and ds'; of keys only the transpose is made,
 * once for a head. Query tiles go together, and tiles of keys: while these lie in the caches, all of them
 * leave their weights and slopes side by side, and a query's dq is summed over the keys, a key's dv and dk
 * over the queries, in one product each. */
#include "kernels/cpu/attention16_weights.h"
#include "kernels/cpu/family.h"

enum { TOGETHER = 8, PIECES = 2 };

/* A thread's memory. w = d / 2 words in a row of d; of v, o and do d is e. */
typedef struct attention_space {
  uint32_t *packed;                   /* [n_key_tiles, d, PAIRS]: k' */
  uint32_t *q_across, *do_across;     /* [TOGETHER, w, SIDE]: q', do' as right sides */
  uint32_t *q_pairs, *do_pairs;       /* [TOGETHER, PAIRS, d]: q, do as right sides */
  uint32_t *weight_rows, *slope_rows; /* [PIECES, TOGETHER, SIDE, PAIRS]: p', ds' as left sides */
  float *across;                      /* [TOGETHER, d, SIDE]: dq' */
  uint32_t *k_end, *v_end;            /* [SIDE, w]: the last tile, padded */
  uint32_t *row_room, *turn_room;     /* [SIDE, the wider w] */
  float *score, *slope;               /* [HALF, HALF] */
  uint32_t *pairs;                    /* [PIECES, PAIRS, SIDE]: ds' as right side */
  float *dk, *dv;                     /* [n_key_tiles SIDE, d] */
  uint32_t *begun;                    /* [n_key_tiles]: 0: nothing is in dk and dv */
  uint32_t *words;                    /* [SIDE, SIDE] random, [keys, queries] */
  float *bias;                        /* [distances] */
} attention_space;

#include "kernels/cpu/attention_backward.h"

static uint64_t space_divide(const attention_shape *s, char *base, attention_space *x) {
  char *at = base;
  int64_t rows = SIDE * s->d / 2, value_rows = SIDE * s->e / 2, wider = attention_wider(rows, value_rows);
  *x = (attention_space){.packed = attention_take(&at, s->n_key_tiles * rows),
                         .q_across = attention_take(&at, TOGETHER * rows)};
  x->do_across = attention_take(&at, TOGETHER * value_rows);
  x->q_pairs = attention_take(&at, TOGETHER * rows);
  x->do_pairs = attention_take(&at, TOGETHER * value_rows);
  x->weight_rows = attention_take(&at, PIECES * TOGETHER * SIDE * PAIRS);
  x->slope_rows = attention_take(&at, PIECES * TOGETHER * SIDE * PAIRS);
  x->across = attention_take(&at, TOGETHER * s->d * SIDE);
  x->k_end = attention_take(&at, rows);
  x->v_end = attention_take(&at, value_rows);
  x->row_room = attention_take(&at, wider);
  x->turn_room = attention_take(&at, wider);
  x->score = attention_take(&at, HALF * HALF);
  x->slope = attention_take(&at, HALF * HALF);
  x->pairs = attention_take(&at, PIECES * PAIRS * SIDE);
  x->dk = attention_take(&at, s->n_key_tiles * SIDE * s->d);
  x->dv = attention_take(&at, s->n_key_tiles * SIDE * s->e);
  x->begun = attention_take(&at, s->n_key_tiles);
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

/* A tile of keys (or values) of d features of a head. */
static word_rows key_rows(const attention_shape *s, const void *x, int64_t d, int64_t head, int64_t tile,
                          const uint32_t *end) {
  if (attention_key_rows(s, tile) < SIDE) return (word_rows){end, d / 2};
  const uint16_t *from = (const uint16_t *)x + (head * s->n_keys + tile * SIDE) * d;
  return (word_rows){(const uint32_t *)(const void *)from, d / 2};
}

/* The last tile of them, padded where it is not whole. */
static void pad_last(const attention_shape *s, const void *rows, int64_t d, int64_t head, uint32_t *end) {
  int64_t last = s->n_key_tiles - 1;
  rows_of(rows, d, (head * s->n_keys + last * SIDE) * d, d, attention_key_rows(s, last), end);
}

/* The keys of a head as left sides of their transposes, and the ends of its keys and values. */
static void head_pack(const attention_shape *s, const attention_args *a, const attention_space *x,
                      int64_t kv) {
  for (int64_t t = 0; t < s->n_key_tiles; t++) {
    int64_t start = (kv * s->n_keys + t * SIDE) * s->d;
    word_rows tile = rows_of(a->k, s->d, start, s->d, attention_key_rows(s, t), x->row_room);
    rows_transposed(s->d, tile, x->turn_room, x->packed + t * s->d * PAIRS);
  }
  pad_last(s, a->k, s->d, kv, x->k_end);
  pad_last(s, a->v, s->e, kv, x->v_end);
}

/* A query tile on its way over the tiles of keys. */
typedef struct query16 {
  int64_t batch, head, tile, begin, end; /* key tiles from begin to end */
  attention_mask mask;
  uint32_t *q_across, *do_across;
  float *across;
  bool met; /* a product is in `across` */
  square_queries sums;
} query16;

/* Where its queries begin among those of all heads. */
static int64_t query_start(const attention_shape *s, const query16 *q) {
  return (q->batch * s->n_heads + q->head) * s->n_tokens + q->tile * SIDE;
}

/* Sums of dout x o, and lse. */
static void query_sums(const attention_shape *s, const attention_args *a, int64_t start, int64_t n,
                       query16 *q) {
  int64_t row = s->n_heads * s->e;
  for (int64_t i = 0; i < SIDE; i += 16) {
    __m512 sums[16];
    for (int64_t k = 0; k < 16; k++) {
      const uint16_t *dout = (const uint16_t *)a->dout + start + (i + k) * row,
                     *o = (const uint16_t *)a->o + start + (i + k) * row;
      sums[k] = _mm512_setzero_ps();
      for (int64_t j = 0; j < (i + k < n ? s->e : 0); j += 32)
        sums[k] = _mm512_dpbf16_ps(sums[k], (__m512bh)_mm512_loadu_si512(dout + j),
                                   (__m512bh)_mm512_loadu_si512(o + j));
    }
    _mm512_store_ps(q->sums.product + i, vectors_sums(sums));
  }
  for (int64_t i = 0; i < SIDE; i++) q->sums.lse2[i] = i < n ? a->lse[query_start(s, q) + i] * log2_e : 1e30F;
}

static void query_begin(const attention_shape *s, const attention_args *a, const attention_space *x,
                        int64_t index, query16 *q) {
  int64_t d = s->d, e = s->e, n = attention_tile_rows(s, q->tile);
  int64_t start = ((q->batch * s->n_tokens + q->tile * SIDE) * s->n_heads + q->head) * e;
  q->begin = attention_tiles_begin(s, q->batch, q->tile);
  q->end = attention_tiles_end(s, q->tile);
  q->q_across = x->q_across + index * SIDE * (d / 2);
  q->do_across = x->do_across + index * SIDE * (e / 2);
  q->across = x->across + index * SIDE * d;
  word_rows rows = rows_of(a->dout, e, start, s->n_heads * e, n, x->row_room);
  rows_across(e, rows, q->do_across);
  rows_paired(e, rows, x->do_pairs + index * PAIRS * e);
  rows = rows_of(a->q, d, query_start(s, q) * d, d, n, x->row_room);
  rows_across(d, rows, q->q_across);
  rows_paired(d, rows, x->q_pairs + index * PAIRS * d);
  query_sums(s, a, start, n, q);
  attention_mask_queries(s, q->batch, q->tile, &q->mask);
}

/* Tile t of keys of a head. */
typedef struct key_tile {
  int64_t t;
  word_rows k, v;
} key_tile;

static void quarter_meet(const attention_shape *s, const attention_space *x, const attention_bend *bend,
                         attention_read read, const key_tile *keys, weights_quarter quarter,
                         const weights_places *places, const query16 *q) {
  int64_t key = quarter.key, query = quarter.query;
  tile16_multiply((tile16_product){HALF, HALF, s->d / 2, keys->k.words + key * keys->k.row, keys->k.row,
                                   q->q_across + query, SIDE, x->score, HALF, false});
  tile16_multiply((tile16_product){HALF, HALF, s->e / 2, keys->v.words + key * keys->v.row, keys->v.row,
                                   q->do_across + query, SIDE, x->slope, HALF, false});
  square_bend(s, bend, &q->mask, q->head, read, (square_part){key, HALF, query, HALF}, x->score);
  weights_slopes(s, &quarter, &q->sums, &q->mask, bend, places);
}

/* Whether it reads any key of the tile; then its weights and slopes lie in their places. */
static bool query_meet(const attention_shape *s, const attention_space *x, const attention_bend *bend,
                       const key_tile *keys, const weights_places *places, query16 *q) {
  if (keys->t < q->begin || keys->t >= q->end) return false;
  attention_mask_keys(s, keys->t, &q->mask);
  attention_read read = attention_tile_read(s, q->head, &q->mask);
  if (read == READ_NOTHING) return false;
  if (s->threshold) draw_square(s, q->batch, q->head, &q->mask, x->words);
  for (int key = 0; key < SIDE; key += HALF)
    for (int query = 0; query < SIDE; query += HALF) {
      weights_quarter quarter = {x->score, x->slope, x->words,
                                 key,      query,    weights_quarter_read(&q->mask, key, query)};
      if (quarter.read == READ_NOTHING) weights_none(&quarter, places);
      else quarter_meet(s, x, bend, read, keys, quarter, places, q);
    }
  return true;
}

/* Which of PIECES tiles of keys from t on each of TOGETHER query tiles reads. */
typedef bool meetings[TOGETHER][PIECES];

/* What a query tile adds to dq' from those that it reads of n tiles of keys, from t on. */
static void query_add(const attention_shape *s, const attention_space *x, int64_t t, const bool *met,
                      int64_t n, query16 *q) {
  int64_t d = s->d;
  for (int64_t first = 0, end; first < n; first = end + 1) {
    for (end = first; end < n && met[end]; end++) {
    }
    if (end == first) continue;
    tile16_multiply((tile16_product){d, SIDE, PAIRS, x->packed + (t + first) * d * PAIRS, PAIRS,
                                     x->pairs + first * PAIRS * SIDE, SIDE, q->across, SIDE, q->met,
                                     end - first, d * PAIRS, PAIRS * SIDE});
    q->met = true;
  }
}

/* What n query tiles add to dv and dk of a tile of keys, the piece'th. */
static void keys_add(const attention_shape *s, const attention_space *x, int64_t t, int64_t piece,
                     meetings met, int64_t n) {
  int64_t d = s->d, e = s->e;
  for (int64_t first = 0, end; first < n; first = end + 1) {
    for (end = first; end < n && met[end][piece]; end++) {
    }
    if (end == first) continue;
    int64_t at = (piece * TOGETHER + first) * SIDE * PAIRS, count = end - first;
    bool begun = x->begun[t];
    tile16_multiply((tile16_product){SIDE, e, PAIRS, x->weight_rows + at, PAIRS,
                                     x->do_pairs + first * PAIRS * e, e, x->dv + t * SIDE * e, e, begun,
                                     count, SIDE * PAIRS, PAIRS * e});
    tile16_multiply((tile16_product){SIDE, d, PAIRS, x->slope_rows + at, PAIRS,
                                     x->q_pairs + first * PAIRS * d, d, x->dk + t * SIDE * d, d, begun, count,
                                     SIDE * PAIRS, PAIRS * d});
    x->begun[t] = true;
  }
}

static void query_finish(const attention_shape *s, const attention_args *a, query16 *q) {
  float factors[SIDE];
  if (!q->met) memset(q->across, 0, (size_t)(s->d * SIDE) * sizeof *q->across);
  for (int i = 0; i < SIDE; i++) factors[i] = s->scale;
  across_store(s->d, q->across, factors, attention_tile_rows(s, q->tile), a->dq, a->dq_type,
               query_start(s, q) * s->d, s->d);
}

/* n query tiles of a head, each `step` behind the one before, against all key tiles that they read. */
static void backward_tiles(const attention_shape *s, const attention_args *a, const attention_space *x,
                           int64_t kv, int64_t head, int64_t tile, int64_t step, int64_t n) {
  query16 queries[TOGETHER];
  attention_bend bend = attention_bend_of(s, head, x->bias);
  int64_t begin = s->n_key_tiles, end = 0;
  for (int64_t i = 0; i < n; i++) {
    queries[i] = (query16){.batch = kv / s->n_kv, .head = head, .tile = tile + i * step};
    query_begin(s, a, x, i, &queries[i]);
    if (queries[i].begin < begin) begin = queries[i].begin;
    if (queries[i].end > end) end = queries[i].end;
  }
  for (int64_t t = begin; t < end; t += PIECES) {
    meetings met;
    int64_t n_pieces = end - t < PIECES ? end - t : PIECES;
    for (int64_t i = 0; i < n; i++) {
      for (int64_t u = 0; u < n_pieces; u++) {
        const key_tile keys = {t + u, key_rows(s, a->k, s->d, kv, t + u, x->k_end),
                               key_rows(s, a->v, s->e, kv, t + u, x->v_end)};
        int64_t at = (u * TOGETHER + i) * SIDE * PAIRS;
        const weights_places places = {x->weight_rows + at, x->slope_rows + at, x->pairs + u * PAIRS * SIDE};
        met[i][u] = query_meet(s, x, &bend, &keys, &places, &queries[i]);
      }
      query_add(s, x, t, met[i], n_pieces, &queries[i]);
    }
    for (int64_t u = 0; u < n_pieces; u++) keys_add(s, x, t + u, u, met, n);
  }
  for (int64_t i = 0; i < n; i++) query_finish(s, a, &queries[i]);
}

static void backward_part(const attention_shape *s, const attention_args *a, attention_space *x,
                          attention_part part) {
  int64_t group = s->n_heads / s->n_kv, kv = part.unit % s->n_kv;
  head_pack(s, a, x, part.unit);
  memset(x->begun, 0, (size_t)s->n_key_tiles * sizeof *x->begun);
  for (int64_t head = kv * group; head < (kv + 1) * group; head++) backward_head(s, a, x, part, head);
  for (int64_t t = 0; t < s->n_key_tiles; t++) {
    if (x->begun[t]) continue;
    memset(x->dk + t * SIDE * s->d, 0, (size_t)(SIDE * s->d) * sizeof *x->dk);
    memset(x->dv + t * SIDE * s->e, 0, (size_t)(SIDE * s->e) * sizeof *x->dv);
  }
}

static void rows_finish(const attention_shape *s, const attention_args *a, const attention_space *x,
                        int64_t unit, cpu_span rows) {
  int64_t start = unit * s->n_keys + rows.begin, n = rows.end - rows.begin;
  rows_store(x->dk + rows.begin * s->d, s->scale, a->dk, a->dk_type, start * s->d, n * s->d);
  rows_store(x->dv + rows.begin * s->e, 1, a->dv, a->dv_type, start * s->e, n * s->e);
}

bool CPU_NAME(cpu_attention16_grad_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  if (!attention16_fits(kernel, true)) return false;
  attention_shape s = attention_shape_of(kernel, true);
  return space_reserve(kernel, &s, "attention gradient", fault);
}

void CPU_NAME(cpu_attention16_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = attention_shape_at(kernel, frame, true);
  attention_args a = attention_backward_args(kernel, frame);
  attention_backward(kernel, &s, &a);
}
