/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of samplers, against PyTorch 2.13 (torch.randperm, DistributedSampler) and Megatron-LM's
 * MegatronPretrainingRandomSampler. */
#include "runtime/data/mt19937.h"
#include "runtime/data/walk.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

static void permutations_are_those_of_torch(void **state) {
  (void)state;
  static const struct {
    uint32_t seed;
    uint64_t order[11];
  } rows[] = {{0, {10, 0, 4, 3, 5, 8, 2, 1, 9, 7, 6}},
              {42, {6, 8, 9, 2, 1, 10, 0, 7, 3, 5, 4}},
              {2147483647, {7, 5, 9, 0, 2, 1, 10, 3, 8, 6, 4}},
              {(uint32_t)(UINT64_C(4294967296) + 5), {9, 5, 0, 8, 10, 2, 3, 6, 7, 1, 4}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxr_mt19937 random;
    uint64_t order[11];
    nxr_mt19937_seed(&random, rows[i].seed);
    nxr_mt19937_permute(&random, order, 11);
    for (int k = 0; k < 11; k++) assert_int_equal(order[k], rows[i].order[k]);
  }
}

static void a_long_permutation_is_torchs(void **state) {
  (void)state;
  enum { N = 100000 };
  static const uint64_t first[] = {41615, 23657, 92717, 16389}, last[] = {34296, 52301, 18202, 73623};
  uint64_t *order = malloc(N * sizeof *order);
  nxr_mt19937 random;
  assert_non_null(order);
  nxr_mt19937_seed(&random, 7);
  nxr_mt19937_permute(&random, order, N);
  for (int k = 0; k < 4; k++) {
    assert_int_equal(order[k], first[k]);
    assert_int_equal(order[N - 4 + k], last[k]);
  }
  free(order);
}

enum { N_SAMPLES = 23, N_RANKS = 2 };

static nxr_walk opened(nx_walk kind, uint64_t seed, uint32_t micro_batch, uint32_t batch) {
  nxr_walk walk = {.kind = kind, .seed = seed, .n_samples = N_SAMPLES, .n_ranks = N_RANKS,
                   .micro_batch = micro_batch};
  nxr_fault fault = {""};
  assert_true(nxr_walk_open(&walk, "train", batch, &fault));
  return walk;
}

/* A step reads what both ranks read of PyTorch's sampler; 24 of its samples, one of them twice, are three
 * steps. */
static void epochs_are_those_of_the_distributed_sampler(void **state) {
  (void)state;
  enum { BATCH = 8 };
  static const uint64_t epochs[2][N_RANKS][12] = {
      {{16, 6, 2, 1, 18, 14, 15, 10, 22, 20, 12, 9}, {8, 17, 0, 11, 5, 21, 3, 19, 4, 7, 13, 16}},
      {{13, 16, 18, 1, 15, 11, 14, 4, 22, 19, 3, 5}, {17, 20, 7, 10, 12, 21, 6, 8, 2, 0, 9, 13}}};
  nxr_walk walk = opened(NX_WALK_DISTRIBUTED, 42, 2, BATCH);
  for (int at = 5; at >= 0; at--) { /* a resumed run begins anywhere */
    const nxr_stride step = {(uint64_t)at * BATCH, BATCH};
    for (uint64_t i = 0; i < BATCH; i++)
      assert_int_equal(nxr_walk_sample(&walk, &step, step.first + i),
                       epochs[at / 3][i % 2][(uint64_t)(at % 3) * 4 + i / 2]);
  }
  nxr_walk_close(&walk);
}

/* Epochs of 18 samples, in micro-batches of 3. */
static void shards_are_those_of_megatron(void **state) {
  (void)state;
  enum { BATCH = 12 };
  static const uint64_t ranks[N_RANKS][18] = {
      {8, 0, 2, 3, 7, 1, 4, 5, 6, 4, 0, 6, 5, 7, 2, 8, 3, 1},
      {17, 9, 11, 12, 16, 10, 13, 14, 15, 13, 9, 15, 14, 16, 11, 17, 12, 10}};
  nxr_walk walk = opened(NX_WALK_CYCLIC_SHARDS, 42, 3, BATCH);
  for (uint64_t at = 0; at < 3; at++) {
    const nxr_stride step = {at * BATCH, BATCH};
    for (uint64_t i = 0; i < BATCH; i++)
      assert_int_equal(nxr_walk_sample(&walk, &step, step.first + i), ranks[i / 6][at * 6 + i % 6]);
  }
  nxr_walk_close(&walk);
}

static void whole_datasets_are_permuted_as_megatron_does(void **state) {
  (void)state;
  enum { BATCH = 6 };
  static const uint64_t ranks[N_RANKS][18] = {
      {11, 2, 6, 13, 12, 19, 18, 5, 15, 7, 12, 18, 3, 1, 19, 13, 16, 4},
      {20, 9, 16, 10, 8, 17, 1, 0, 14, 20, 17, 14, 2, 9, 8, 11, 15, 5}};
  nxr_walk walk = opened(NX_WALK_CYCLIC, 42, 3, BATCH);
  for (uint64_t at = 0; at < 6; at++) {
    const nxr_stride step = {at * BATCH, BATCH};
    for (uint64_t i = 0; i < BATCH; i++)
      assert_int_equal(nxr_walk_sample(&walk, &step, step.first + i), ranks[i % 2][at * 3 + i / 2]);
  }
  nxr_walk_close(&walk);
}

/* 23 samples are two batches of 8, whose even places are the first rank's. */
static void whole_batches_come_again(void **state) {
  (void)state;
  nxr_walk walk = opened(NX_WALK_AGAIN, 42, 2, 8);
  for (uint64_t sample = 0; sample < 48; sample++) {
    const nxr_stride step = {sample / 8 * 8, 8};
    assert_int_equal(nxr_walk_sample(&walk, &step, sample),
                     sample % 16 / 8 * 8 + sample % 4 * 2 + sample % 8 / 4);
  }
  nxr_walk_close(&walk);
}

/* The sampler with drop_last, whose seed nobody gives, in batches of 4 of a rank. */
static void batches_are_dealt_as_the_distributed_sampler_does(void **state) {
  (void)state;
  static const uint64_t epochs[3][N_RANKS][8] = {
      {{19, 16, 15, 22, 4, 6, 9, 1}, {8, 3, 20, 14, 7, 13, 10, 12}},
      {{9, 20, 22, 13, 1, 3, 16, 18}, {4, 11, 6, 12, 19, 2, 7, 0}},
      {{1, 13, 5, 0, 2, 17, 9, 10}, {20, 7, 8, 18, 6, 12, 3, 22}}};
  nxr_walk walk = opened(NX_WALK_DEALT, 42, 2, 8);
  for (uint64_t at = 0; at < 6; at++) {
    const nxr_stride step = {at * 8, 8};
    for (uint64_t i = 0; i < 8; i++)
      assert_int_equal(nxr_walk_sample(&walk, &step, step.first + i),
                       epochs[at / 2][i / 4][at % 2 * 4 + i % 4]);
  }
  nxr_walk_close(&walk);
}

static void what_has_no_batch_is_told(void **state) {
  (void)state;
  nxr_walk walk = {.kind = NX_WALK_DISTRIBUTED, .n_samples = 5, .n_ranks = 2, .micro_batch = 4};
  nxr_fault fault = {""};
  assert_false(nxr_walk_open(&walk, "train", 8, &fault));
  assert_non_null(strstr(fault.text, "has 5 samples"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(permutations_are_those_of_torch),
      cmocka_unit_test(a_long_permutation_is_torchs),
      cmocka_unit_test(epochs_are_those_of_the_distributed_sampler),
      cmocka_unit_test(shards_are_those_of_megatron),
      cmocka_unit_test(whole_datasets_are_permuted_as_megatron_does),
      cmocka_unit_test(whole_batches_come_again),
      cmocka_unit_test(batches_are_dealt_as_the_distributed_sampler_does),
      cmocka_unit_test(what_has_no_batch_is_told),
  };
  return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
