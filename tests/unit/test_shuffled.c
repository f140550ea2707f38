/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of shuffled datasets, against numpy 2 (default_rng(seed).integers and permutation) and datasets 5
 * (Dataset.shuffle(seed).shard(num_shards, index)). */
#include "datasets/pieces.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>

static void numbers_are_those_of_numpy(void **state) {
  (void)state;
  static const struct {
    uint64_t seed, numbers[3], order[11];
  } rows[] = {
      {0,
       {UINT64_C(11749869230777074271), UINT64_C(4976686463289251617), UINT64_C(755828109848996024)},
       {4, 6, 7, 2, 0, 3, 5, 10, 9, 8, 1}},
      {42,
       {UINT64_C(14276969152011380360), UINT64_C(8095878257575067585), UINT64_C(15838336090824644132)},
       {6, 7, 0, 10, 3, 5, 2, 4, 9, 1, 8}},
      {2147483647,
       {UINT64_C(4996376248245077610), UINT64_C(17227404151990242091), UINT64_C(8105825207945472105)},
       {1, 8, 3, 2, 0, 7, 5, 6, 4, 9, 10}},
      {INT64_MAX,
       {UINT64_C(3236778688619115796), UINT64_C(8668653565307110780), UINT64_C(15219254583519097992)},
       {3, 7, 5, 2, 9, 10, 6, 0, 8, 1, 4}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint64_t order[11];
    nxd_pcg64 random = nxd_pcg64_of(rows[i].seed), again = random;
    for (int k = 0; k < 3; k++) assert_true(nxd_pcg64_next(&random) == rows[i].numbers[k]);
    nxd_permutation(&again, order, 11);
    for (int k = 0; k < 11; k++) assert_int_equal(order[k], rows[i].order[k]);
  }
}

static void a_long_order_is_numpys(void **state) {
  (void)state;
  enum { N = 100000 };
  uint64_t *order = calloc(N, sizeof *order);
  nxd_pcg64 random = nxd_pcg64_of(5);
  assert_non_null(order);
  nxd_permutation(&random, order, N);
  const uint64_t first[] = {96277, 83891, 71835, 28131};
  for (int k = 0; k < 4; k++) assert_int_equal(order[k], first[k]);
  free(order);
}

static void pieces_are_those_of_datasets(void **state) {
  (void)state;
  static const struct {
    nxd_piece piece;
    uint32_t records; /* a bit for each of 23 */
  } rows[] = {{{42, 4, 1}, 1 << 0 | 1 << 3 | 1 << 6 | 1 << 7 | 1 << 9 | 1 << 19},
              {{42, 4, 3}, 1 << 1 | 1 << 4 | 1 << 8 | 1 << 13 | 1 << 20},
              {{7, 5, 0}, 1 << 3 | 1 << 4 | 1 << 14 | 1 << 15 | 1 << 18},
              {{7, 23, 22}, 1 << 11},
              {{0, 1, 0}, (1 << 23) - 1},
              {{3, 30, 25}, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint8_t *chosen = nxd_piece_choose(&rows[i].piece, 23);
    uint32_t records = 0;
    assert_non_null(chosen);
    for (int k = 0; k < 23; k++) records |= (uint32_t)chosen[k] << k;
    assert_int_equal(records, rows[i].records);
    free(chosen);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_those_of_numpy),
      cmocka_unit_test(a_long_order_is_numpys),
      cmocka_unit_test(pieces_are_those_of_datasets),
  };
  return cmocka_run_group_tests_name("shuffled", tests, NULL, NULL);
}
