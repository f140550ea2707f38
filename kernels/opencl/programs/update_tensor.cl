/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules of whole tensors. Where a rank has a box of a tensor, P, STATE and GRADIENT are the tensor
 * as a whole all the same, and what is in the box is stored. One item makes the numbers of the step in fp64;
 * sums over a tensor are one group's. scratch: the step, then what a rule keeps between its kernels. */
#include "kernels/opencl/programs/tile.cl"
#include "kernels/opencl/programs/numbers.cl"
#ifdef IS_adamw_8bit
#include "schema/dynamic8.h"
#endif
#include "schema/muon_scale.h"

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

#if defined IS_muon || defined IS_adaptive_muon
/* X is what is made orthogonal: the parts of the matrix one behind the other, each with no more rows than
 * columns, [LEAST, MOST]; all of them twice, in turns. `part` is the one that a kernel works on. */
#define WIDTH (COLUMNS / A_column_parts)
#define LEAST min(ROWS, WIDTH)
#define MOST max(ROWS, WIDTH)
#define N_PART (ROWS * WIDTH)
#define X_NOW (ROOM + (call.round % 2) * N + part * N_PART)
#define X_NEXT (ROOM + (1 - call.round % 2) * N + part * N_PART)
#define SQUARE (ROOM + 2 * N + part * 2 * LEAST * LEAST)
#define MIXED (SQUARE + LEAST * LEAST)
#define NORMS (ROOM + N)
#define ROUNDED(x) nx_bf16_to_float(nx_bf16_from_float(x))
#define AS_STORED(x) (A_rounded_update ? ROUNDED(x) : (x))
#define IN_MOMENTUM(x) (A_rounded_momentum == rounded_momentum_all ? ROUNDED(x) : (x))

/* Where an element of the matrix is in X. */
static long placed(long i, long rows, long columns, long width) {
  long row = i / columns, column = i % columns % width;
  return i % columns / width * rows * width + (rows > width ? column * rows + row : row * width + column);
}

kernel void muon_direction(OPERANDS) {
  long i = get_global_id(0);
  if (i >= N || SKIPPED) return;
  float momentum = (float)A_momentum, rest = (float)REST(momentum), gradient = SCALED(i);
  if (A_rounded_momentum) gradient = ROUNDED(gradient);
  float mean = IN_MOMENTUM(momentum * STATE_0(i) + rest * gradient);
  float direction = IN_MOMENTUM(A_nesterov ? rest * gradient + momentum * mean : mean);
  ROOM[placed(i, ROWS, COLUMNS, WIDTH)] = AS_STORED(direction);
  BOX_OF(i);
  if (box >= 0) SET_Y1(box, mean);
}

kernel void muon_norm(OPERANDS) {
  local double room[LOCAL];
  long part = get_group_id(0);
  const global float *x = ROOM + part * N_PART;
  SUM_OVER(squares, N_PART, squared(x[i]));
  if (get_local_id(0) == 0) NORMS[part] = (float)fmax(sqrt(squares), 1e-7);
}

kernel void muon_divide(OPERANDS) {
  long i = get_global_id(0);
  if (i < N) ROOM[i] /= NORMS[i / N_PART];
}

#define LOAD_X(i, end) load_wide_f32((global const uchar *)X_NOW, i, end)
#define LOAD_SQUARE(i, end) load_wide_f32((global const uchar *)SQUARE, i, end)
#define LOAD_MIXED(i, end) load_wide_f32((global const uchar *)MIXED, i, end)
#define COEFFICIENT(k) (float)muon_coefficients[call.round * 3 + (k)]
#define MUON_PRODUCT(columns, depth, b_column_, b_k_) \
  TILE_ROOM \
  product p = {LEAST, columns, depth, depth, 1, b_column_, b_k_}; \
  long n_across = TILES(p.n, TILE_COLUMNS), n_tiles = n_across * TILES(p.m, TILE_ROWS); \
  long part = min((long)get_group_id(0) / n_tiles, (long)A_column_parts - 1); \
  long tile = get_group_id(0) - part * n_tiles; \
  long row = tile / n_across * TILE_ROWS, column = tile % n_across * TILE_COLUMNS; \
  TILE_SUMS(sums)

