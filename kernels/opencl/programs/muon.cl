/* SPDX-License-Identifier: Apache-2.0 */
/* Muon, also with an adaptive rate (update_tensor.cl). */
#include "kernels/opencl/programs/update_tensor.cl"
#include "schema/muon_scale.h"

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
