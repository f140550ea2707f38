/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element: one work-item for each. */
#include "schema/philox.h"

#ifdef IS_add
kernel void add(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, X0(i) + X1(i));
}
#endif

#ifdef IS_vote
kernel void vote(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, X0(i) > 0 ? A_share : X0(i) < 0 ? -A_share : X0(i));
}
#endif

#ifdef IS_clamp
kernel void clamp_value(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, fabs(X0(i)) > (float)A_limit ? copysign((float)A_limit, X0(i)) : X0(i));
}
#endif

#ifdef IS_clamp_grad
kernel void clamp_grad(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, fabs(X1(i)) > (float)A_limit ? 0 : X0(i));
}
#endif

#ifdef IS_bias_add
kernel void bias_add(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, X0(i) + X1(i % YDIM(0, 3)));
}
#endif

#ifdef IS_columns_add
kernel void columns_add(OPERANDS) {
  long i = get_global_id(0), n = XDIM(0, 3), m = XDIM(1, 3), column = i % n - A_first;
  if (i >= YN(0)) return;
  float added = column >= 0 && column < m ? (float)A_scale * X1(i / n * m + column) : 0;
  SET_Y0(i, X0(i) + added);
}
#endif

#ifdef IS_row_gate
kernel void row_gate(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, X0(i) / (1 + exp(-X1(i / (XDIM(0, 3) / XDIM(1, 3))))));
}
#endif

#ifdef IS_row_gate_grad
/* Gates of a feature each are an item's, others a group's. */
kernel void row_gate_grad(OPERANDS) {
  local float room[LOCAL];
  long row = get_group_id(0), n = XDIM(0, 3), n_gates = XDIM(2, 3), width = n / n_gates;
  for (long i = row * n + get_local_id(0); width == 1 && i < (row + 1) * n; i += LOCAL) {
    float share = 1 / (1 + exp(-X2(i))), dy = X0(i);
    SET_Y0(i, dy * share);
    SET_Y1(i, dy * X1(i) * share * (1 - share));
  }
  for (long gate = row * n_gates; width > 1 && gate < (row + 1) * n_gates; gate++) {
    float share = 1 / (1 + exp(-X2(gate))), sum = 0;
    for (long i = gate * width + get_local_id(0); i < (gate + 1) * width; i += LOCAL) {
      float dy = X0(i);
      sum += dy * X1(i);
      SET_Y0(i, dy * share);
    }
    sum = group_sum(sum, room);
    if (get_local_id(0) == 0) SET_Y1(gate, sum * share * (1 - share));
  }
}
#endif

#ifdef IS_columns
kernel void columns(OPERANDS) {
  long i = get_global_id(0), n = XDIM(0, 3), m = YDIM(0, 3);
  if (i < YN(0)) SET_Y0(i, (float)A_scale * X0(i / m * n + A_first + i % m));
}
#endif

#ifdef IS_join
kernel void join(OPERANDS) {
  long i = get_global_id(0), f = YDIM(0, 3), g = XDIM(0, 3), column = i % f;
  if (i >= YN(0)) return;
  SET_Y0(i, column < g ? X0(i / f * g + column) : X1(i / f * (f - g) + column - g));
}
#endif

#ifdef IS_fill
kernel void fill(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, A_value);
}
#endif

#ifdef IS_cast
kernel void cast(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, X0(i));
}
#endif

#ifdef IS_slice
kernel void slice(OPERANDS) {
  long i = get_global_id(0), inner = 1;
  if (i >= YN(0)) return;
  for (long dim = 4 - RANK_Y0 + A_axis; dim < 4; dim++) inner *= YDIM(0, dim);
  bool there = A_part >= 0 && A_part < A_parts;
  long from = (i / inner * A_parts + A_part) * inner + i % inner;
  SET_Y0(i, there ? X0(from) : 0);
}
#endif

#ifdef IS_loss_weights
kernel void loss_weights(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
#if N_IN > 2
  SET_Y0(i, X0(0) * X2(i));
#else
  SET_Y0(i, X0(0));
#endif
}
#endif

#ifdef IS_random_logits
#pragma OPENCL FP_CONTRACT OFF /* with the bits of every other backend */
#include "schema/normal.h"
#endif
#if defined IS_dropout || defined IS_jitter || defined IS_random_logits
#if N_IN > 2
#define TOKEN(place) X2(place)
#else
#define TOKEN(place) (place)
#endif
/* The random word of element i. */
#define DRAW(word, i) \
  long width = XDIM(0, 3), n_tokens = YN(0) / (XN(1) * width), row = (i) / width; \
  long feature = A_feature_start + (i) % width, place = A_seq_start + row % n_tokens; \
  nx_philox words = nx_philox_dropout(call.seed, (uint)A_tensor_id, (ulong)X1(row / n_tokens), \
                                      (uint)TOKEN(place), (uint)(feature / 4)); \
  uint word = words.word[feature % 4]
#endif

#ifdef IS_dropout
kernel void dropout(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
  DRAW(word, i);
  bool kept = nx_philox_keeps(word, THRESHOLD(probability));
  SET_Y0(i, kept ? X0(i) / (float)(1 - A_probability) : 0);
}
#endif

#ifdef IS_jitter
kernel void jitter(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
  DRAW(word, i);
  SET_Y0(i, (double)X0(i) * (1 + A_width * ((word + 0.5) / 2147483648.0 - 1)));
}
#endif

#ifdef IS_random_logits
kernel void random_logits(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
  DRAW(word, i);
  SET_Y0(i, A_deviation * nx_normal(word));
}
#endif

#ifdef IS_add_up
kernel void add_up(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, Y0(i) + X0(i));
}
#endif
