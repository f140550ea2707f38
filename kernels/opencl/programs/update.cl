/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules that work on any run of elements. One item makes the numbers of the step, in fp64; then an
 * item has UPDATE_TURNS runs of WIDTH elements, each as far behind the one before as the group's items take
 * together, so that what a rule makes of the numbers serves them all. Where p is stored in another type than
 * it is trained in, the copy is of what is kept. */
#include "kernels/opencl/programs/numbers.cl"
#include "kernels/opencl/programs/wide.cl"
#include "schema/philox.h"
#include "schema/stochastic.h"
#include "schema/f16.h"

typedef float real;
typedef int nx_dtype;

typedef struct rule_step {
  double number[N_ATTRS], rest[N_ATTRS], left[N_ATTRS];
  double lr, decay, scale;
  long count;
  nx_dtype param, states[4];
} rule_step;

static double rule_rest(const rule_step *step, int number) {
  return step->rest[number];
}

static double rule_left(const rule_step *step, int number) {
  return step->left[number];
}

static real rule_sqrt(real x) {
  return sqrt(x);
}

static real rule_cbrt(real x) {
  return cbrt(x);
}

static real rule_stored(real x, nx_dtype type) {
  if (type == NX_bf16) return nx_bf16_to_float(nx_bf16_from_float(x));
  return type == NX_f16 ? nx_f16_to_float(nx_f16_from_float(x)) : x;
}

#include "kernels/rules/element.h"
#include "kernels/rules/adam.h"

/* scratch: the step */
kernel void update_step(OPERANDS) {
  global rule_step *step = (global rule_step *)scratch;
  if (get_global_id(0) != 0) return;
  step->lr = LR(0), step->decay = DECAY(0), step->scale = SCALE(0), step->count = STEP(0) + 1;
  for (int i = 0; i < N_ATTRS; i++) {
    real_attr number = REAL_ATTR(call.ints[i]);
    if (IS_REAL >> i & 1) number = call.reals[i];
    step->number[i] = REAL_OF(number);
    step->rest[i] = rest_of(number);
    step->left[i] = left_of(number, step->count);
  }
}

/* `what`: 0 a parameter, from 1 on its states. */
#define KEEP(SET, type, what, i, value, gradient) \
  if (call.stochastic && (type) == NX_bf16) \
    SET##_BITS(i, nx_bf16_from_drawn(value, call.seed, (ulong)step.count, what, gradient)); \
  else SET(i, value)

#define KEEP_RUN(SET, type, what, value, gradient) \
  if (n == WIDTH) \
    for (int k = 0; k < WIDTH; k++) { KEEP(SET, type, what, first + k, value, gradient); } \
  else \
    for (int k = 0; k < n; k++) { KEEP(SET, type, what, first + k, value, gradient); }

kernel void update(OPERANDS) {
  rule_step step = *(global const rule_step *)scratch;
  if (isnan(step.scale)) return;
  step.param = TYPE_X0;
#if N_STATES > 0
  step.states[0] = TYPE_X1;
#endif
#if N_STATES > 1
  step.states[1] = TYPE_X2;
#endif
#if N_STATES > 2
  step.states[2] = TYPE_X3;
#endif
#if N_STATES > 3
  step.states[3] = TYPE_X4;
#endif
  for (int turn = 0; turn < UPDATE_TURNS; turn++) {
    long first = (((long)get_group_id(0) * UPDATE_TURNS + turn) * LOCAL + (long)get_local_id(0)) * WIDTH;
    long n = min(XN(0) - first, (long)WIDTH), end = XN(0);
    if (n <= 0) return;
    real p[WIDTH], states[4][WIDTH], gradients[WIDTH];
    real *const rows[4] = {states[0], states[1], states[2], states[3]};
    STORE_WIDE(X0_WIDE(first, end), p);
    STORE_WIDE(GRADIENT_WIDE(first, end), gradients);
#if N_STATES > 0
    STORE_WIDE(X1_WIDE(first, end), states[0]);
#endif
#if N_STATES > 1
    STORE_WIDE(X2_WIDE(first, end), states[1]);
#endif
#if N_STATES > 2
    STORE_WIDE(X3_WIDE(first, end), states[2]);
#endif
#if N_STATES > 3
    STORE_WIDE(X4_WIDE(first, end), states[3]);
#endif
    RULE(&step, p, rows, gradients, WIDTH);
    KEEP_RUN(SET_Y0, TYPE_X0, 0, p[k], gradients[k])
#if N_STATES > 0
    KEEP_RUN(SET_Y1, TYPE_X1, 1, states[0][k], gradients[k])
#endif
#if N_STATES > 1
    KEEP_RUN(SET_Y2, TYPE_X2, 2, states[1][k], gradients[k])
#endif
#if N_STATES > 2
    KEEP_RUN(SET_Y3, TYPE_X3, 3, states[2][k], gradients[k])
#endif
#if N_STATES > 3
    KEEP_RUN(SET_Y4, TYPE_X4, 4, states[3][k], gradients[k])
#endif
#ifdef SET_COPY
    KEEP_RUN(SET_COPY, TYPE_COPY, 0, Y0(first + k), 0)
#endif
  }
}
