/* SPDX-License-Identifier: Apache-2.0 */
/* How far a result may be from ref's, by the type of the output.
 *
 * Both backends read the same operands; ref sums in doubles and rounds once. norm = |y - r| / |r| in the
 * Euclidean norm, max = largest |y_i - r_i| over largest |r_i|. Where ref has zeros alone, 1 stands for its
 * elements: inputs are of that size. Equal infinities agree; a NaN agrees with nothing. */
#ifndef TESTS_KERNELS_COMPARE_H
#define TESTS_KERNELS_COMPARE_H

#include "tests/kernels/operation.h"

typedef struct difference {
  double norm, max;
  bool comparable; /* no NaN, and infinities in the same places */
} difference;

difference tensor_difference(const tensor *x, const tensor *reference);
bool tensor_same_bits(const tensor *x, const tensor *y);
record_bound compare_bound(const test_record *record, nx_dtype dtype);

#endif
