/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients against central finite differences.
 *
 * The scalar is L = sum over the record's outputs of output x cotangent, as a function of its inputs, all in
 * f64. Each gradient is compared with the slope of L in up to 40 of its elements, and along one random
 * direction that moves all of them. */
#ifndef TESTS_KERNELS_GRADIENT_H
#define TESTS_KERNELS_GRADIENT_H

#include "tests/kernels/operation.h"

/* `values`: every value of the record, computed. Says on standard error what differs. */
bool gradient_check(const test_record *record, test_bench *bench, tensor *values, const tensor *initial);

#endif
