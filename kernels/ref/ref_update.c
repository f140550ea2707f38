/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules, in double. Where p is stored in another type than it is trained in, the copy is of what is kept, as
 * after a resume. */
#include "kernels/ref/ref.h"

#include <math.h>

typedef double real;

static inline real rule_sqrt(real x) {
  return sqrt(x);
}

static inline real rule_cbrt(real x) {
  return cbrt(x);
}

static inline real rule_stored(real x, nx_dtype type) {
  return type == NX_f32 ? (double)(float)x : type == NX_bf16 ? (double)nx_bf16_to_float(nx_bf16_from_double(x)) : x;
}

#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* that ask for vectors */
#include "kernels/rules/element.h"

typedef void element_rule(const rule_step *step, real *restrict p, real *const *states, const real *restrict g,
                          int64_t n);

enum { CHUNK = 256 };

static rule_step read_step(const ref_call *call) {
  rule_step step = rule_step_of(call->operator);
  ref_operand lr = ref_in(call, rule_input(&step, NX_UPDATE_LR));
  ref_operand decay = ref_in(call, rule_input(&step, NX_UPDATE_DECAY));
  ref_operand scale = ref_in(call, rule_input(&step, NX_UPDATE_SCALE));
  ref_operand now = ref_in(call, rule_input(&step, NX_UPDATE_STEP));
  step.lr = ref_load(&lr, 0);
  step.decay = ref_load(&decay, 0);
  step.scale = ref_load(&scale, 0);
  rule_step_count(&step, ref_index(&now, 0) + 1);
  return step;
}

static void run_element(const ref_call *call, element_rule *rule) {
  rule_step step = read_step(call);
  uint32_t n_kept = 1 + step.n_states; /* p and states */
  ref_operand g = ref_in(call, rule_input(&step, NX_UPDATE_GRADIENT)), kept[1 + NX_MAX_STATES], copy = {0};
  double rows[1 + NX_MAX_STATES][CHUNK], gradients[CHUNK];
  real *states[NX_MAX_STATES];
  for (uint32_t k = 0; k < n_kept; k++) kept[k] = ref_out(call, k);
  for (uint32_t k = 0; k < step.n_states; k++) states[k] = rows[1 + k];
  if (call->operator->n_out > n_kept) copy = ref_out(call, n_kept);
  for (int64_t start = 0; start < g.n_elements; start += CHUNK) {
    int64_t n = g.n_elements - start < CHUNK ? g.n_elements - start : CHUNK;
    ref_load_row(&g, start, 1, n, gradients);
    for (uint32_t k = 0; k < n_kept; k++) ref_load_row(&kept[k], start, 1, n, rows[k]);
    rule(&step, rows[0], states, gradients, n);
    for (uint32_t k = 0; k < n_kept; k++) ref_store_row(&kept[k], start, n, rows[k]);
    for (int64_t i = start; copy.data && i < start + n; i++) ref_store(&copy, i, ref_load(&kept[0], i));
  }
}

#define ELEMENT(number, name, n_states, meaning) \
  void ref_##name(const ref_call *call) { \
    run_element(call, rule_##name); \
  }
#include "schema/optimizers.def"

/* ---- tensors ---- */

/* A matrix of doubles in workspace, of which this rank has a box. */
typedef struct whole {
  int64_t rows, columns;         /* of the tensor */
  int64_t row, column;           /* where the box starts */
  int64_t box_rows, box_columns;
} whole;

static int64_t whole_elements(const nxk_operator *operator) {
  uint32_t n_states = nx_optimizer_n_states(nx_optimizer_of(operator->op));
  bool parted = operator->n_in > 1 + n_states + NX_UPDATE_END;
  return nxk_n_elements(&operator->args[parted ? 1 + n_states + NX_UPDATE_END : 0]);
}

/* p, states, gradient, direction, what the iteration makes of it, and two square matrices. */
int64_t ref_muon_work(const nxk_operator *operator) {
  int64_t n = whole_elements(operator);
  return 7 * n + 2 * n;
}

