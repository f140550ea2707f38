/* SPDX-License-Identifier: Apache-2.0 */
/* Products of each expert's rows with its own matrix. */
#include "kernels/moe.h"
#include "kernels/ref/ref.h"

/* Blocks of n_rows rows; in each the experts' rows stand one after another, as many as counts[block,
 * expert]. */
typedef struct groups {
  const int32_t *counts;
  int64_t n_blocks, n_experts, n_rows;
} groups;

static groups groups_of(const ref_operand *x, const ref_operand *counts) {
  int64_t n_experts = ref_last_dim(counts), n_blocks = counts->n_elements / n_experts;
  return (groups){counts->data, n_blocks, n_experts, x->n_elements / ref_last_dim(x) / n_blocks};
}

/* The expert of a row; -1: none. */
static int64_t expert_of(const groups *g, int64_t row) {
  int64_t within = row % g->n_rows;
  const int32_t *counts = g->counts + row / g->n_rows * g->n_experts;
  for (int64_t e = 0; e < g->n_experts; e++) {
    int64_t count = nxk_moe_count(counts[e], g->n_rows);
    if (within < count) return e;
    within -= count;
  }
  return -1;
}

int64_t ref_grouped_matmul_work(const nxk_operator *operator) {
  return operator->args[0].dims[2] + operator->args[3].dims[2];
}

void ref_grouped_matmul(const ref_call *call) {
  ref_operand x = ref_in(call, 0), counts = ref_in(call, 1), w = ref_in(call, 2), y = ref_out(call, 0);
  bool trans_b = ref_int(call, NX_grouped_matmul_trans_b);
  int64_t depth = ref_last_dim(&x), width = ref_last_dim(&y);
  groups g = groups_of(&x, &counts);
  double *row = call->work, *sums = row + depth;
  for (int64_t r = 0; r < g.n_blocks * g.n_rows; r++) {
    int64_t expert = expert_of(&g, r), matrix = expert * depth * width;
    ref_load_row(&x, r * depth, 1, depth, row);
    for (int64_t n = 0; n < width; n++) sums[n] = 0;
    for (int64_t n = 0; expert >= 0 && n < width; n++)
      for (int64_t k = 0; k < depth; k++)
        sums[n] += row[k] * ref_load(&w, matrix + (trans_b ? n * depth + k : k * width + n));
    ref_store_row(&y, r * width, width, sums);
  }
}

int64_t ref_grouped_wgrad_work(const nxk_operator *operator) {
  const int64_t *dims = operator->args[3].dims;
  return dims[1] * dims[2] + dims[1] + dims[2];
}

void ref_grouped_wgrad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), x = ref_in(call, 1), counts = ref_in(call, 2), dw = ref_out(call, 0);
  int64_t width = ref_last_dim(&dy), depth = ref_last_dim(&x);
  groups g = groups_of(&x, &counts);
  double *sums = call->work, *dy_row = sums + width * depth, *x_row = dy_row + width;
  for (int64_t e = 0; e < g.n_experts; e++) {
    for (int64_t i = 0; i < width * depth; i++) sums[i] = 0;
    for (int64_t r = 0; r < g.n_blocks * g.n_rows; r++) {
      if (expert_of(&g, r) != e) continue;
      ref_load_row(&dy, r * width, 1, width, dy_row);
      ref_load_row(&x, r * depth, 1, depth, x_row);
      for (int64_t i = 0; i < width * depth; i++) sums[i] += dy_row[i / depth] * x_row[i % depth];
    }
    for (int64_t i = 0; i < width * depth; i++)
      ref_store_sum(&dw, e * width * depth + i, sums[i], ref_int(call, NX_grouped_wgrad_accumulate));
  }
}

void ref_grouped_bias(const ref_call *call) {
  ref_operand x = ref_in(call, 0), counts = ref_in(call, 1), b = ref_in(call, 2), y = ref_out(call, 0);
  double share = ref_real(call, NX_grouped_bias_share);
  int64_t width = ref_last_dim(&x);
  groups g = groups_of(&x, &counts);
  for (int64_t i = 0; i < x.n_elements; i++) {
    int64_t expert = expert_of(&g, i / width);
    double bias = expert >= 0 ? ref_load(&b, expert * width + i % width) : 0;
    ref_store(&y, i, ref_load(&x, i) + share * bias);
  }
}

int64_t ref_grouped_bias_grad_work(const nxk_operator *operator) {
  return operator->args[2].dims[0];
}

void ref_grouped_bias_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), counts = ref_in(call, 1), db = ref_out(call, 0);
  double share = ref_real(call, NX_grouped_bias_grad_share), *sums = call->work;
  bool adds = ref_int(call, NX_grouped_bias_grad_accumulate);
  int64_t width = ref_last_dim(&dy);
  groups g = groups_of(&dy, &counts);
  for (int64_t i = 0; i < db.n_elements; i++) sums[i] = 0;
  for (int64_t r = 0; r < g.n_blocks * g.n_rows; r++) {
    int64_t expert = expert_of(&g, r);
    for (int64_t n = 0; expert >= 0 && n < width; n++)
      sums[expert * width + n] += ref_load(&dy, r * width + n);
  }
  for (int64_t i = 0; i < db.n_elements; i++) ref_store_sum(&db, i, share * sums[i], adds);
}
