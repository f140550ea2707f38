/* SPDX-License-Identifier: Apache-2.0 */
/* SM3, also with momentum (update_tensor.cl). */
#include "kernels/opencl/programs/update_tensor.cl"

/* ROOM: the greatest sum of each row, then of each column */
kernel void sm3_rows(OPERANDS) {
  local float room[LOCAL];
  long row = get_group_id(0);
  float most = 0;
  for (long column = get_local_id(0); row < ROWS && column < COLUMNS; column += LOCAL)
    most = fmax(most, STATE_0(row * COLUMNS + column));
  most = group_max(most, room);
  if (get_local_id(0) == 0 && row < ROWS) ROOM[row] = most;
}

kernel void sm3_columns(OPERANDS) {
  long column = get_global_id(0);
  float most = 0;
  if (column >= COLUMNS) return;
  for (long row = 0; row < ROWS; row++) most = fmax(most, STATE_0(row * COLUMNS + column));
  ROOM[ROWS + column] = most;
}

kernel void sm3_store(OPERANDS) {
  long i = get_global_id(0);
  if (i >= N || SKIPPED) return;
  BOX_OF(i);
  if (box < 0) return;
  float of_column = ROOM[ROWS + i % COLUMNS];
  float least = ROWS == 1 ? of_column : fmin(ROOM[i / COLUMNS], of_column);
  float gradient = SCALED(i), beta = A_sum_beta > 0 ? (float)A_sum_beta : 1;
  float sum = beta * least + (float)REST(sum_beta) * (gradient * gradient);
  float update = gradient / sqrt(sum + (float)A_epsilon), parameter = P(i);
#ifdef IS_sm3_momentum
  update = (float)REST(momentum) * update + (float)A_momentum * STATE_1(i);
  SET_Y2(box, update);
#endif
  SET_Y1(box, A_sum_beta > 0 ? fmax(least, sum) : sum);
  SET_Y0(box, parameter - (float)AT_STEP->lr * update);
}
