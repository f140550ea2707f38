/* SPDX-License-Identifier: Apache-2.0 */
/* Query tiles of attention in fp32 on their way over the tiles of keys, forward and backward. */
#ifndef CPU_ATTENTION32_QUERY_H
#define CPU_ATTENTION32_QUERY_H

#include "kernels/cpu/attention32.h"
#include "kernels/cpu/attention32_softmax.h"

/* Query tiles that a thread takes at a time, so that a tile of keys is read for all of them together. */
enum { TOGETHER = 4 };

static const square_part whole_square = {0, SIDE, 0, SIDE};

/* A thread's memory; every block is 64-byte aligned. */
typedef struct attention_space {
  float *k, *v;                /* [n_keys, width], of values e_width; where they are not stored so */
  const float *keys, *values;  /* where they are */
  float *q, *dq;               /* [TOGETHER, SIDE, width]; q is o's too, before it */
  float *o;                    /* [TOGETHER, SIDE, e_width]; do backward */
  float *q_across, *do_across; /* [TOGETHER, width, SIDE], transposed */
  float *score, *slope;        /* [SIDE, SIDE] */
  uint32_t *words;             /* [SIDE, SIDE] */
  float *bias;                 /* [distances] */
  float *dk, *dv;              /* [n_keys, width] */
  double *sums, *dtable;       /* [distances]; [n_buckets, table_heads] */
} attention_space;

/* What both directions have. */
static inline attention_space space_take(const attention_shape *s, char **at) {
  attention_space space = {.k = attention_take(at, s->n_keys * s->width),
                           .v = attention_take(at, s->n_keys * s->e_width)};
  space.q = attention_take(at, TOGETHER * SIDE * attention_wider(s->width, s->e_width));
  space.o = attention_take(at, TOGETHER * SIDE * s->e_width);
  space.q_across = attention_take(at, TOGETHER * SIDE * s->width);
  space.score = attention_take(at, SIDE * SIDE);
  space.words = attention_take(at, SIDE * SIDE);
  space.bias = attention_take(at, attention_distances(s));
  return space;
}

static inline row_form query_form(const attention_shape *s, const attention_args *a) {
  return (row_form){a->q, a->q_type, s->d, s->width};
}

static inline row_form key_form(const attention_shape *s, const attention_args *a) {
  return (row_form){a->k, a->k_type, s->d, s->width};
}

static inline row_form value_form(const attention_shape *s, const attention_args *a) {
  return (row_form){a->v, a->v_type, s->e, s->e_width};
}

/* The keys and values of a key head. */
static inline void head_read(const attention_shape *s, const attention_args *a, attention_space *space,
                             int64_t kv) {
  int64_t start = kv * s->n_keys;
  space->keys = rows_read(key_form(s, a), start * s->d, s->d, s->n_keys, space->k);
  space->values = rows_read(value_form(s, a), start * s->e, s->e, s->n_keys, space->v);
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

static inline query_tile query_tile_of(const attention_shape *s, const attention_space *space, int64_t batch,
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
static inline int64_t query_start(const attention_shape *s, const query_tile *query) {
  return (query->batch * s->n_heads + query->head) * s->n_tokens + query->tile * SIDE;
}

static inline int64_t query_rows_start(const attention_shape *s, const query_tile *query) {
  return ((query->batch * s->n_tokens + query->tile * SIDE) * s->n_heads + query->head) * s->e;
}

static inline void query_read(const attention_shape *s, const attention_args *a, query_tile *query) {
  query->q = rows_read(query_form(s, a), query_start(s, query) * s->d, s->d, query->n, query->room);
  rows_across(query->q, query->n, s->width, query->q_across);
}

/* What it does with key tile t. */
typedef void query_meet(const attention_shape *s, const attention_space *space, const attention_bend *bend,
                        int64_t t, query_tile *query);

/* Every key tile meets those of n query tiles of a head that read it. */
static inline void tiles_walk(const attention_shape *s, const attention_space *space, query_tile *queries,
                              int64_t n, query_meet *meet) {
  attention_bend bend = attention_bend_of(s, queries->head, space->bias);
  int64_t begin = s->n_key_tiles, end = 0;
  for (int64_t i = 0; i < n; i++) {
    if (queries[i].begin < begin) begin = queries[i].begin;
    if (queries[i].end > end) end = queries[i].end;
  }
  for (int64_t t = begin; t < end; t++)
    for (int64_t i = 0; i < n; i++)
      if (t >= queries[i].begin && t < queries[i].end) meet(s, space, &bend, t, &queries[i]);
}

#endif
