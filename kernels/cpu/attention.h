/* SPDX-License-Identifier: Apache-2.0 */
/* What the two forms of causal attention share: the shape, tiles of SIDE queries by SIDE keys, and who works
 * on which.
 *
 * attention.c multiplies in fp32 and takes any types; attention16.c multiplies in bf16. Threads take query
 * tiles forward, in order and by equal cost (tile t of a head costs t + 1), and key heads, or parts of one,
 * backward. */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

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

typedef struct attention_args {
  const void *q, *k, *v, *dout, *o;
  nx_dtype q_type, k_type, v_type, dout_type, o_type;
  void *out, *dq, *dk, *dv;
  nx_dtype out_type, dq_type, dk_type, dv_type;
  float *lse;
} attention_args;

static inline attention_shape attention_shape_of(const nxk_kernel *kernel, bool backward) {
  const nxk_tensor *q = cpu_in(kernel, backward ? 1 : 0), *k = cpu_in(kernel, backward ? 2 : 1);
  attention_shape s = {.n_batch = q->dims[0],
                       .n_heads = q->dims[1],
                       .n_kv = k->dims[1],
                       .n_tokens = q->dims[2],
                       .d = q->dims[3],
                       .width = (q->dims[3] + 15) / 16 * 16};
  s.n_tiles = (s.n_tokens + SIDE - 1) / SIDE;
  s.scale = (float)cpu_real(kernel, NX_attention_scale);
  s.dropout = cpu_real(kernel, NX_attention_dropout);
  s.threshold = nx_philox_threshold(s.dropout);
  return s;
}

/* The shape with what only a frame tells. */
static inline attention_shape attention_start(const nxk_kernel *kernel, const nxk_frame *frame,
                                              bool backward) {
  attention_shape s = attention_shape_of(kernel, backward);
  s.tensor_id = (uint32_t)cpu_int(kernel, frame, NX_attention_tensor_id);
  s.head_start = (uint32_t)cpu_int(kernel, frame, NX_attention_head_start);
  s.seed = frame->seed;
  s.samples = cpu_in_at(kernel, frame, backward ? 6 : 3);
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

/* Where a thread's share of the query tiles begins. */
static inline int64_t attention_share_start(const attention_shape *s, int64_t index, int64_t n_shares) {
  int64_t per_head = s->n_tiles * (s->n_tiles + 1) / 2, n_heads = s->n_batch * s->n_heads;
  int64_t cost = (int64_t)((double)(per_head * n_heads) * (double)index / (double)n_shares);
  int64_t head = cost / per_head, rest = cost % per_head, tile = 0;
  while (tile < s->n_tiles && (tile + 1) * (tile + 2) / 2 <= rest) tile++;
  return head >= n_heads ? n_heads * s->n_tiles : head * s->n_tiles + tile;
}

/* Backward, a unit is a key head of a sequence. Where there are fewer units than threads, several threads
 * share one: each takes some of its query tiles, with its own dk and dv. */
typedef struct attention_part {
  int64_t unit, index, n_parts;
} attention_part;

typedef struct attention_work {
  int64_t thread, part, n_parts; /* n_parts > 1: one unit at most */
  cpu_span units;
} attention_work;

static inline attention_work attention_work_of(const attention_shape *s, int64_t thread, int64_t n_threads) {
  int64_t n_units = s->n_batch * s->n_kv, n_parts = n_threads / n_units;
  if (n_parts <= 1) return (attention_work){thread, 0, 1, cpu_share(n_units, 1, thread, n_threads)};
  int64_t unit = thread / n_parts;
  return (attention_work){thread, thread % n_parts, n_parts, {unit, unit < n_units ? unit + 1 : unit}};
}

static inline int64_t attention_tile_rows(const attention_shape *s, int64_t tile) {
  return s->n_tokens - tile * SIDE < SIDE ? s->n_tokens - tile * SIDE : SIDE;
}

/* Whether every operand but lse and samples has one of the types. */
static inline bool attention_types(const nxk_kernel *kernel, bool backward, bool bf16_alone) {
  uint32_t lse = 5, samples = backward ? 6 : 3;
  for (uint32_t i = 0; i < kernel->operator.n_in + kernel->operator.n_out; i++) {
    const nxk_tensor *x = &kernel->operator.args[i];
    if (i != lse && i != samples && (bf16_alone ? x->dtype != NX_bf16 : !cpu_is_real(x))) return false;
  }
  return kernel->operator.args[lse].dtype == NX_f32 && kernel->operator.args[samples].dtype == NX_i64;
}

/* Takes n elements of 4 bytes from a thread's memory. */
static inline void *attention_take(char **at, int64_t n_elements) {
  void *block = *at;
  *at += cpu_align((uint64_t)n_elements * 4);
  return block;
}

#endif
