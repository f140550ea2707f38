/* SPDX-License-Identifier: Apache-2.0 */
/* Addition, constants, changes of type, sums of squares and of zeros. */
#include "kernels/ref/ref.h"

enum { NORM_BLOCK = 4096 };

void ref_add(const ref_call *call) {
  ref_operand a = ref_in(call, 0), b = ref_in(call, 1), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) ref_store(&y, i, ref_load(&a, i) + ref_load(&b, i));
}

void ref_vote(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  double share = ref_real(call, NX_vote_share);
  for (int64_t i = 0; i < y.n_elements; i++) {
    double value = ref_load(&x, i);
    ref_store(&y, i, value > 0 ? share : value < 0 ? -share : value);
  }
}

void ref_columns_add(const ref_call *call) {
  ref_operand x = ref_in(call, 0), z = ref_in(call, 1), y = ref_out(call, 0);
  int64_t n = ref_last_dim(&x), m = ref_last_dim(&z), first = ref_int(call, NX_columns_add_first);
  double scale = ref_real(call, NX_columns_add_scale);
  for (int64_t i = 0; i < y.n_elements; i++) {
    int64_t column = i % n - first;
    bool added = column >= 0 && column < m;
    ref_store(&y, i, ref_load(&x, i) + (added ? scale * ref_load(&z, i / n * m + column) : 0));
  }
}

void ref_columns(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  int64_t n = ref_last_dim(&x), m = ref_last_dim(&y), first = ref_int(call, NX_columns_first);
  double scale = ref_real(call, NX_columns_scale);
  for (int64_t i = 0; i < y.n_elements; i++)
    ref_store(&y, i, scale * ref_load(&x, i / m * n + first + i % m));
}

void ref_join(const ref_call *call) {
  ref_operand a = ref_in(call, 0), b = ref_in(call, 1), y = ref_out(call, 0);
  int64_t n = ref_last_dim(&y), n_a = ref_last_dim(&a), n_b = ref_last_dim(&b);
  for (int64_t i = 0; i < y.n_elements; i++) {
    int64_t row = i / n, column = i % n;
    bool left = column < n_a;
    ref_store(&y, i, left ? ref_load(&a, row * n_a + column) : ref_load(&b, row * n_b + column - n_a));
  }
}

void ref_fill(const ref_call *call) {
  ref_operand y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) ref_store(&y, i, ref_real(call, NX_fill_value));
}

void ref_cast(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) ref_store(&y, i, ref_load(&x, i));
}

void ref_slice(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  int64_t axis = ref_int(call, NX_slice_axis), parts = ref_int(call, NX_slice_parts), inner = 1;
  int64_t part = ref_int(call, NX_slice_part);
  for (int64_t dim = axis; dim < (int64_t)y.n_dims; dim++) inner *= y.dims[dim];
  for (int64_t i = 0; i < y.n_elements; i++) {
    int64_t from = (i / inner * parts + part) * inner + i % inner;
    ref_store(&y, i, part >= 0 && part < parts ? ref_load(&x, from) : 0);
  }
}

/* Blocks of NORM_BLOCK elements, so that threads do not change the sum. Weight 0 reads nothing: a NaN of a
 * copy that another rank owns is counted there. */
void ref_norm_sq(const ref_call *call) {
  ref_operand x = ref_in(call, 0), s = ref_out(call, 0);
  int64_t weight = ref_int(call, NX_norm_sq_weight);
  double total = 0;
  for (int64_t first = 0; weight != 0 && first < x.n_elements; first += NORM_BLOCK) {
    double sum = 0;
    for (int64_t i = first; i < x.n_elements && i < first + NORM_BLOCK; i++)
      sum += ref_load(&x, i) * ref_load(&x, i);
    total += sum;
  }
  ref_store_sum(&s, 0, (double)weight * total, ref_int(call, NX_norm_sq_accumulate));
}

/* How many of the sums under way are complete when one more summand comes, and are added to it. */
static int64_t carries(int64_t count, int64_t n_levels) {
  int64_t n = 0;
  while (n + 1 < n_levels && count >> n & 1) n++;
  return n;
}

static double add_rounded(double a, double b, nx_dtype dtype) {
  return dtype == NX_f32 ? (float)(a + b) : a + b;
}

void ref_pairs_begin(const ref_call *call) {
  ref_operand x = ref_in(call, 0), levels = ref_out(call, 0), count = ref_out(call, 1);
  for (int64_t i = 0; i < levels.n_elements; i++)
    ref_store(&levels, i, i < x.n_elements ? ref_load(&x, i) : 0);
  ((int32_t *)count.data)[0] = 1;
}

void ref_pairs_add(const ref_call *call) {
  ref_operand x = ref_in(call, 2), levels = ref_out(call, 0), count = ref_out(call, 1);
  int32_t *counted = count.data;
  int64_t n = x.n_elements, n_carried = carries(*counted, levels.n_elements / n);
  for (int64_t i = 0; i < n; i++) {
    double sum = ref_load(&x, i);
    for (int64_t k = 0; k < n_carried; k++) sum = add_rounded(ref_load(&levels, k * n + i), sum, x.dtype);
    ref_store(&levels, n_carried * n + i, sum);
  }
  if (*counted < INT32_MAX) ++*counted;
}

void ref_pairs_sum(const ref_call *call) {
  ref_operand x = ref_in(call, 0), levels = ref_in(call, 1), y = ref_out(call, 0), counted = ref_in(call, 2);
  int64_t n = x.n_elements, n_levels = levels.n_elements / n, count = *(const int32_t *)counted.data;
  for (int64_t i = 0; i < n; i++) {
    double sum = ref_load(&x, i);
    for (int64_t k = 0; k < n_levels && k < 32; k++)
      if (count >> k & 1) sum = add_rounded(ref_load(&levels, k * n + i), sum, x.dtype);
    ref_store(&y, i, sum);
  }
}

void ref_block_squares(const ref_call *call) {
  ref_operand x = ref_in(call, 0), s = ref_out(call, 0);
  int64_t block = x.n_elements / s.n_elements;
  for (int64_t i = 0; i < s.n_elements; i++) {
    double sum = 0;
    for (int64_t at = i * block; at < (i + 1) * block; at++) sum += ref_load(&x, at) * ref_load(&x, at);
    ref_store(&s, i, sum);
  }
}

void ref_blocks_sum(const ref_call *call) {
  ref_operand x = ref_in(call, 0), s = ref_out(call, 0);
  int64_t weight = ref_int(call, NX_blocks_sum_weight);
  double total = 0;
  for (int64_t i = 0; weight != 0 && i < x.n_elements; i++) total += ref_load(&x, i);
  ref_store_sum(&s, 0, (double)weight * total, ref_int(call, NX_blocks_sum_accumulate));
}

void ref_count_zeros(const ref_call *call) {
  ref_operand x = ref_in(call, 0), s = ref_out(call, 0);
  int64_t weight = ref_int(call, NX_count_zeros_weight), n = 0;
  for (int64_t i = 0; weight != 0 && i < x.n_elements; i++) n += ref_load(&x, i) == 0;
  ref_store_sum(&s, 0, (double)(weight * n), ref_int(call, NX_count_zeros_accumulate));
}

void ref_add_up(const ref_call *call) {
  ref_operand x = ref_in(call, 0), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) ref_store_sum(&y, i, ref_load(&x, i), true);
}
