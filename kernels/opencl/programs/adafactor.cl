/* SPDX-License-Identifier: Apache-2.0 */
/* Adafactor, also with momentum (update_tensor.cl). */
#include "kernels/opencl/programs/update_tensor.cl"

/* ROOM: the new moment, then that of rows, then of columns */
#define OF_ROWS (ROOM + N)
#define OF_COLUMNS (OF_ROWS + ROWS)

kernel void adafactor_moment(OPERANDS) {
  long i = get_global_id(0);
  if (i >= N) return;
  float decay = (float)(1 - pow(AT_STEP->count, A_decay_rate));
  ROOM[i] = decay * STATE_0(i) + (1 - decay) * (squared(SCALED(i)) + 1e-30f);
}

kernel void adafactor_rows(OPERANDS) {
  local float room[LOCAL];
  long row = get_group_id(0);
  float sum = 0;
  for (long column = get_local_id(0); row < ROWS && column < COLUMNS; column += LOCAL)
    sum += ROOM[row * COLUMNS + column];
  sum = group_sum(sum, room) / (float)COLUMNS;
  if (get_local_id(0) == 0 && row < ROWS) OF_ROWS[row] = sum;
}

kernel void adafactor_columns(OPERANDS) {
  long column = get_global_id(0);
  float sum = 0;
  if (column >= COLUMNS) return;
  for (long row = 0; row < ROWS; row++) sum += ROOM[row * COLUMNS + column];
  OF_COLUMNS[column] = sum / (float)ROWS;
}

/* The second moment of an element is that of its row, over the mean of both, times that of its column: so two
 * small ones do not become 0. */
#define MOMENT(i, mean) (ROWS > 1 ? OF_ROWS[(i) / COLUMNS] / (mean) * OF_COLUMNS[(i) % COLUMNS] : ROOM[i])

kernel void adafactor_rate(OPERANDS) {
  local double room[LOCAL];
  SUM_OVER(rows, ROWS, OF_ROWS[i]);
  float mean = (float)(rows / (double)ROWS);
  SUM_OVER(updates, N, squared(SCALED(i)) / MOMENT(i, mean));
  SUM_OVER(parameters, N, squared(P(i)));
  double count = AT_STEP->count, rate = AT_STEP->lr;
  if (A_relative_step) rate = fmin(A_warmup_init ? 1e-6 * count : 1e-2, 1 / sqrt(count));
  if (A_scale_parameter) rate *= fmax(1e-3, sqrt(parameters / (double)N));
  if (get_local_id(0) != 0) return;
  AT_STEP->sums[0] = mean;
  AT_STEP->sums[1] = rate;
  AT_STEP->sums[2] = fmax(1.0, sqrt(updates / (double)N) / A_clip_threshold);
}

kernel void adafactor_store(OPERANDS) {
  long i = get_global_id(0);
  if (i >= N || SKIPPED) return;
  float moment = MOMENT(i, (float)AT_STEP->sums[0]), rate = (float)AT_STEP->sums[1];
  float update = rate * (SCALED(i) / sqrt(moment) / (float)AT_STEP->sums[2]), parameter = P(i);
#ifdef IS_adafactor_momentum
  update = (float)A_momentum * STATE_1(i) + (float)REST(momentum) * update;
#endif
  BOX_OF(i);
  if (box < 0) return;
#ifdef IS_adafactor_momentum
  SET_Y2(box, update);
#endif
  SET_Y0(box, parameter - rate * (float)AT_STEP->decay * parameter - update);
  SET_Y1(box, moment);
}