kernel void muon_square(OPERANDS) {
#define SET_SQUARE(row, column, sum) (SQUARE[(row) * p.n + (column)] = (sum))
  MUON_PRODUCT(LEAST, MOST, MOST, 1);
  TILE_SUM(sums, p, row, column, LOAD_X, LOAD_X, a_tile, b_tile)
  TILE_STORE(sums, p, row, column, SET_SQUARE)
}

kernel void muon_mix(OPERANDS) {
#define SET_MIXED(row, column, sum) \
  (MIXED[(row) * p.n + (column)] = COEFFICIENT(1) * SQUARE[(row) * p.n + (column)] + COEFFICIENT(2) * (sum))
  MUON_PRODUCT(LEAST, LEAST, 1, LEAST);
  TILE_SUM(sums, p, row, column, LOAD_SQUARE, LOAD_SQUARE, a_tile, b_tile)
  TILE_STORE(sums, p, row, column, SET_MIXED)
}

kernel void muon_apply(OPERANDS) {
#define SET_NEXT(row, column, sum) \
  (X_NEXT[(row) * p.n + (column)] = COEFFICIENT(0) * X_NOW[(row) * p.n + (column)] + (sum))
  MUON_PRODUCT(MOST, LEAST, 1, MOST);
  TILE_SUM(sums, p, row, column, LOAD_MIXED, LOAD_X, a_tile, b_tile)
  TILE_STORE(sums, p, row, column, SET_NEXT)
}

/* From here on call.round is the number of rounds. */
#define SCALE_OF_UPDATE (A_update_factor * nx_muon_scale(A_update_scale, ROWS, WIDTH))
#define UPDATE(i) (ROOM + (call.round % 2) * N)[placed(i, ROWS, COLUMNS, WIDTH)]

#ifdef IS_adaptive_muon
/* Of each row, where there are no fewer rows than columns, or else of each column: its sum of squares in the
 * scaled update, and its second moment. */
#define LINES max(ROWS, COLUMNS)
#define LINE_SUMS (ROOM + 2 * N + 2 * A_column_parts * LEAST * LEAST)
#define LINE_SECONDS (LINE_SUMS + LINES)
#define LINE(i) (ROWS >= COLUMNS ? (i) / COLUMNS : (i) % COLUMNS)
#define AT_LEAST(second) fmax(second, (float)A_moment2_epsilon)

kernel void muon_sums(OPERANDS) {
  long line = get_global_id(0);
  double sum = 0, scale = SCALE_OF_UPDATE;
  if (line >= LINES || SKIPPED || A_moment2 != moment2_normuon) return;
  for (long i = 0; i < min(ROWS, COLUMNS); i++) {
    float x = UPDATE(ROWS >= COLUMNS ? line * COLUMNS + i : i * COLUMNS + line) * (float)scale;
    sum += (double)x * (double)x;
  }
  float before = STATE_1(ROWS >= COLUMNS ? line * COLUMNS : line);
  LINE_SUMS[line] = (float)sum;
  sum /= (double)min(ROWS, COLUMNS);
  LINE_SECONDS[line] = (float)(A_moment2_beta * before + REST(moment2_beta) * sum);
}

/* What keeps the norm of the update. */
kernel void muon_kept(OPERANDS) {
  local double room[LOCAL];
  if (A_moment2 != moment2_normuon) return;
  SUM_OVER(squares, LINES, LINE_SUMS[i]);
  SUM_OVER(divided, LINES, LINE_SUMS[i] / AT_LEAST(LINE_SECONDS[i]));
  if (get_local_id(0) == 0) AT_STEP->sums[1] = sqrt(squares) / fmax(sqrt(divided), A_moment2_epsilon);
}
#endif

