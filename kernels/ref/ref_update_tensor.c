/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules of whole tensors, in double. Where a rank has a box of a tensor, the tensor is there too:
 * the rule works on that, and the box of the result is stored. */
#include "kernels/ref/ref_update.h"
#include "kernels/rules/muon.h"
#include "kernels/rules/tensor.h"
#include "schema/dynamic8.h"

#include <string.h>

typedef struct whole {
  rule_step step;
  int64_t rows, columns, n;      /* of the tensor */
  int64_t row, column;           /* where the box starts */
  ref_operand box[1 + NX_MAX_STATES];
  double *p, *states[NX_MAX_STATES], *g;
  double *work;                  /* as much as the tensor six times, and rows and columns */
} whole;

int64_t ref_update_tensor_work(const nxk_operator *operator) {
  if (operator->op == NX_OP_soap) return ref_soap_work(operator);
  rule_step step = rule_step_of(operator);
  const nxk_tensor *all = &operator->args[step.parted ? rule_input(&step, NX_UPDATE_END) : 0];
  return (8 + (int64_t)step.n_states) * nxk_n_elements(all) + all->dims[0] + all->dims[1];
}

/* Input `index` of p, states and gradient, of the whole tensor; of the gradient what it is times its
 * scale. */
static double *load(const ref_call *call, whole *of, uint32_t index, double scale) {
  double *to = of->work;
  ref_operand x = ref_in(call, of->step.parted ? rule_input(&of->step, NX_UPDATE_END) + index : index);
  ref_load_row(&x, 0, 1, of->n, to);
  for (int64_t i = 0; i < of->n; i++) to[i] *= scale;
  of->work += of->n;
  return to;
}

static whole load_whole(const ref_call *call) {
  whole of = {.step = ref_step(call), .work = call->work};
  uint32_t n_states = of.step.n_states;
  of.columns = ref_in(call, of.step.parted ? rule_input(&of.step, NX_UPDATE_END) : 0).dims[1];
  of.rows = ref_int(call, RULE_TENSOR_ROWS);
  of.n = of.rows * of.columns;
  if (of.step.parted) of.row = ref_int(call, RULE_ROW_START), of.column = ref_int(call, RULE_COLUMN_START);
  for (uint32_t k = 0; k <= n_states; k++) of.box[k] = ref_out(call, k);
  of.p = load(call, &of, 0, 1);
  for (uint32_t k = 0; k < n_states; k++) of.states[k] = load(call, &of, 1 + k, 1);
  of.g = load(call, &of, 1 + n_states, of.step.scale);
  return of;
}

static void store_box(const whole *of, const ref_operand *y, const double *all) {
  int64_t columns = y->dims[1];
  for (int64_t i = 0; i < y->dims[0] && of->row + i < of->rows; i++)
    for (int64_t j = 0; j < columns; j++)
      ref_store(y, i * columns + j, all[(of->row + i) * of->columns + of->column + j]);
}

static void store_whole(const ref_call *call, const whole *of) {
  ref_operand copy = {0};
  store_box(of, &of->box[0], of->p);
  for (uint32_t k = 0; k < of->step.n_states; k++) store_box(of, &of->box[1 + k], of->states[k]);
  if (call->operator->n_out > 1 + of->step.n_states) copy = ref_out(call, 1 + of->step.n_states);
  for (int64_t i = 0; copy.data && i < copy.n_elements; i++) ref_store(&copy, i, ref_load(&of->box[0], i));
}

static double sum_of_squares(const double *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
  return sum;
}

/* ---- muon ---- */

/* c = a b^T or a b, of square side n where both are */
static void multiply(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k,
                     bool transposed) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t l = 0; l < k; l++) sum += a[i * k + l] * (transposed ? b[j * k + l] : b[l * n + j]);
      c[i * n + j] = sum;
    }
}