static void load_all(const ref_operand *x, double *y) {
  ref_load_row(x, 0, 1, x->n_elements, y);
}

/* c = a b^T or a b, of square side n where both are */
static void multiply(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k, bool transposed) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t l = 0; l < k; l++) sum += a[i * k + l] * (transposed ? b[j * k + l] : b[l * n + j]);
      c[i * n + j] = sum;
    }
}

static void transpose(const double *x, double *y, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) y[j * rows + i] = x[i * columns + j];
}

/* x[m,n], m <= n; y is as large, and a square of side m at least; square too. */
static void orthogonalize(const rule_step *step, double *x, double *y, double *square, double *other, int64_t m,
                          int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < m * n; i++) sum += x[i] * x[i];
  double norm = fmax(sqrt(sum), rule_muon_epsilon);
  for (int64_t i = 0; i < m * n; i++) x[i] /= norm;
  for (int64_t round = 0; round < (int64_t)step->number[NX_muon_ns_steps]; round++) {
    const double *k = rule_muon_coefficients_of(step, round);
    multiply(x, x, square, m, m, n, true);
    multiply(square, square, other, m, m, m, false);
    for (int64_t i = 0; i < m * m; i++) other[i] = k[1] * square[i] + k[2] * other[i];
    multiply(other, x, y, m, n, m, false);
    for (int64_t i = 0; i < m * n; i++) x[i] = k[0] * x[i] + y[i];
  }
}

static whole box_of(const ref_call *call, const rule_step *step, uint32_t row_start, uint32_t column_start) {
  ref_operand p = ref_in(call, 0), all = ref_in(call, step->parted ? rule_input(step, NX_UPDATE_END) : 0);
  return (whole){all.dims[0], all.dims[1], step->parted ? ref_int(call, row_start) : 0,
                 step->parted ? ref_int(call, column_start) : 0, p.dims[0], p.dims[1]};
}

/* Input `index` of p, states and gradient, of the whole tensor. */
static ref_operand whole_of(const ref_call *call, const rule_step *step, uint32_t index) {
  return ref_in(call, step->parted ? rule_input(step, NX_UPDATE_END) + index : index);
}

static void store_box(const ref_operand *y, const whole *of, const double *all) {
  for (int64_t i = 0; i < of->box_rows; i++)
    for (int64_t j = 0; j < of->box_columns; j++)
      ref_store(y, i * of->box_columns + j, all[(of->row + i) * of->columns + of->column + j]);
}

void ref_muon(const ref_call *call) {
  rule_step step = read_step(call);
  whole of = box_of(call, &step, NX_muon_row_start, NX_muon_column_start);
  int64_t n = of.rows * of.columns, least = of.rows < of.columns ? of.rows : of.columns;
  double *p = call->work, *m = p + n, *g = m + n, *direction = g + n, *turned = direction + n, *y = turned + n;
  double *square = y + n, *other = square + least * least;
  ref_operand all_p = whole_of(call, &step, 0), all_m = whole_of(call, &step, 1), all_g = whole_of(call, &step, 2);
  load_all(&all_p, p), load_all(&all_m, m), load_all(&all_g, g);
  rule_muon_direction(&step, m, g, direction, n);
  bool tall = of.rows > of.columns;
  if (tall) transpose(direction, turned, of.rows, of.columns);
  orthogonalize(&step, tall ? turned : direction, y, square, other, least, n / least);
  if (tall) transpose(turned, direction, of.columns, of.rows);
  double rate = rule_muon_rate(&step, (double)of.rows, (double)of.columns), kept = 1 - step.lr * step.decay;
  for (int64_t i = 0; i < n; i++) p[i] = p[i] * kept - rate * direction[i];
  ref_operand new_p = ref_out(call, 0), new_m = ref_out(call, 1), copy = {0};
  store_box(&new_p, &of, p), store_box(&new_m, &of, m);
  if (call->operator->n_out > 2) copy = ref_out(call, 2);
  for (int64_t i = 0; copy.data && i < copy.n_elements; i++) ref_store(&copy, i, ref_load(&new_p, i));
}
