/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/sum.h"

#include "tests/kernels/compare.h"
#include "tests/kernels/random.h"

#include "schema/plan.h"

#include <stdio.h>
#include <stdlib.h>

/* backend->sum is defined to the bit: fp32 (fp64 for f64) in ascending order, one rounding. */
static double sum_expected(const tensor *sources, uint32_t n_sources, int64_t i) {
  float narrow = (float)tensor_get(&sources[0], i);
  double wide = tensor_get(&sources[0], i);
  for (uint32_t source = 1; source < n_sources; source++) {
    narrow += (float)tensor_get(&sources[source], i);
    wide += tensor_get(&sources[source], i);
  }
  return sources[0].dtype == NX_f64 ? wide : narrow;
}

/* `in_place`: the source that y lies on, or n_sources. */
static bool sum_same(const nxk_backend *backend, nx_dtype x_type, nx_dtype y_type, uint32_t n_sources,
                     uint32_t in_place) {
  enum { N_ELEMENTS = 1003, MAX_SOURCES = 5 };
  record_value x_shape = {.dtype = x_type, .n_dims = 1, .dims = {N_ELEMENTS, 1, 1, 1}}, y_shape = x_shape;
  y_shape.dtype = y_type;
  tensor sources[MAX_SOURCES], expected = tensor_new(&y_shape, VARIANT_F32), y = tensor_copy(&expected);
  const void *addresses[MAX_SOURCES];
  random_state random = random_seed("sum");
  test_bench bench;
  bool good = bench_open(&bench, backend, (n_sources + 1) * expected.n_bytes * 4);
  for (uint32_t source = 0; source < n_sources; source++) {
    sources[source] = tensor_new(&x_shape, VARIANT_F32);
    for (int64_t i = 0; i < N_ELEMENTS; i++) tensor_set(&sources[source], i, random_normal(&random));
    addresses[source] = bench.arena + source * (uint64_t)NX_PLAN_ALIGNMENT * 128;
    backend->copy_in(bench.device, (void *)(uintptr_t)addresses[source], sources[source].data,
                     sources[source].n_bytes);
  }
  for (int64_t i = 0; i < N_ELEMENTS; i++) tensor_set(&expected, i, sum_expected(sources, n_sources, i));
  void *result = in_place < n_sources ? (void *)(uintptr_t)addresses[in_place]
                                      : bench.arena + n_sources * (uint64_t)NX_PLAN_ALIGNMENT * 128;
  backend->sum(bench.device, result, y_type, addresses, n_sources, x_type, N_ELEMENTS);
  backend->copy_out(bench.device, y.data, result, y.n_bytes);
  good = good && tensor_same_bits(&y, &expected);
  for (uint32_t source = 0; source < n_sources; source++) free(sources[source].data);
  free(expected.data);
  free(y.data);
  bench_close(&bench);
  return good;
}

bool sum_test(const nxk_backend *backend) {
  static const nx_dtype pairs[][2] = {
      {NX_f32, NX_f32}, {NX_bf16, NX_bf16}, {NX_bf16, NX_f32}, {NX_f32, NX_bf16},
      {NX_f16, NX_f16}, {NX_f16, NX_f32}, {NX_f32, NX_f16}, {NX_f64, NX_f64}};
  bool good = true;
  for (size_t index = 0; index < sizeof pairs / sizeof *pairs; index++)
    for (uint32_t n_sources = 1; n_sources <= 5; n_sources++)
      for (uint32_t in_place = 0; in_place <= n_sources; in_place++) {
        nx_dtype x = pairs[index][0], y = pairs[index][1];
        if (in_place < n_sources && nx_dtype_bits(x) != nx_dtype_bits(y)) continue;
        if (sum_same(backend, x, y, n_sources, in_place)) continue;
        fprintf(stderr, "# sum of %u x %s to %s, in place %u: other bits\n", n_sources, nx_dtype_name(x),
                nx_dtype_name(y), in_place);
        good = false;
      }
  return good;
}