/* x[m,n], m <= n; y is as large, and a square of side m at least; square too. */
static void orthogonalize(const rule_step *step, double *x, double *y, double *square, double *other,
                          int64_t m, int64_t n) {
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

/* The `width` columns from the first on, whose rows are `stride` apart; a tall part is turned over. `room` as
 * ref_update_tensor_work says. */
static void orthogonalize_part(const rule_step *step, double *x, int64_t rows, int64_t width, int64_t stride,
                               double *room) {
  const bool tall = rows > width;
  const int64_t least = tall ? width : rows, n = rows * width;
  double *part = room, *y = part + n, *square = y + n, *other = square + least * least;
  for (int64_t i = 0; i < n; i++)
    part[tall ? i % width * rows + i / width : i] = x[i / width * stride + i % width];
  orthogonalize(step, part, y, square, other, least, n / least);
  for (int64_t i = 0; i < n; i++)
    x[i / width * stride + i % width] = part[tall ? i % width * rows + i / width : i];
}

static void update_muon(const ref_call *call) {
  whole of = load_whole(call);
  if (isnan(of.step.scale)) return;
  const int64_t n = of.n, width = of.columns / ref_int(call, NX_muon_column_parts);
  double *direction = of.work, *room = direction + n;
  rule_step unscaled = of.step;
  unscaled.scale = 1;
  rule_muon_direction(&unscaled, of.states[0], of.g, direction, n);
  for (int64_t first = 0; first < of.columns; first += width)
    orthogonalize_part(&of.step, direction + first, of.rows, width, of.columns, room);
  double scale = rule_muon_scale(&of.step, (double)of.rows, (double)width);
  if (of.step.n_states > 1)
    rule_muon_adapt(&of.step, scale, direction, of.states[1], room, of.rows, of.columns);
  rule_muon_apply(&of.step, scale, of.p, direction, n);
  store_whole(call, &of);
}

void ref_muon(const ref_call *call) {
  update_muon(call);
}

void ref_adaptive_muon(const ref_call *call) {
  update_muon(call);
}

/* ---- novograd ---- */

void ref_novograd(const ref_call *call) {
  whole of = load_whole(call);
  if (isnan(of.step.scale)) return;
  const double *number = of.step.number;
  double beta1 = number[NX_novograd_beta1], norm = sum_of_squares(of.g, of.n);
  double *m = of.states[0], *v = of.states[1], rate = of.step.lr;
  double second = rule_novograd_second(&of.step, v[0], norm);
  double divisor = sqrt(second) + number[NX_novograd_epsilon],
         share = number[NX_novograd_grad_averaging] != 0 ? 1 - beta1 : 1;
  for (int64_t i = 0; i < of.n; i++) {
    v[i] = second;
    m[i] = beta1 * m[i] + share * (of.g[i] / divisor + of.step.decay * of.p[i]);
  }
  if (number[NX_novograd_luc] != 0)
    rate = rule_novograd_bound(&of.step, sqrt(sum_of_squares(of.p, of.n)), sqrt(sum_of_squares(m, of.n)));
  for (int64_t i = 0; i < of.n; i++) of.p[i] -= rate * m[i];
  store_whole(call, &of);
}

/* ---- SM3 ---- */

/* What rows and columns have is the greatest sum in them; an element has the lesser of both. A vector has its
 * own. Behind a decay they have the greatest so far: an element keeps what it began with where that is more.
 * Gradients become updates. */
static void add_squares(const whole *of, double *sums) {
  double *of_rows = of->work, *of_columns = of_rows + of->rows;
  memset(of_rows, 0, (size_t)(of->rows + of->columns) * sizeof *of_rows);
  for (int64_t i = 0; i < of->n; i++) {
    of_rows[i / of->columns] = fmax(of_rows[i / of->columns], sums[i]);
    of_columns[i % of->columns] = fmax(of_columns[i % of->columns], sums[i]);
  }
  const double beta = of->step.number[NX_sm3_sum_beta], kept = beta > 0 ? beta : 1;
  for (int64_t i = 0; i < of->n; i++) {
    double least =
        of->rows == 1 ? of_columns[i] : fmin(of_rows[i / of->columns], of_columns[i % of->columns]);
    double *g = &of->g[i], sum = kept * least + (1 - beta) * (*g * *g);
    *g /= sqrt(sum + of->step.number[NX_sm3_epsilon]);
    sums[i] = beta > 0 ? fmax(least, sum) : sum;
  }
}

static void update_sm3(const ref_call *call, double momentum) {
  whole of = load_whole(call);
  if (isnan(of.step.scale)) return;
  add_squares(&of, of.states[0]);
  for (int64_t i = 0; i < of.n; i++) {
    double update = of.g[i];
    if (of.step.n_states > 1) update = of.states[1][i] = (1 - momentum) * update + momentum * of.states[1][i];
    of.p[i] -= of.step.lr * update;
  }
  store_whole(call, &of);
}

void ref_sm3(const ref_call *call) {
  update_sm3(call, 0);
}

void ref_sm3_momentum(const ref_call *call) {
  update_sm3(call, ref_real(call, NX_sm3_momentum_momentum));
}

/* ---- Adafactor ---- */

static double root_mean_square(const double *x, int64_t n) {
  return sqrt(sum_of_squares(x, n) / (double)n);
}

/* The second moment of an element is that of its row times that of its column, over the mean of both. */
static void factor(const whole *of, double *moment) {
  double *of_rows = of->work, *of_columns = of_rows + of->rows, mean = 0;
  memset(of_rows, 0, (size_t)(of->rows + of->columns) * sizeof *of_rows);
  for (int64_t i = 0; i < of->n; i++) {
    of_rows[i / of->columns] += moment[i] / (double)of->columns;
    of_columns[i % of->columns] += moment[i] / (double)of->rows;
  }
  for (int64_t i = 0; i < of->rows; i++) mean += of_rows[i] / (double)of->rows;
  for (int64_t i = 0; i < of->n; i++)
    moment[i] = of_rows[i / of->columns] * of_columns[i % of->columns] / mean;
}

static void update_adafactor(const ref_call *call) {
  whole of = load_whole(call);
  if (isnan(of.step.scale)) return;
  const double *number = of.step.number;
  double *v = of.states[0], decay = rule_adafactor_decay(&of.step);
  double rate = rule_adafactor_rate(&of.step, root_mean_square(of.p, of.n));
  for (int64_t i = 0; i < of.n; i++)
    v[i] = decay * v[i] + (1 - decay) * (of.g[i] * of.g[i] + rule_adafactor_square);
  if (of.rows > 1) factor(&of, v);
  for (int64_t i = 0; i < of.n; i++) of.g[i] /= sqrt(v[i]);
  double scale = fmax(1, root_mean_square(of.g, of.n) / number[NX_adafactor_clip_threshold]);
  for (int64_t i = 0; i < of.n; i++) of.g[i] *= rate / scale;
  const double momentum = of.step.n_states > 1 ? number[NX_adafactor_momentum_momentum] : 0;
  for (int64_t i = 0; i < of.n && of.step.n_states > 1; i++)
    of.g[i] = of.states[1][i] = momentum * of.states[1][i] + (1 - momentum) * of.g[i];
  for (int64_t i = 0; i < of.n; i++) of.p[i] -= rate * of.step.decay * of.p[i] + of.g[i];
  store_whole(call, &of);
}

void ref_adafactor(const ref_call *call) {
  update_adafactor(call);
}

void ref_adafactor_momentum(const ref_call *call) {
  update_adafactor(call);
}

/* ---- AdamW in 8 bits ---- */

static void round_blocks(double *x, int64_t n, bool is_signed) {
  for (int64_t first = 0; first < n; first += NX_DYNAMIC8_BLOCK) {
    int64_t end = first + NX_DYNAMIC8_BLOCK < n ? first + NX_DYNAMIC8_BLOCK : n;
    float most = 0;
    for (int64_t i = first; i < end; i++) most = fmaxf(most, fabsf((float)x[i]));
    for (int64_t i = first; i < end; i++) x[i] = (double)nx_dynamic8_stored(is_signed, (float)x[i], most);
  }
}

/* The parameters see the moments before they are rounded, and are decayed behind the step. */
void ref_adamw_8bit(const ref_call *call) {
  whole of = load_whole(call);
  if (isnan(of.step.scale)) return;
  const rule_moments by =
      rule_moments_of(&of.step, NX_adamw_8bit_beta1, NX_adamw_8bit_beta2, NX_adamw_8bit_epsilon, true);
  const double kept = 1 - of.step.lr * of.step.decay;
  double *m = of.states[0], *v = of.states[1];
  for (int64_t i = 0; i < of.n; i++) {
    m[i] = by.beta1 * m[i] + by.rest1 * of.g[i];
    v[i] = by.beta2 * v[i] + by.rest2 * of.g[i] * of.g[i];
    of.p[i] = (of.p[i] - by.rate * (m[i] / (sqrt(v[i]) * by.root + by.epsilon))) * kept;
  }
  if (of.n >= ref_int(call, NX_adamw_8bit_min_8bit_size)) {
    round_blocks(m, of.n, true);
    round_blocks(v, of.n, false);
  }
  store_whole(call, &of);
}
