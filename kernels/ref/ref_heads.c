/* SPDX-License-Identifier: Apache-2.0 */
/* Between the layout of matrix products, [B,S,n d], and that of attention, [B,n,S,d], with rotary positions.
 *
 * A section is a run of heads of the wide side that one operand of the other side holds: q, k and v, or the
 * only one. split goes from wide to narrow and turns by the angle; merge comes back and turns by its
 * negative, which is the gradient since a rotation's transpose is its inverse. */
#include "kernels/ref/ref.h"
#include "kernels/rope.h"

#include <math.h>
#include <string.h>

typedef struct section {
  ref_operand narrow; /* [B,n,S,d] */
  int64_t first_head; /* of the wide side */
  bool rotated;
} section;

typedef struct rotation {
  const nxk_rope *rope;
  int64_t pairs;
  const double *cosines, *sines; /* of the token at hand */
  double direction;              /* 1 split, -1 merge */
} rotation;

static void head_move(const ref_operand *from, int64_t from_first, const ref_operand *to, int64_t to_first,
                      int64_t d, const rotation *turn) {
  for (int64_t i = 0; i < turn->pairs; i++) {
    int64_t first = nxk_rope_first(turn->rope, i), second = nxk_rope_second(turn->rope, i);
    double a = ref_load(from, from_first + first), b = ref_load(from, from_first + second);
    double sine = turn->direction * turn->sines[i];
    ref_store(to, to_first + first, a * turn->cosines[i] - b * sine);
    ref_store(to, to_first + second, b * turn->cosines[i] + a * sine);
  }
  int64_t start = turn->pairs ? turn->rope->rotary_start : d, end = start + 2 * turn->pairs;
  for (int64_t i = 0; i < d; i++)
    if (i < start || i >= end) ref_store(to, to_first + i, ref_load(from, from_first + i));
}

static void token_move(const ref_operand *wide, const section *part, int64_t batch, int64_t token, bool split,
                       const rotation *turn) {
  int64_t heads = part->narrow.dims[1], n_tokens = part->narrow.dims[2], d = part->narrow.dims[3];
  int64_t width = ref_last_dim(wide);
  rotation none = {0};
  for (int64_t head = 0; head < heads; head++) {
    int64_t at_wide = (batch * n_tokens + token) * width + (part->first_head + head) * d;
    int64_t at_narrow = ((batch * heads + head) * n_tokens + token) * d;
    const rotation *how = part->rotated ? turn : &none;
    if (split)
      head_move(wide, at_wide, &part->narrow, at_narrow, d, how);
    else
      head_move(&part->narrow, at_narrow, wide, at_wide, d, how);
  }
}

static void turn_angles(const rotation *turn, double position, const double *frequencies, double *cosines,
                        double *sines) {
  for (int64_t i = 0; i < turn->pairs; i++) {
    cosines[i] = turn->rope->amplitude * cos(position * frequencies[i]);
    sines[i] = turn->rope->amplitude * sin(position * frequencies[i]);
  }
}

static void heads_move(const ref_call *call, const ref_operand *wide, const section *sections, int n_sections,
                       const ref_operand *positions, const nxk_rope *rope, bool split) {
  int64_t pairs = rope->rotary_dims / 2, n_batches = sections[0].narrow.dims[0];
  int64_t n_tokens = sections[0].narrow.dims[2];
  double *frequencies = call->work, *cosines = frequencies + pairs, *sines = cosines + pairs;
  for (int64_t i = 0; i < pairs; i++) frequencies[i] = nxk_rope_frequency(rope, i);
  rotation turn = {rope, pairs, cosines, sines, split ? 1 : -1};
  for (int64_t batch = 0; batch < n_batches; batch++) {
    for (int64_t token = 0; token < n_tokens; token++) {
      double position = ref_load(positions, batch * n_tokens + token);
      turn_angles(&turn, position, frequencies, cosines, sines);
      for (int part = 0; part < n_sections; part++)
        token_move(wide, &sections[part], batch, token, split, &turn);
    }
  }
}

