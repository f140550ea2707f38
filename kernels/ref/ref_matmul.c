/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products and the gradient of a bias. Products are summed in ascending k. */
#include "kernels/ref/ref.h"

enum { BLOCK = 32, DEPTH = 256, LANES = 8 };

typedef struct matmul {
  ref_operand a, b, c;
  int64_t m, n, k;
  int64_t a_row, a_k, b_col, b_k; /* strides */
} matmul;

/* sums[i][j] += a b over `depth` of k, for one block of c. */
static void block_multiply(double sums[BLOCK][BLOCK], const double a[BLOCK][DEPTH],
                           const double b[DEPTH][BLOCK], int64_t rows, int64_t depth) {
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < BLOCK; j += LANES) {
      double lanes[LANES];
      for (int lane = 0; lane < LANES; lane++) lanes[lane] = sums[i][j + lane];
      for (int64_t k = 0; k < depth; k++)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += a[i][k] * b[k][j + lane];
      for (int lane = 0; lane < LANES; lane++) sums[i][j + lane] = lanes[lane];
    }
  }
}

static void block_sums(const matmul *p, int64_t row, int64_t col, int64_t rows, int64_t cols,
                       double sums[BLOCK][BLOCK]) {
  double a[BLOCK][DEPTH], b[DEPTH][BLOCK];
  for (int64_t k = 0; k < p->k; k += DEPTH) {
    int64_t depth = p->k - k < DEPTH ? p->k - k : DEPTH;
    for (int64_t i = 0; i < rows; i++)
      ref_load_row(&p->a, (row + i) * p->a_row + k * p->a_k, p->a_k, depth, a[i]);
    for (int64_t d = 0; d < depth; d++) {
      ref_load_row(&p->b, col * p->b_col + (k + d) * p->b_k, p->b_col, cols, b[d]);
      for (int64_t j = cols; j < BLOCK; j++) b[d][j] = 0;
    }
    block_multiply(sums, a, b, rows, depth);
  }
}

void ref_matmul(const ref_call *call) {
  bool trans_a = ref_int(call, NX_matmul_trans_a), trans_b = ref_int(call, NX_matmul_trans_b);
  bool accumulate = ref_int(call, NX_matmul_accumulate), with_bias = call->operator->n_in == 3;
  matmul p = {.a = ref_in(call, 0), .b = ref_in(call, 1), .c = ref_out(call, 0)};
  ref_operand bias = with_bias ? ref_in(call, 2) : (ref_operand){0};
  p.n = ref_last_dim(&p.c);
  p.m = p.n ? p.c.n_elements / p.n : 0;
  int64_t a_last = ref_last_dim(&p.a), b_last = ref_last_dim(&p.b);
  p.k = p.m ? p.a.n_elements / p.m : 0;
  p.a_row = trans_a ? 1 : a_last, p.a_k = trans_a ? a_last : 1;
  p.b_col = trans_b ? b_last : 1, p.b_k = trans_b ? 1 : b_last;
  for (int64_t row = 0; row < p.m; row += BLOCK) {
    int64_t rows = p.m - row < BLOCK ? p.m - row : BLOCK;
    for (int64_t col = 0; col < p.n; col += BLOCK) {
      int64_t cols = p.n - col < BLOCK ? p.n - col : BLOCK;
      double sums[BLOCK][BLOCK] = {0};
      block_sums(&p, row, col, rows, cols, sums);
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
          double sum = with_bias ? sums[i][j] + ref_load(&bias, col + j) : sums[i][j];
          ref_store_sum(&p.c, (row + i) * p.n + col + j, sum, accumulate);
        }
    }
  }
}

void ref_bias_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), db = ref_out(call, 0);
  int64_t n = ref_last_dim(&dy);
  double *sums = call->work, *row = call->work + n;
  for (int64_t col = 0; col < n; col++) sums[col] = 0;
  for (int64_t first = 0; first < dy.n_elements; first += n) {
    ref_load_row(&dy, first, 1, n, row);
    for (int64_t col = 0; col < n; col++) sums[col] += row[col];
  }
  for (int64_t col = 0; col < n; col++)
    ref_store_sum(&db, col, sums[col], ref_int(call, NX_bias_grad_accumulate));
}

void ref_bias_add(const ref_call *call) {
  ref_operand x = ref_in(call, 0), bias = ref_in(call, 1), y = ref_out(call, 0);
  int64_t n = ref_last_dim(&x);
  for (int64_t i = 0; i < x.n_elements; i++) ref_store(&y, i, ref_load(&x, i) + ref_load(&bias, i % n));
}
