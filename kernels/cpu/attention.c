/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention in fp32, tile by tile of keys by queries; scores never leave a thread's tile.
 * attention_grad.c has its gradient.
 *
 *   s' = k q'     o += p v
 *
 * A prime is a transpose: scores stand [keys, queries], and the products read them either way. Only q is
 * transposed, a tile at a time. A running maximum and sum are kept per query. */
#include "kernels/cpu/attention32_query.h"
#include "kernels/cpu/attention_forward.h"
#include "kernels/cpu/family.h"

static uint64_t space_divide(const attention_shape *s, char *base, attention_space *space) {
  char *at = base;
  *space = space_take(s, &at);
  return (uint64_t)(at - base);
}

static void share_begin(const attention_shape *s, const attention_space *space) {
  (void)s, (void)space;
}

static void share_end(void) {
}

static void head_begin(const attention_shape *s, const attention_args *a, attention_space *space,
                       int64_t kv) {
  head_read(s, a, space, kv);
}

static void forward_begin(const attention_shape *s, const attention_args *a, query_tile *query) {
  query_read(s, a, query);
  square_run_begin(&query->run);
  memset(query->o, 0, (size_t)(SIDE * s->e_width) * sizeof(float));
}

static void forward_meet(const attention_shape *s, const attention_space *space, const attention_bend *bend,
                         int64_t t, query_tile *query) {
  int64_t n_keys = attention_key_rows(s, t), width = s->width, e_width = s->e_width;
  attention_mask *mask = &query->mask;
  float old[SIDE];
  attention_mask_keys(s, t, mask);
  attention_read read = attention_tile_read(s, query->head, mask);
  if (read == READ_NOTHING) return;
  scores_multiply(mask, (tile_product){n_keys, SIDE, s->d, space->keys + t * SIDE * width, width, 1,
                                       query->q_across, SIDE, space->score, SIDE, false});
  square_bend(s, bend, mask, query->head, read, whole_square, space->score);
  square_softmax(space->score, s->scale, mask, &query->run, old);
  if (s->threshold) {
    draw_square(s, query->batch, query->head, mask, space->words);
    square_drop(space->score, space->words, s->threshold);
  }
  if (query->met) rows_scale(query->o, old, query->n, e_width);
  queries_multiply(mask,
                   (tile_product){query->n, e_width, n_keys, space->score, 1, SIDE,
                                  space->values + t * SIDE * e_width, e_width, query->o, e_width, true});
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
                          int64_t batch, int64_t head, int64_t tile, int64_t n) {
  query_tile queries[TOGETHER];
  for (int64_t i = 0; i < n; i++) {
    queries[i] = query_tile_of(s, space, batch, head, tile + i, i);
    forward_begin(s, a, &queries[i]);
  }
  tiles_walk(s, space, queries, n, forward_meet);
  for (int64_t i = 0; i < n; i++) forward_finish(s, a, &queries[i]);
}

bool CPU_NAME(cpu_attention_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  if (!attention_types(kernel, false, false)) return false;
  attention_shape s = attention_shape_of(kernel, false);
  return space_reserve(kernel, &s, "attention", fault);
}

void CPU_NAME(cpu_attention)(const nxk_kernel *kernel, const nxk_frame *frame) {
  attention_forward(kernel, frame);
}
