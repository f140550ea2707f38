/* SPDX-License-Identifier: Apache-2.0 */
/* NovoGrad (update_tensor.cl). */
#include "kernels/opencl/programs/update_tensor.cl"

kernel void novograd_norm(OPERANDS) {
  local double room[LOCAL];
  SUM_OVER(squares, N, squared(SCALED(i)));
  double before = STATE_1(0), all = before == 0 ? squares : A_beta2 * before + REST(beta2) * squares;
  if (get_local_id(0) == 0) AT_STEP->sums[0] = all;
}

/* ROOM: the new first moment */
kernel void novograd_moment(OPERANDS) {
  long i = get_global_id(0);
  if (i >= N || SKIPPED) return;
  float divisor = (float)(sqrt(AT_STEP->sums[0]) + A_epsilon);
  float share = A_grad_averaging ? (float)REST(beta1) : 1;
  ROOM[i] = (float)A_beta1 * STATE_0(i) + share * (SCALED(i) / divisor + (float)AT_STEP->decay * P(i));
}

kernel void novograd_rate(OPERANDS) {
  local double room[LOCAL];
  double rate = AT_STEP->lr;
  SUM_OVER(moments, N, squared(ROOM[i]));
  SUM_OVER(parameters, N, squared(P(i)));
  if (A_luc) rate = fmin(rate, A_luc_trust * sqrt(parameters) / (sqrt(moments) + A_luc_epsilon));
  if (get_local_id(0) == 0) AT_STEP->sums[1] = rate;
}

kernel void novograd_store(OPERANDS) {
  long i = get_global_id(0);
  if (i >= N || SKIPPED) return;
  BOX_OF(i);
  if (box < 0) return;
  SET_Y0(box, P(i) - (float)AT_STEP->sums[1] * ROOM[i]);
  SET_Y1(box, ROOM[i]);
  SET_Y2(box, AT_STEP->sums[0]);
}