/* `input` is that of the frequencies, where they are given. */
static nxk_rope rope_attributes(const ref_call *call, uint32_t first, uint32_t input) {
  nxk_rope rope = nxk_rope_of(&call->operator->attrs[first]);
  if (call->operator->n_in > input) rope.frequencies = ref_in(call, input).data;
  return rope;
}

/* Frequency, cosine and sine of each pair, and never nothing. */
int64_t ref_heads_work(const nxk_operator *operator) {
  const nx_op_row *row = nx_op_find(operator->op);
  uint32_t rotary = nx_op_find_attr(row, "rotary_dims", strlen("rotary_dims"));
  return 3 * (operator->attrs[rotary].integer / 2) + 1;
}

void ref_split_qkv(const ref_call *call) {
  ref_operand x = ref_in(call, 0), positions = ref_in(call, 1);
  ref_operand q = ref_out(call, 0), k = ref_out(call, 1), v = ref_out(call, 2);
  int64_t n = q.dims[1], m = k.dims[1];
  nxk_rope rope = rope_attributes(call, NX_split_qkv_rotary_dims, 2);
  section sections[] = {{q, 0, true}, {k, n, true}, {v, n + m, false}};
  heads_move(call, &x, sections, 3, &positions, &rope, true);
}

void ref_merge_qkv(const ref_call *call) {
  ref_operand dq = ref_in(call, 0), dk = ref_in(call, 1), dv = ref_in(call, 2), positions = ref_in(call, 3);
  ref_operand dx = ref_out(call, 0);
  int64_t n = dq.dims[1], m = dk.dims[1];
  nxk_rope rope = rope_attributes(call, NX_merge_qkv_rotary_dims, 4);
  section sections[] = {{dq, 0, true}, {dk, n, true}, {dv, n + m, false}};
  heads_move(call, &dx, sections, 3, &positions, &rope, false);
}

void ref_split_heads(const ref_call *call) {
  ref_operand x = ref_in(call, 0), positions = ref_in(call, 1);
  nxk_rope rope = rope_attributes(call, NX_split_heads_rotary_dims, 2);
  heads_move(call, &x, &(section){ref_out(call, 0), 0, true}, 1, &positions, &rope, true);
}

void ref_merge_heads(const ref_call *call) {
  ref_operand dx = ref_out(call, 0), positions = ref_in(call, 1);
  nxk_rope rope = rope_attributes(call, NX_merge_heads_rotary_dims, 2);
  heads_move(call, &dx, &(section){ref_in(call, 0), 0, true}, 1, &positions, &rope, false);
}

void ref_rotate(const ref_call *call) {
  ref_operand x = ref_in(call, 0), positions = ref_in(call, 1), y = ref_out(call, 0);
  nxk_rope rope = rope_attributes(call, NX_rotate_rotary_dims, 2);
  int64_t pairs = rope.rotary_dims / 2, heads = x.dims[1], n_tokens = x.dims[2], d = x.dims[3];
  double *frequencies = call->work, *cosines = frequencies + pairs, *sines = cosines + pairs;
  for (int64_t i = 0; i < pairs; i++) frequencies[i] = nxk_rope_frequency(&rope, i);
  rotation turn = {&rope, pairs, cosines, sines, ref_int(call, NX_rotate_backward) ? -1 : 1};
  for (int64_t row = 0; row < x.dims[0] * heads * n_tokens; row++) {
    int64_t token = row / (heads * n_tokens) * n_tokens + row % n_tokens;
    turn_angles(&turn, ref_load(&positions, token), frequencies, cosines, sines);
    head_move(&x, row * d, &y, row * d, d, &turn);
  }
}

/* ---- latent attention ---- */

/* What stands for a token beside its latent's features: those that are rotated, of all heads. */
typedef struct latent {
  ref_operand x, r, k, v; /* [B,S,n (p + e)], [B,S,R], [B,n,S,p + R], [B,n,S,e] */
  int64_t heads, n_tokens, plain, rotated, values;
} latent;

static latent latent_of(const ref_operand *x, const ref_operand *r, const ref_operand *k,
                        const ref_operand *v) {
  latent l = {.x = *x, .r = *r, .k = *k, .v = *v, .heads = k->dims[1], .n_tokens = k->dims[2]};
  l.rotated = ref_last_dim(r), l.values = ref_last_dim(v), l.plain = ref_last_dim(k) - l.rotated;
  return l;
}

