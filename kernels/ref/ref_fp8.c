/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to fp8, and the maxima that its scales follow. */
#include "kernels/ref/ref.h"
#include "schema/fp8.h"

void ref_fp8_amax(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  double most = 0;
  for (int64_t i = 0; i < x.n_elements; i++) {
    double size = fabs(ref_load(&x, i));
    if (!(size <= most)) most = isnan(most) ? most : size;
  }
  ref_store(&y, 0, most);
}

typedef struct rounding {
  ref_operand x, y;
  int64_t rows, columns;
  const nx_fp8_row *format;
  nx_fp8_scaling scaling;
  int margin;
} rounding;

/* Of a box of the matrix that shares a scale. */
static void round_box(const rounding *r, int64_t row, int64_t column, int64_t n_rows, int64_t n_columns,
                      float most) {
  nx_fp8_scale scale = nx_fp8_scale_of(r->scaling, r->format, most, r->margin);
  for (int64_t i = row; i < row + n_rows; i++)
    for (int64_t j = column; j < column + n_columns; j++)
      ref_store(&r->y, i * r->columns + j,
                nx_fp8_apply(r->format, &scale, (float)ref_load(&r->x, i * r->columns + j)));
}

static float most_of_box(const rounding *r, int64_t row, int64_t column, int64_t n_rows, int64_t n_columns) {
  float most = 0;
  for (int64_t i = row; i < row + n_rows; i++)
    for (int64_t j = column; j < column + n_columns; j++) {
      float size = fabsf((float)ref_load(&r->x, i * r->columns + j));
      most = size > most ? size : most;
    }
  return most;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

void ref_fp8_round(const ref_call *call) {
  int64_t block_rows = ref_int(call, NX_fp8_round_block_rows),
          block_columns = ref_int(call, NX_fp8_round_block_columns);
  rounding r = {.x = ref_in(call, 0),
                .y = ref_out(call, 0),
                .format = &nx_fp8_rows[ref_int(call, NX_fp8_round_format)],
                .scaling = (nx_fp8_scaling)ref_int(call, NX_fp8_round_scaling),
                .margin = (int)ref_int(call, NX_fp8_round_margin)};
  r.columns = ref_last_dim(&r.x);
  r.rows = r.columns ? r.x.n_elements / r.columns : 0;
  if (block_rows == 0) {
    ref_operand maxima = ref_in(call, 1);
    float most = 0;
    for (int64_t i = 0; i < maxima.n_elements; i++)
      if (ref_load(&maxima, i) > most) most = (float)ref_load(&maxima, i);
    round_box(&r, 0, 0, r.rows, r.columns, most);
    return;
  }
  for (int64_t i = 0; i < r.rows; i += block_rows)
    for (int64_t j = 0; j < r.columns; j += block_columns) {
      int64_t n_rows = least(block_rows, r.rows - i), n_columns = least(block_columns, r.columns - j);
      round_box(&r, i, j, n_rows, n_columns, most_of_box(&r, i, j, n_rows, n_columns));
    }
}

/* A maximum that is zero, or no number, teaches no scale: what is remembered stays as it is. */
void ref_fp8_history(const ref_call *call) {
  ref_operand maxima = ref_in(call, 1), history = ref_out(call, 0);
  double most = 0;
  for (int64_t i = ref_int(call, NX_fp8_history_entry); i < maxima.n_elements; i += ref_last_dim(&maxima))
    if (!(ref_load(&maxima, i) <= most)) most = isnan(most) ? most : ref_load(&maxima, i);
  if (most == 0 || !isfinite(most)) return;
  for (int64_t i = history.n_elements - 1; i > 0; i--) ref_store(&history, i, ref_load(&history, i - 1));
  ref_store(&history, 0, most);
}