kernel void muon_store(OPERANDS) {
  long i = get_global_id(0);
  if (i >= N || SKIPPED) return;
  double scale = SCALE_OF_UPDATE;
  float rate = (float)(AT_STEP->lr * scale), kept = (float)(1 - AT_STEP->lr * AT_STEP->decay);
  float update = UPDATE(i), old = P(i);
  BOX_OF(i);
#ifdef IS_adaptive_muon
  update *= (float)scale;
  bool each = A_moment2 == moment2_adamuon;
  float own = (float)A_moment2_beta * STATE_1(i) + (float)REST(moment2_beta) * (update * update);
  float second = each ? own : LINE_SECONDS[LINE(i)];
  if (each) update /= sqrt(second) + (float)A_moment2_epsilon;
  else update *= (float)(AT_STEP->sums[1] / sqrt((double)AT_LEAST(second)));
  if (box >= 0) SET_Y2(box, second);
#endif
  update = AS_STORED(update);
  bool spared = A_cautious_decay && update * old < 0;
  if (box >= 0) SET_Y0(box, (spared ? old : old * kept) - rate * update);
}
#endif

#ifdef IS_novograd
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
#endif

#if defined IS_sm3 || defined IS_sm3_momentum
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
#endif

#if defined IS_adafactor || defined IS_adafactor_momentum
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
#endif

#ifdef IS_adamw_8bit
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
#endif

#ifdef IS_soap
/* One item does it all, on copies in ROOM: compilers take exponentially long over barriers within loops
 * within loops. */
typedef float real;
#define PLACE global
#define EACH(i, n) for (long i = 0; i < (n); i++)
#define MEET
#define WITH_ALL(statement) statement
#include "schema/soap_room.h"
#include "kernels/rules/eigen.h"
#include "kernels/rules/soap.h"

#define SOAP_EXTENT(is_columns) ((is_columns) ? s->n : s->m)
static void soap_multiply(const rule_soap *s, soap_product product, const global float *a,
                          const global float *b, global float *c) {
  const soap_form form = soap_form_of(product);
  const long a_columns = SOAP_EXTENT(form.a_columns_n), b_columns = SOAP_EXTENT(form.b_columns_n);
  const long rows = form.a_turned ? a_columns : SOAP_EXTENT(form.a_rows_n);
  const long columns = form.b_turned ? SOAP_EXTENT(form.b_rows_n) : b_columns;
  const long inner = form.a_turned ? SOAP_EXTENT(form.a_rows_n) : a_columns;
  EACH(i, rows * columns) {
    const long row = i / columns, column = i % columns;
    float sum = 0;
    for (long k = 0; k < inner; k++)
      sum += a[form.a_turned ? k * a_columns + row : row * a_columns + k] *
             b[form.b_turned ? column * b_columns + k : k * b_columns + column];
    c[i] = sum;
  }
}

#define SOAP_TAKE(name, n, from) \
  name = room; \
  room += (n); \
  EACH(i, n) name[i] = from

kernel void soap_step(OPERANDS) {
  if (SKIPPED || get_global_id(0) != 0) return;
  const long m = XDIM(0, 2), n = COLUMNS;
  global float *room = ROOM;
  rule_soap s = {.lr = (float)AT_STEP->lr,
                 .decay = (float)AT_STEP->decay,
                 .beta1 = (float)A_beta1,
                 .beta2 = (float)A_beta2,
                 .left1 = (float)LEFT(beta1, AT_STEP->count),
                 .left2 = (float)LEFT(beta2, AT_STEP->count),
                 .epsilon = (float)A_basis_epsilon,
                 .rest = (float)(REST(factor_beta) / LEFT(factor_beta, AT_STEP->count)),
                 .kl = A_kl_factors != 0,
                 .m = m,
                 .n = n};
  SOAP_TAKE(s.p, m * n, P(i));
  SOAP_TAKE(s.moment1, m * n, STATE_0(i));
  SOAP_TAKE(s.moment2, m * n, STATE_1(i));
  SOAP_TAKE(s.g, m * n, SCALED(i));
  SOAP_TAKE(s.side[0], 2 * m * m, STATE_2(i));
  SOAP_TAKE(s.side[1], 2 * n * n, STATE_3(i));
  s.basis[0] = s.side[0] + m * m, s.basis[1] = s.side[1] + n * n;
  soap_place(&s, room);
  soap_update(&s, soap_is_first(&s));
  EACH(i, m * n) {
    SET_Y0(i, s.p[i]);
    SET_Y1(i, s.moment1[i]);
    SET_Y2(i, s.moment2[i]);
  }
  EACH(i, 2 * m * m) SET_Y3(i, s.side[0][i]);
  EACH(i, 2 * n * n) SET_Y4(i, s.side[1][i]);
}
#endif
