/* SPDX-License-Identifier: Apache-2.0 */
/* Between the layout of products, [B,S,n d], and that of attention, [B,n,S,d], with rotary positions. First
 * the cosines and sines of each token go to scratch; then an item moves a pair of features, or one that is
 * not rotated. split turns by the angle, merge by its negative. */
#include "kernels/opencl/programs/turns.cl"

typedef struct nxk_rope {
  long rotary_dims, interleaved, rotary_start;
} nxk_rope;
#define ROPE {A_rotary_dims, A_interleaved, A_rotary_start}

/* As kernels/rope.h. */
static long nxk_rope_first(const nxk_rope *rope, long pair) {
  return rope->rotary_start + (rope->interleaved ? 2 * pair : pair);
}
static long nxk_rope_second(const nxk_rope *rope, long pair) {
  return rope->rotary_start + (rope->interleaved ? 2 * pair + 1 : pair + rope->rotary_dims / 2);
}

/* scratch: [tokens, pairs], cosine and sine */
kernel void turns(OPERANDS) {
  long i = get_global_id(0), pairs = A_rotary_dims / 2;
  if (i >= N_POSITIONS * pairs) return;
  ulong turn = (ulong)(long)POSITIONS(i / pairs) * TURN(i % pairs);
  ((global float2 *)scratch)[i] = (float)A_amplitude * cosine_sine(turn);
}

/* One unit of a head of d features: a pair that is turned, or a feature beside the pairs. There are d - pairs
 * of them. */
#define MOVE(LOAD, SET, from, to, unit, d, token, direction, turned) \
  { \
    const nxk_rope rope = ROPE; \
    long all = rope.rotary_dims / 2, pairs = (turned) ? all : 0, start = pairs ? rope.rotary_start : (d); \
    if ((unit) < pairs) { \
      long first = nxk_rope_first(&rope, unit), second = nxk_rope_second(&rope, unit); \
      float2 turn = ((global const float2 *)scratch)[(token) * all + (unit)]; \
      float a = LOAD((from) + first), b = LOAD((from) + second), sine = (direction) * turn.y; \
      SET((to) + first, a * turn.x - b * sine); \
      SET((to) + second, b * turn.x + a * sine); \
    } else if ((unit) < (d) - pairs) { \
      long feature = (unit) - pairs < start ? (unit) - pairs : (unit) + pairs; \
      SET((to) + feature, LOAD((from) + feature)); \
    } \
  }

/* Item i as unit, head and token, where a token has n_heads heads of d features. */
#define UNIT_OF(i, n_heads, d) \
  long unit = (i) % (d), head = (i) / (d) % (n_heads), token = (i) / (d) / (n_heads), \
       wide = (i) / (d) * (d)
/* Where head h of n begins in [B,n,S,d]. */
#define NARROW(h, n, n_tokens, d) \
  (((token / (n_tokens) * (n) + (h)) * (n_tokens) + token % (n_tokens)) * (d))

#ifdef IS_split_qkv
kernel void split_qkv(OPERANDS) {
  long i = get_global_id(0), n = YDIM(0, 1), m = YDIM(1, 1), s = YDIM(0, 2), d = YDIM(0, 3);
  if (i >= XN(0)) return;
  UNIT_OF(i, n + 2 * m, d);
  if (head < n) MOVE(X0, SET_Y0, wide, NARROW(head, n, s, d), unit, d, token, 1, true)
  else if (head < n + m) MOVE(X0, SET_Y1, wide, NARROW(head - n, m, s, d), unit, d, token, 1, true)
  else MOVE(X0, SET_Y2, wide, NARROW(head - n - m, m, s, d), unit, d, token, 1, false)
}
#endif

#ifdef IS_merge_qkv
kernel void merge_qkv(OPERANDS) {
  long i = get_global_id(0), n = XDIM(0, 1), m = XDIM(1, 1), s = XDIM(0, 2), d = XDIM(0, 3);
  if (i >= YN(0)) return;
  UNIT_OF(i, n + 2 * m, d);
  if (head < n) MOVE(X0, SET_Y0, NARROW(head, n, s, d), wide, unit, d, token, -1, true)
  else if (head < n + m) MOVE(X1, SET_Y0, NARROW(head - n, m, s, d), wide, unit, d, token, -1, true)
  else MOVE(X2, SET_Y0, NARROW(head - n - m, m, s, d), wide, unit, d, token, -1, false)
}
#endif

