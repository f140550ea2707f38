/* SPDX-License-Identifier: Apache-2.0 */
/* What the two forms of causal attention share: the shape, tiles of SIDE queries by SIDE keys, which of them
 * are read, and whether a form computes it.
 *
 * attention.c multiplies in fp32 and takes any types; attention16.c multiplies in bf16. A query reads the
 * keys whose places are from the start of its document to its own; places ascend, so the tiles that it reads
 * stand together, and all but the first and last of them are read whole. Who works on which stands in
 * attention_forward.h and attention_backward.h. */
#ifndef CPU_ATTENTION_TILES_H
#define CPU_ATTENTION_TILES_H

#include "kernels/blocks.h"
#include "kernels/cpu/vec.h"

enum { SIDE = 64 };

typedef struct attention_shape {
  int64_t n_batch, n_heads, n_kv, n_tokens, n_keys;
  int64_t d, e;                 /* of a query and key; of a value and o */
  int64_t width, e_width;       /* d and e rounded up to whole vectors */
  int64_t n_tiles, n_key_tiles; /* of SIDE tokens, of SIDE keys */
  float scale, soft_cap;
  int64_t window, alibi_heads;
  double dropout;
  uint32_t threshold, tensor_id, head_start;
  uint64_t seed;
  const int64_t *samples;
  const int32_t *places, *key_places, *starts; /* NULL: a place is the number of a token, a start is 0 */
  int64_t n_buckets, table_heads, max_distance; /* of attention_relative; 0: scores have no bias */
  float table_factor;
  nxk_tensor table;       /* [n_buckets, table_heads] */
  const void *table_data;
  nxk_blocks blocks;
} attention_shape;

enum { MOST_DISTANCES = 1 << 16 };

/* Distances that a bias is kept for: those from the last on have one bucket. */
static inline int64_t attention_distances(const attention_shape *s) {
  return s->n_buckets ? s->max_distance + 1 : 0;
}

typedef struct attention_args {
  const void *q, *k, *v, *dout, *o;
  nx_dtype q_type, k_type, v_type, dout_type, o_type;
  void *out, *dq, *dk, *dv;
  nx_dtype out_type, dq_type, dk_type, dv_type;
  float *lse;
} attention_args;

static inline attention_shape attention_shape_of(const nxk_kernel *kernel, bool backward) {
  const nxk_tensor *q = cpu_in(kernel, backward ? 1 : 0), *k = cpu_in(kernel, backward ? 2 : 1);
  const nxk_tensor *v = cpu_in(kernel, backward ? 3 : 2);
  attention_shape s = {.n_batch = q->dims[0],
                       .n_heads = q->dims[1],
                       .n_kv = k->dims[1],
                       .n_tokens = q->dims[2],
                       .n_keys = k->dims[2],
                       .d = q->dims[3],
                       .e = v->dims[3],
                       .width = (q->dims[3] + 15) / 16 * 16,
                       .e_width = (v->dims[3] + 15) / 16 * 16};
  s.n_tiles = (s.n_tokens + SIDE - 1) / SIDE;
  s.n_key_tiles = (s.n_keys + SIDE - 1) / SIDE;
  s.scale = (float)cpu_real(kernel, NX_attention_scale);
  s.dropout = cpu_real(kernel, NX_attention_dropout);
  s.window = kernel->operator.attrs[NX_attention_window].integer;
  s.soft_cap = (float)cpu_real(kernel, NX_attention_soft_cap);
  s.alibi_heads = kernel->operator.attrs[NX_attention_alibi_heads].integer;
  s.threshold = nx_philox_threshold(s.dropout);
  nx_op op = kernel->operator.op;
  if (op != NX_OP_attention_relative && op != NX_OP_attention_relative_grad) return s;
  s.table = *cpu_in(kernel, backward ? 7 : 4);
  s.n_buckets = s.table.dims[0];
  s.table_heads = s.table.dims[1];
  s.max_distance = kernel->operator.attrs[NX_attention_relative_max_distance].integer;
  s.table_factor = (float)cpu_real(kernel, NX_attention_relative_factor);
  return s;
}

static inline nxk_blocks attention_blocks_at(const nxk_kernel *kernel, const nxk_frame *frame,
                                             uint32_t input) {
  const nxk_tensor *bits = cpu_in(kernel, input);
  return (nxk_blocks){.bits = cpu_in_at(kernel, frame, input),
                      .n_layouts = bits->dims[0],
                      .n_rows = bits->dims[1],
                      .n_words = bits->dims[2],
                      .block = kernel->operator.attrs[NX_attention_sparse_block].integer};
}