/* The first feature of a head of a token, where a head has `d` of them. */
static int64_t at_head(const latent *l, int64_t token, int64_t head, int64_t d) {
  return ((token / l->n_tokens * l->heads + head) * l->n_tokens + token % l->n_tokens) * d;
}

static void copy_features(const ref_operand *from, int64_t from_first, const ref_operand *to,
                          int64_t to_first, int64_t n) {
  for (int64_t i = 0; i < n; i++) ref_store(to, to_first + i, ref_load(from, from_first + i));
}

typedef struct turning {
  rotation turn;
  double *frequencies, *cosines, *sines;
} turning;

static turning begin_turning(const ref_call *call, const nxk_rope *rope, double direction) {
  int64_t pairs = rope->rotary_dims / 2;
  turning t = {.frequencies = call->work, .cosines = call->work + pairs, .sines = call->work + 2 * pairs};
  t.turn = (rotation){rope, pairs, t.cosines, t.sines, direction};
  for (int64_t i = 0; i < pairs; i++) t.frequencies[i] = nxk_rope_frequency(rope, i);
  return t;
}

/* And the sums over heads of a token. */
int64_t ref_merge_latent_work(const nxk_operator *operator) {
  return ref_heads_work(operator) + operator->args[4].dims[2];
}

void ref_split_latent(const ref_call *call) {
  ref_operand x = ref_in(call, 0), r = ref_in(call, 1), positions = ref_in(call, 2);
  ref_operand k = ref_out(call, 0), v = ref_out(call, 1);
  latent l = latent_of(&x, &r, &k, &v);
  nxk_rope rope = rope_attributes(call, NX_split_latent_rotary_dims, 3);
  turning t = begin_turning(call, &rope, 1);
  for (int64_t token = 0; token < k.dims[0] * l.n_tokens; token++) {
    turn_angles(&t.turn, ref_load(&positions, token), t.frequencies, t.cosines, t.sines);
    for (int64_t head = 0; head < l.heads; head++) {
      int64_t from = (token * l.heads + head) * (l.plain + l.values);
      int64_t key = at_head(&l, token, head, l.plain + l.rotated);
      copy_features(&x, from, &k, key, l.plain);
      head_move(&r, token * l.rotated, &k, key + l.plain, l.rotated, &t.turn);
      copy_features(&x, from + l.plain, &v, at_head(&l, token, head, l.values), l.values);
    }
  }
}

void ref_merge_latent(const ref_call *call) {
  ref_operand dk = ref_in(call, 0), dv = ref_in(call, 1), positions = ref_in(call, 2);
  ref_operand dx = ref_out(call, 0), dr = ref_out(call, 1);
  latent l = latent_of(&dx, &dr, &dk, &dv);
  nxk_rope rope = rope_attributes(call, NX_merge_latent_rotary_dims, 3);
  turning t = begin_turning(call, &rope, -1);
  double *sums = t.sines + t.turn.pairs;
  const ref_operand sum = {
      .data = sums, .dtype = NX_f64, .n_dims = 1, .dims = &l.rotated, .n_elements = l.rotated};
  for (int64_t token = 0; token < dk.dims[0] * l.n_tokens; token++) {
    turn_angles(&t.turn, ref_load(&positions, token), t.frequencies, t.cosines, t.sines);
    for (int64_t i = 0; i < l.rotated; i++) sums[i] = 0;
    for (int64_t head = 0; head < l.heads; head++) {
      int64_t to = (token * l.heads + head) * (l.plain + l.values);
      int64_t key = at_head(&l, token, head, l.plain + l.rotated);
      copy_features(&dk, key, &dx, to, l.plain);
      copy_features(&dv, at_head(&l, token, head, l.values), &dx, to + l.plain, l.values);
      for (int64_t i = 0; i < l.rotated; i++) sums[i] += ref_load(&dk, key + l.plain + i);
    }
    head_move(&sum, 0, &dr, token * l.rotated, l.rotated, &t.turn);
  }
}
