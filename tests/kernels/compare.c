/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/compare.h"

#include <math.h>
#include <string.h>

/* f32: a sum of K terms in fp32 is off by about 2^-24 sqrt(K) of the sum of their sizes, 4e-6 at K = 4096;
 * vector exponentials are good to 1e-6. f64: sums whose terms were computed in fp32. bf16: one rounding on
 * either side of a tie is 2^-8 of an element, which few elements meet; at the largest one that is 2^-7 of its
 * power of two. */
static const record_bound bounds[NX_DTYPE_END] = {
    [NX_f32] = {4e-6, 3e-5},
    [NX_f64] = {1e-6, 1e-6},
    [NX_bf16] = {1e-3, 0.0079},
    [NX_f16] = {2e-4, 0.001},
};

record_bound compare_bound(const test_record *record, nx_dtype dtype) {
  return record->bounds[dtype].norm > 0 ? record->bounds[dtype] : bounds[dtype];
}

difference tensor_difference(const tensor *x, const tensor *reference) {
  difference d = {.comparable = true};
  double squares = 0, reference_squares = 0, largest = 0, reference_largest = 0;
  for (int64_t i = 0; i < x->n_elements; i++) {
    double xi = tensor_get(x, i), ri = tensor_get(reference, i);
    if (isinf(xi) && xi == ri) continue;
    if (!isfinite(xi) || !isfinite(ri)) d.comparable = false;
    squares += (xi - ri) * (xi - ri);
    reference_squares += ri * ri;
    largest = fmax(largest, fabs(xi - ri));
    reference_largest = fmax(reference_largest, fabs(ri));
  }
  bool zeros = reference_largest == 0;
  d.norm = sqrt(squares / (zeros ? (double)x->n_elements : reference_squares));
  d.max = largest / (zeros ? 1 : reference_largest);
  return d;
}

bool tensor_same_bits(const tensor *x, const tensor *y) {
  return x->n_bytes == y->n_bytes && memcmp(x->data, y->data, x->n_bytes) == 0;
}
