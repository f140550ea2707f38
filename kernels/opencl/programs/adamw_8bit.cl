/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW with moments in 8 bits (update_tensor.cl). */
#include "kernels/opencl/programs/update_tensor.cl"
#include "schema/dynamic8.h"

/* ROOM: the greatest new moments of each block, then their squares' */
#define BLOCKS ((N + NX_DYNAMIC8_BLOCK - 1) / NX_DYNAMIC8_BLOCK)
#define FIRST_MOMENT(i, gradient) ((float)A_beta1 * STATE_0(i) + (float)REST(beta1) * (gradient))
#define SECOND_MOMENT(i, gradient) ((float)A_beta2 * STATE_1(i) + (float)REST(beta2) * squared(gradient))

kernel void adamw_8bit_blocks(OPERANDS) {
  long block = get_global_id(0), first = block * NX_DYNAMIC8_BLOCK;
  float most1 = 0, most2 = 0;
  if (block >= BLOCKS || SKIPPED) return;
  for (long i = first; i < min(first + NX_DYNAMIC8_BLOCK, N); i++) {
    float gradient = SCALED(i);
    most1 = fmax(most1, fabs(FIRST_MOMENT(i, gradient)));
    most2 = fmax(most2, SECOND_MOMENT(i, gradient));
  }
  ROOM[block] = most1;
  ROOM[BLOCKS + block] = most2;
}

kernel void adamw_8bit_store(OPERANDS) {
  long i = get_global_id(0), block = i / NX_DYNAMIC8_BLOCK;
  if (i >= N || SKIPPED) return;
  BOX_OF(i);
  if (box < 0) return;
  double count = AT_STEP->count, lr = AT_STEP->lr;
  float rate = (float)(lr / LEFT(beta1, count)), root = (float)(1 / sqrt(LEFT(beta2, count)));
  float gradient = SCALED(i), first = FIRST_MOMENT(i, gradient), second = SECOND_MOMENT(i, gradient);
  float update = rate * (first / (sqrt(second) * root + (float)A_epsilon)), parameter = P(i);
  bool rounded = N >= A_min_8bit_size;
  SET_Y0(box, (parameter - update) * (float)(1 - lr * AT_STEP->decay));
  SET_Y1(box, rounded ? nx_dynamic8_stored(1, first, ROOM[block]) : first);
  SET_Y2(box, rounded ? nx_dynamic8_stored(0, second, ROOM[BLOCKS + block]) : second);
}
