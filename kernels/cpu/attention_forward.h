/* SPDX-License-Identifier: Apache-2.0 */
/* Attention forward, whatever the form: threads take query tiles, in order and by equal cost (the tiles of
 * keys before a query tile), at most TOGETHER at a time. */
#ifndef CPU_ATTENTION_FORWARD_H
#define CPU_ATTENTION_FORWARD_H

#include "kernels/cpu/attention_space.h"

/* The form's: a key head of a sequence, before its query tiles. */
static void head_begin(const attention_shape *s, const attention_args *a, attention_space *space, int64_t kv);
/* The same: n query tiles of a head. */
static void forward_tiles(const attention_shape *s, const attention_args *a, const attention_space *space,
                          int64_t batch, int64_t head, int64_t tile, int64_t n);

/* Key tiles that a query tile meets, whatever the documents. */
static int64_t attention_tiles_met(const attention_shape *s, int64_t tile) {
  int64_t first = attention_place(s, tile * SIDE) - s->window + 1, end = attention_tiles_end(s, tile),
          begin = 0;
  if (s->window == 0 || first <= 0) return end;
  if (!s->key_places) return end - first / SIDE;
  while (begin < end && attention_key_place(s, begin * SIDE + attention_key_rows(s, begin) - 1) < first)
    begin++;
  return end - begin;
}

/* Where a thread's share of the query tiles begins; those that read nothing fall to the share before. */
static int64_t attention_share_start(const attention_shape *s, int64_t index, int64_t n_shares) {
  int64_t per_head = 0, n_heads = s->n_batch * s->n_heads, tile = 0;
  if (index == 0) return 0;
  for (int64_t t = 0; t < s->n_tiles; t++) per_head += attention_tiles_met(s, t);
  int64_t cost = (int64_t)((double)(per_head * n_heads) * (double)index / (double)n_shares);
  int64_t head = per_head ? cost / per_head : n_heads * index / n_shares;
  int64_t rest = per_head ? cost % per_head : 0;
  while (tile + 1 < s->n_tiles && attention_tiles_met(s, tile) <= rest)
    rest -= attention_tiles_met(s, tile++);
  return head >= n_heads ? n_heads * s->n_tiles : head * s->n_tiles + tile;
}

static void forward_share(const attention_shape *s, const attention_args *a, attention_space *space,
                          int64_t begin, int64_t end) {
  int64_t group = s->n_heads / s->n_kv, begun = -1;
  for (int64_t item = begin, n; item < end; item += n) {
    int64_t head = item / s->n_tiles, batch = head / s->n_heads, local = head % s->n_heads;
    int64_t kv = batch * s->n_kv + local / group, tile = item % s->n_tiles;
    n = s->n_tiles - tile < end - item ? s->n_tiles - tile : end - item;
    if (n > TOGETHER) n = TOGETHER;
    if (kv != begun) head_begin(s, a, space, kv);
    begun = kv;
    forward_tiles(s, a, space, batch, local, tile, n);
  }
}

static void attention_forward(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_shape s = attention_shape_at(kernel, frame, false);
  attention_args a = attention_forward_args(kernel, frame);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    int64_t thread = omp_get_thread_num();
    attention_space space = space_at(&s, kernel->device->scratch, thread);
    share_begin(&s, &space);
    forward_share(&s, &a, &space, attention_share_start(&s, thread, n_threads),
                  attention_share_start(&s, thread + 1, n_threads));
    share_end();
  }
}

#endif