/* The shape with what only a frame tells. */
static inline attention_shape attention_shape_at(const nxk_kernel *kernel, const nxk_frame *frame,
                                              bool backward) {
  attention_shape s = attention_shape_of(kernel, backward);
  s.tensor_id = (uint32_t)cpu_int(kernel, frame, NX_attention_tensor_id);
  s.head_start = (uint32_t)cpu_int(kernel, frame, NX_attention_head_start);
  s.seed = frame->seed;
  uint32_t samples = backward ? 6 : 3;
  s.samples = cpu_in_at(kernel, frame, samples);
  nx_op op = kernel->operator.op;
  bool sparse = op == NX_OP_attention_sparse || op == NX_OP_attention_sparse_grad;
  if (sparse) s.blocks = attention_blocks_at(kernel, frame, ++samples);
  if (s.n_buckets) s.table_data = cpu_in_at(kernel, frame, ++samples);
  if (kernel->operator.n_in == samples + 1) return s;
  s.places = cpu_in_at(kernel, frame, samples + 1);
  s.key_places = cpu_in_at(kernel, frame, samples + 2);
  s.starts = cpu_in_at(kernel, frame, samples + 3);
  return s;
}

static inline attention_args attention_forward_args(const nxk_kernel *kernel, const nxk_frame *frame) {
  return (attention_args){.q = cpu_in_at(kernel, frame, 0),
                          .k = cpu_in_at(kernel, frame, 1),
                          .v = cpu_in_at(kernel, frame, 2),
                          .q_type = cpu_in(kernel, 0)->dtype,
                          .k_type = cpu_in(kernel, 1)->dtype,
                          .v_type = cpu_in(kernel, 2)->dtype,
                          .out = cpu_out_at(kernel, frame, 0),
                          .out_type = cpu_out(kernel, 0)->dtype,
                          .lse = cpu_out_at(kernel, frame, 1)};
}

static inline attention_args attention_backward_args(const nxk_kernel *kernel, const nxk_frame *frame) {
  return (attention_args){.dout = cpu_in_at(kernel, frame, 0),
                          .q = cpu_in_at(kernel, frame, 1),
                          .k = cpu_in_at(kernel, frame, 2),
                          .v = cpu_in_at(kernel, frame, 3),
                          .o = cpu_in_at(kernel, frame, 4),
                          .lse = cpu_in_at(kernel, frame, 5),
                          .dout_type = cpu_in(kernel, 0)->dtype,
                          .q_type = cpu_in(kernel, 1)->dtype,
                          .k_type = cpu_in(kernel, 2)->dtype,
                          .v_type = cpu_in(kernel, 3)->dtype,
                          .o_type = cpu_in(kernel, 4)->dtype,
                          .dq = cpu_out_at(kernel, frame, 0),
                          .dk = cpu_out_at(kernel, frame, 1),
                          .dv = cpu_out_at(kernel, frame, 2),
                          .dq_type = cpu_out(kernel, 0)->dtype,
                          .dk_type = cpu_out(kernel, 1)->dtype,
                          .dv_type = cpu_out(kernel, 2)->dtype};
}

static inline int64_t attention_tile_rows(const attention_shape *s, int64_t tile) {
  return s->n_tokens - tile * SIDE < SIDE ? s->n_tokens - tile * SIDE : SIDE;
}

static inline int64_t attention_key_rows(const attention_shape *s, int64_t tile) {
  return s->n_keys - tile * SIDE < SIDE ? s->n_keys - tile * SIDE : SIDE;
}

static inline int32_t attention_place(const attention_shape *s, int64_t query) {
  return s->places ? s->places[query] : (int32_t)query;
}

static inline int32_t attention_key_place(const attention_shape *s, int64_t key) {
  return s->key_places ? s->key_places[key] : (int32_t)key;
}

/* The first place that a query reads. */
static inline int32_t attention_start(const attention_shape *s, int64_t batch, int64_t query) {
  int64_t start = s->starts ? s->starts[batch * s->n_tokens + query] : 0;
  int64_t low = s->window > 0 ? (int64_t)attention_place(s, query) - s->window + 1 : 0;
  return (int32_t)(low > start ? low : start);
}

/* Key tiles of which no query of a tile reads a later one. */
static inline int64_t attention_tiles_end(const attention_shape *s, int64_t tile) {
  int32_t last = attention_place(s, tile * SIDE + attention_tile_rows(s, tile) - 1);
  int64_t end = s->places ? 0 : tile + 1;
  while (s->places && end < s->n_key_tiles && attention_key_place(s, end * SIDE) <= last) end++;
  return end;
}

/* Key tiles that stand before the document, or the window, of every query of a tile. */
static inline int64_t attention_tiles_begin(const attention_shape *s, int64_t batch, int64_t tile) {
  int32_t start = attention_start(s, batch, tile * SIDE);
  if (!s->key_places) return start / SIDE;
  for (int64_t begin = 0; begin < s->n_key_tiles; begin++) {
    int64_t last = begin * SIDE + attention_key_rows(s, begin) - 1;
    if (attention_key_place(s, last) >= start) return begin;
  }
  return s->n_key_tiles;
}

/* Which keys of a tile the queries of a tile read: query i those whose place is at most reach[i] behind
 * low[i]. */
