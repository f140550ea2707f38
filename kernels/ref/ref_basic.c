/* SPDX-License-Identifier: Apache-2.0 */
/* Addition, constants, changes of type, sums of squares and of zeros. */
#include "kernels/ref/ref.h"

enum { NORM_BLOCK = 4096 };

void ref_add(const ref_call *call) {
  ref_operand a = ref_in(call, 0), b = ref_in(call, 1), y = ref_out(call, 0);
  for (int64_t i = 0; i < y.n_elements; i++) ref_store(&y, i, ref_load(&a, i) + ref_load(&b, i));
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