#ifdef IS_split_heads
kernel void split_heads(OPERANDS) {
  long i = get_global_id(0), n = YDIM(0, 1), s = YDIM(0, 2), d = YDIM(0, 3);
  if (i >= XN(0)) return;
  UNIT_OF(i, n, d);
  MOVE(X0, SET_Y0, wide, NARROW(head, n, s, d), unit, d, token, 1, true)
}
#endif

#ifdef IS_merge_heads
kernel void merge_heads(OPERANDS) {
  long i = get_global_id(0), n = XDIM(0, 1), s = XDIM(0, 2), d = XDIM(0, 3);
  if (i >= YN(0)) return;
  UNIT_OF(i, n, d);
  MOVE(X0, SET_Y0, NARROW(head, n, s, d), wide, unit, d, token, -1, true)
}
#endif

#ifdef IS_rotate
kernel void rotate_heads(OPERANDS) {
  long i = get_global_id(0), n = XDIM(0, 1), s = XDIM(0, 2), d = XDIM(0, 3);
  if (i >= XN(0)) return;
  long unit = i % d, row = i / d, token = row / (n * s) * s + row % s;
  MOVE(X0, SET_Y0, row * d, row * d, unit, d, token, A_backward ? -1 : 1, true)
}
#endif

/* Latent attention: of a head's features the first `plain` and all of its values are in x, those that are
 * rotated in r, for all heads. */
#ifdef IS_split_latent
kernel void split_latent(OPERANDS) {
  long n = YDIM(0, 1), s = YDIM(0, 2), rotated = XDIM(1, 3), values = YDIM(1, 3);
  long plain = YDIM(0, 3) - rotated, d = plain + rotated + values, i = get_global_id(0);
  if (i >= XDIM(2, 2) * XDIM(2, 3) * n * d) return;
  long at = i % d, head = i / d % n, token = i / d / n, from = (token * n + head) * (plain + values);
  long key = NARROW(head, n, s, plain + rotated), unit = at - plain;
  if (unit < 0) SET_Y0(key + at, X0(from + at));
  else if (unit < rotated) MOVE(X1, SET_Y0, token * rotated, key + plain, unit, rotated, token, 1, true)
  else SET_Y1(NARROW(head, n, s, values) + unit - rotated, X0(from + plain + unit - rotated));
}
#endif

#ifdef IS_merge_latent
kernel void merge_latent(OPERANDS) {
  long n = XDIM(0, 1), s = XDIM(0, 2), rotated = YDIM(1, 3), values = XDIM(1, 3);
  long plain = XDIM(0, 3) - rotated, d = plain + values, i = get_global_id(0);
  if (i >= YN(0)) return;
  long at = i % d, head = i / d % n, token = i / d / n;
  SET_Y0(i, at < plain ? X0(NARROW(head, n, s, plain + rotated) + at)
                       : X1(NARROW(head, n, s, values) + at - plain));
}

/* scratch, behind the turns: the sums over the heads */
kernel void merge_latent_sum(OPERANDS) {
  long n = XDIM(0, 1), s = XDIM(0, 2), rotated = YDIM(1, 3), d = XDIM(0, 3), i = get_global_id(0);
  if (i >= YN(1)) return;
  long token = i / rotated;
  float sum = 0;
  for (long head = 0; head < n; head++) sum += X0(NARROW(head, n, s, d) + d - rotated + i % rotated);
  ((global float *)scratch)[N_POSITIONS * (A_rotary_dims / 2) * 2 + i] = sum;
}

#define SUMMED(i) (((global const float *)scratch)[N_POSITIONS * (A_rotary_dims / 2) * 2 + (i)])
kernel void merge_latent_turn(OPERANDS) {
  long rotated = YDIM(1, 3), i = get_global_id(0), unit = i % rotated, token = i / rotated;
  if (i >= YN(1)) return;
  MOVE(SUMMED, SET_Y1, token * rotated, token * rotated, unit, rotated, token, -1, true)
}
#endif
