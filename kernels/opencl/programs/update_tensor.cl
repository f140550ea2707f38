/* SPDX-License-Identifier: Apache-2.0 */
/* What the update rules of whole tensors begin with, a program each. Where a rank has a box of a tensor, P,
 * STATE and GRADIENT are the tensor as a whole all the same, and what is in the box is stored. One item makes
 * the numbers of the step in fp64; sums over a tensor are one group's. scratch: the step, then what a rule
 * keeps between its kernels. */
#include "kernels/opencl/programs/tile.cl"
#include "kernels/opencl/programs/numbers.cl"

typedef struct step_values {
  double lr, decay, scale, count;
  double sums[4];
} step_values;

#define AT_STEP ((global step_values *)scratch)
#define ROOM ((global float *)(scratch + sizeof(step_values)))
#define ROWS A_tensor_rows
#define N (ROWS * COLUMNS)
#define SKIPPED isnan(AT_STEP->scale)

kernel void update_step(OPERANDS) {
  const step_values step = {LR(0), DECAY(0), SCALE(0), (double)(STEP(0) + 1), {0, 0, 0, 0}};
  if (get_global_id(0) == 0) *AT_STEP = step;
}

/* Element i of the tensor as one of the box: -1 where it is not there. */
#ifdef PARTED
#define BOX_OF(i) \
  long box_row = (i) / COLUMNS - A_row_start, box_column = (i) % COLUMNS - A_column_start; \
  bool inside = box_row >= 0 && box_row < YDIM(0, 2) && box_column >= 0 && box_column < YDIM(0, 3); \
  long box = inside ? box_row * YDIM(0, 3) + box_column : -1
#else
#define BOX_OF(i) long box = (i)
#endif

#ifdef SET_COPY
kernel void update_copy(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0) && !SKIPPED) SET_COPY(i, Y0(i));
}
#endif

/* The sum over n elements of an expression in i, by one group. */
#define SUM_OVER(sum, n, expression) \
  double sum = 0; \
  for (long i = get_local_id(0); i < (n); i += LOCAL) sum += (double)(expression); \
  sum = group_sum(sum, room)

static float squared(float x) {
  return x * x;
}

#define SCALED(i) (GRADIENT(i) * (float)AT_STEP->scale)