typedef struct attention_mask {
  int32_t low[SIDE] __attribute__((aligned(64)));
  int32_t query[SIDE] __attribute__((aligned(64))); /* places of the queries */
  uint32_t reach[SIDE] __attribute__((aligned(64)));
  int32_t place[SIDE] __attribute__((aligned(64)));
  int64_t n_queries;
  bool in_fours; /* keys 4 i to 4 i + 3 share the words of one counter, in order */
  bool whole;    /* every query reads every key of the tile */
} attention_mask;

/* Queries behind the last read nothing. */
static inline void attention_mask_queries(const attention_shape *s, int64_t batch, int64_t tile,
                                          attention_mask *mask) {
  int64_t n = mask->n_queries = attention_tile_rows(s, tile);
  for (int64_t i = 0; i < SIDE; i++) {
    mask->low[i] = i < n ? attention_start(s, batch, tile * SIDE + i) : INT32_MAX;
    mask->query[i] = i < n ? attention_place(s, tile * SIDE + i) : 0;
    mask->reach[i] = i < n ? (uint32_t)mask->query[i] - (uint32_t)mask->low[i] : 0;
  }
}

/* Whether the n places of a tile stand in fours that begin at multiples of four. */
static inline bool attention_in_fours(const int32_t *place, int64_t n) {
  for (int64_t j = 0; j < n; j++) {
    bool fits = j % 4 == 0 ? place[j] % 4 == 0 : (uint32_t)place[j] == (uint32_t)place[j - 1] + 1;
    if (!fits) return false;
  }
  return true;
}

/* Keys behind the last are read by none. */
static inline void attention_mask_keys(const attention_shape *s, int64_t tile, attention_mask *mask) {
  int64_t n = attention_key_rows(s, tile);
  int32_t first = (int32_t)(tile * SIDE);
#pragma omp simd
  for (int32_t j = 0; j < SIDE; j++) mask->place[j] = j < (int32_t)n ? first + j : INT32_MIN;
  mask->in_fours = true;
  if (s->key_places) {
    memcpy(mask->place, s->key_places + tile * SIDE, (size_t)n * sizeof *mask->place);
    mask->in_fours = attention_in_fours(mask->place, n);
  }
  mask->whole = n == SIDE && mask->place[SIDE - 1] <= mask->query[0] &&
                mask->place[0] >= mask->low[mask->n_queries - 1];
}

/* ---- blocks ---- */

typedef enum attention_read { READ_NOTHING, READ_SOME, READ_ALL } attention_read;

static inline int64_t attention_block(const attention_shape *s, int32_t place) {
  return place < 0 ? 0 : place / s->blocks.block;
}

/* How much of a tile its blocks leave. */
static inline attention_read attention_tile_read(const attention_shape *s, int64_t head,
                                                 const attention_mask *mask) {
  int64_t n_read = 0, n = 0, row = -1;
  if (s->blocks.bits == NULL) return READ_ALL;
  for (int64_t i = 0; i < SIDE; i++) {
    if (attention_block(s, mask->query[i]) == row) continue;
    row = attention_block(s, mask->query[i]);
    for (int64_t j = 0, column = -1; j < SIDE; j++) {
      if (attention_block(s, mask->place[j]) == column) continue;
      column = attention_block(s, mask->place[j]);
      n++, n_read += nxk_blocks_read(&s->blocks, (int64_t)s->head_start + head, row, column);
    }
  }
  return n_read == 0 ? READ_NOTHING : n_read == n ? READ_ALL : READ_SOME;
}

/* Whether a form computes it: with operands of these types (of bf16 products, bf16 but for results, which may
 * be fp32 too), and one way of bending scores at most. */
static inline bool attention_types(const nxk_kernel *kernel, bool backward, bool bf16_alone) {
  const nxk_attr *attrs = kernel->operator.attrs;
  bool capped = attrs[NX_attention_soft_cap].real > 0, biased = attrs[NX_attention_alibi_heads].integer > 0;
  if ((capped && biased) || ((capped || biased) && attrs[NX_attention_scale].real <= 0)) return false;
  attention_shape s = attention_shape_of(kernel, backward);
  bool fits = s.max_distance < MOST_DISTANCES && s.scale > 0 && cpu_is_real(&s.table);
  if (s.n_buckets && !fits) return false;
  uint32_t samples = backward ? 6 : 3, n_in = kernel->operator.n_in, lse = backward ? 5 : n_in + 1;
  for (uint32_t i = 0; i < n_in + kernel->operator.n_out; i++) {
    const nxk_tensor *x = &kernel->operator.args[i];
    if (i == lse || (i >= samples && i < n_in)) continue;
    if (bf16_alone && i < n_in ? x->dtype != NX_bf16 : !cpu_is_real(x)) return false;
  }
  return kernel->operator.args[lse].dtype == NX_f32 && kernel->operator.args[samples].dtype == NX_i64;
}

static inline int64_t attention_wider(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Takes n elements of 4 bytes from a thread's memory. */
static inline void *attention_take(char **at, int64_t n_elements) {
  void *block = *at;
  *at += cpu_align((uint64_t)n_elements * 4);
  return block;
}

#endif
