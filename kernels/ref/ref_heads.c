/* SPDX-License-Identifier: Apache-2.0 */
/* Between the layout of matrix products, [B,S,n d], and that of attention, [B,n,S,d], with rotary positions.
 *
 * A section is a run of heads of the wide side that one operand of the other side holds: q, k and v, or the
 * only one. split goes from wide to narrow and turns by the angle; merge comes back and turns by its
 * negative, which is the gradient since a rotation's transpose is its inverse. */
#include "kernels/ref/ref.h"
#include "kernels/rope.h"

#include <math.h>

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
  for (int64_t i = 2 * turn->pairs; i < d; i++) ref_store(to, to_first + i, ref_load(from, from_first + i));
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

static nxk_rope rope_attributes(const ref_call *call, uint32_t first) {
  return nxk_rope_of(&call->operator->attrs[first]);
}

/* Frequency, cosine and sine of each pair, and never nothing. */
int64_t ref_heads_work(const nxk_operator *operator) {
  bool fused = operator->op == NX_OP_split_qkv || operator->op == NX_OP_merge_qkv;
  uint32_t rotary = fused ? NX_split_qkv_rotary_dims : NX_split_heads_rotary_dims;
  if (operator->op == NX_OP_rotate) rotary = NX_rotate_rotary_dims;
  return 3 * (operator->attrs[rotary].integer / 2) + 1;
}

void ref_split_qkv(const ref_call *call) {
  ref_operand x = ref_in(call, 0), positions = ref_in(call, 1);
  ref_operand q = ref_out(call, 0), k = ref_out(call, 1), v = ref_out(call, 2);
  int64_t n = q.dims[1], m = k.dims[1];
  nxk_rope rope = rope_attributes(call, NX_split_qkv_rotary_dims);
  section sections[] = {{q, 0, true}, {k, n, true}, {v, n + m, false}};
  heads_move(call, &x, sections, 3, &positions, &rope, true);
}

void ref_merge_qkv(const ref_call *call) {
  ref_operand dq = ref_in(call, 0), dk = ref_in(call, 1), dv = ref_in(call, 2), positions = ref_in(call, 3);
  ref_operand dx = ref_out(call, 0);
  int64_t n = dq.dims[1], m = dk.dims[1];
  nxk_rope rope = rope_attributes(call, NX_merge_qkv_rotary_dims);
  section sections[] = {{dq, 0, true}, {dk, n, true}, {dv, n + m, false}};
  heads_move(call, &dx, sections, 3, &positions, &rope, false);
}

void ref_split_heads(const ref_call *call) {
  ref_operand x = ref_in(call, 0), positions = ref_in(call, 1);
  nxk_rope rope = rope_attributes(call, NX_split_heads_rotary_dims);
  heads_move(call, &x, &(section){ref_out(call, 0), 0, true}, 1, &positions, &rope, true);
}

void ref_merge_heads(const ref_call *call) {
  ref_operand dx = ref_out(call, 0), positions = ref_in(call, 1);
  nxk_rope rope = rope_attributes(call, NX_merge_heads_rotary_dims);
  heads_move(call, &dx, &(section){ref_in(call, 0), 0, true}, 1, &positions, &rope, false);
}

void ref_rotate(const ref_call *call) {
  ref_operand x = ref_in(call, 0), positions = ref_in(call, 1), y = ref_out(call, 0);
  nxk_rope rope = rope_attributes(call, NX_rotate_rotary_dims);
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
