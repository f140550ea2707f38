/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens a step trains on: decided by the dataset and the seed, not by the mesh. */
#include "runtime/data.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/dataset_files.h"

enum { SEQUENCE = 4, N_TOKENS = 89, N_SAMPLES = 22, GLOBAL_BATCH = 8, N_STEPS = 6 };

/* Four documents of 40, 0, 29 and 20 tokens; token i of the file is i. */
static int make_dataset(void **state) {
  temporary_make(state);
  const int32_t sizes[] = {40, 0, 29, 20};
  const int64_t pointers[] = {0, 80, 80, 138}, borders[] = {0, 1, 2, 3, 4};
  uint8_t index[256];
  uint16_t tokens[N_TOKENS];
  for (uint16_t i = 0; i < N_TOKENS; i++) tokens[i] = i;
  temporary_write("set.idx", index,
                  dataset_files_index(&(dataset_files){8, 4, 5, sizes, pointers, borders}, index));
  temporary_write("set.bin", tokens, sizeof tokens);
  return 0;
}

typedef struct setup {
  bool shuffle;
  uint64_t seed, vocab;
  uint32_t micro_batch, data_size;
} setup;

typedef struct made_plan {
  nx_plan plan;
  nx_run run;
  char strings[1024];
  uint32_t paths[2];
} made_plan;

static void make_plan(made_plan *made, const setup *from) {
  *made = (made_plan){.run = {.seed = from->seed,
                              .n_micro_batches = GLOBAL_BATCH / from->data_size / from->micro_batch,
                              .micro_batch = from->micro_batch,
                              .sequence = SEQUENCE,
                              .global_batch = GLOBAL_BATCH,
                              .vocab = from->vocab,
                              .shuffle = from->shuffle,
                              .data_size = from->data_size},
                      .paths = {1, 1}};
  snprintf(made->strings + 1, sizeof made->strings - 1, "%s", temporary_path(0, "set"));
  made->plan = (nx_plan){.run = &made->run, .strings = made->strings, .data_paths = made->paths};
  made->plan.n[NX_SECTION_DATA_PATHS] = 1;
}

/* Tokens and their labels by number of the sample, and how often each was read. */
typedef struct reading {
  int32_t tokens[N_STEPS * GLOBAL_BATCH][SEQUENCE + 1];
  uint32_t n_times[N_STEPS * GLOBAL_BATCH];
} reading;

static void read_micro_batch(nxr_data *data, const setup *from, uint64_t step, uint32_t micro_batch,
                             reading *into) {
  int32_t tokens[GLOBAL_BATCH * SEQUENCE], labels[GLOBAL_BATCH * SEQUENCE],
      positions[GLOBAL_BATCH * SEQUENCE];
  int64_t samples[GLOBAL_BATCH];
  nxr_fault fault = {""};
  assert_true(nxr_data_read(data, step, micro_batch, tokens, labels, positions, samples, &fault));
  for (uint32_t i = 0; i < from->micro_batch; i++) {
    assert_in_range(samples[i], 0, N_STEPS * GLOBAL_BATCH - 1);
    int32_t *sample = into->tokens[samples[i]];
    into->n_times[samples[i]]++;
    for (uint32_t at = 0; at < SEQUENCE; at++) {
      sample[at] = tokens[i * SEQUENCE + at];
      assert_int_equal(positions[i * SEQUENCE + at], at);
      if (at > 0) assert_int_equal(tokens[i * SEQUENCE + at], labels[i * SEQUENCE + at - 1]);
    }
    sample[SEQUENCE] = labels[i * SEQUENCE + SEQUENCE - 1];
  }
}

static void read_all(const setup *from, reading *into) {
  made_plan made;
  *into = (reading){0};
  make_plan(&made, from);
  for (uint32_t rank = 0; rank < from->data_size; rank++) {
    nxr_data *data;
    nxr_fault fault = {""};
    assert_true(nxr_data_open(&made.plan, rank, &data, &fault));
    for (uint64_t step = 0; step < N_STEPS; step++)
      for (uint32_t micro_batch = 0; micro_batch < made.run.n_micro_batches; micro_batch++)
        read_micro_batch(data, from, step, micro_batch, into);
    nxr_data_close(data);
  }
  for (uint32_t sample = 0; sample < N_STEPS * GLOBAL_BATCH; sample++)
    assert_int_equal(into->n_times[sample], 1);
}

static void keeps_the_order_without_shuffling(void **state) {
  (void)state;
  static reading all;
  read_all(&(setup){false, 1, 100, 2, 1}, &all);
  for (int32_t sample = 0; sample < N_STEPS * GLOBAL_BATCH; sample++)
    for (int32_t at = 0; at <= SEQUENCE; at++)
      assert_int_equal(all.tokens[sample][at], sample % N_SAMPLES * SEQUENCE + at);
}

static void is_the_same_on_every_mesh(void **state) {
  (void)state;
  static reading one, other;
  static const setup meshes[] = {{true, 7, 100, 1, 1}, {true, 7, 100, 8, 1}, {true, 7, 100, 2, 2},
                                 {true, 7, 100, 1, 4}, {true, 7, 100, 1, 8}};
  read_all(&(setup){true, 7, 100, 2, 1}, &one);
  for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
    read_all(&meshes[i], &other);
    assert_memory_equal(&one, &other, sizeof one);
  }
}

/* Samples of step b are b G … (b + 1) G - 1, split among data-parallel ranks in order. */
static void gives_every_rank_its_share(void **state) {
  (void)state;
  made_plan made;
  make_plan(&made, &(setup){true, 7, 100, 2, 2});
  nxr_data *data;
  nxr_fault fault = {""};
  assert_true(nxr_data_open(&made.plan, 1, &data, &fault));
  int32_t tokens[2 * SEQUENCE], labels[2 * SEQUENCE], positions[2 * SEQUENCE];
  int64_t samples[2];
  assert_true(nxr_data_read(data, 3, 1, tokens, labels, positions, samples, &fault));
  assert_int_equal(samples[0], 3 * GLOBAL_BATCH + 4 + 2);
  assert_int_equal(samples[1], samples[0] + 1);
  nxr_data_close(data);
}

static void reads_every_sample_once_an_epoch(void **state) {
  (void)state;
  static reading all;
  read_all(&(setup){true, 7, 100, 2, 1}, &all);
  for (uint32_t epoch = 0; epoch < 2; epoch++) {
    uint32_t n_times[N_TOKENS] = {0};
    for (uint32_t sample = 0; sample < N_SAMPLES; sample++)
      for (uint32_t at = 0; at < SEQUENCE; at++) n_times[all.tokens[epoch * N_SAMPLES + sample][at]]++;
    uint32_t n_read = 0;
    for (uint32_t token = 0; token < N_TOKENS; token++) {
      assert_in_range(n_times[token], 0, 1);
      n_read += n_times[token];
    }
    assert_int_equal(n_read, N_SAMPLES * SEQUENCE);
  }
  assert_memory_not_equal(all.tokens, all.tokens + N_SAMPLES, N_SAMPLES * sizeof *all.tokens);
}

/* Runs are resumed with later versions of nxrun: the order may never change. */
static void keeps_its_order_for_ever(void **state) {
  (void)state;
  static reading all, other;
  static const int32_t first_tokens[] = {69, 40, 12, 77, 36, 32, 85, 81, 8,  60, 56, 73, 0,  52, 48,
                                         16, 64, 20, 4,  24, 28, 44, 64, 44, 48, 12, 16, 60, 40, 8};
  read_all(&(setup){true, 1234, 100, 2, 1}, &all);
  for (size_t i = 0; i < sizeof first_tokens / sizeof *first_tokens; i++)
    assert_int_equal(all.tokens[i][0], first_tokens[i]);
  read_all(&(setup){true, 1235, 100, 2, 1}, &other);
  assert_memory_not_equal(all.tokens, other.tokens, sizeof all.tokens);
}

static void reports_what_does_not_fit(void **state) {
  (void)state;
  made_plan made;
  nxr_data *data;
  nxr_fault fault = {""};
  make_plan(&made, &(setup){false, 1, 30, 8, 1});
  assert_true(nxr_data_open(&made.plan, 0, &data, &fault));
  int32_t tokens[8 * SEQUENCE], labels[8 * SEQUENCE], positions[8 * SEQUENCE];
  int64_t samples[8];
  assert_false(nxr_data_read(data, 0, 0, tokens, labels, positions, samples, &fault));
  assert_non_null(strstr(fault.text, "token 30"));
  assert_non_null(strstr(fault.text, "30 words"));
  nxr_data_close(data);

  made.run.sequence = N_TOKENS, fault.text[0] = '\0';
  assert_false(nxr_data_open(&made.plan, 0, &data, &fault));
  assert_null(data);
  assert_non_null(strstr(fault.text, "fewer than one sample"));

  made.plan.n[NX_SECTION_DATA_PATHS] = 2, fault.text[0] = '\0';
  assert_false(nxr_data_open(&made.plan, 0, &data, &fault));
  assert_non_null(strstr(fault.text, "names 2 datasets"));

  made.plan.n[NX_SECTION_DATA_PATHS] = 1, fault.text[0] = '\0';
  strcat(made.strings + 1, "-not");
  assert_false(nxr_data_open(&made.plan, 0, &data, &fault));
  assert_non_null(strstr(fault.text, "nxdata build"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_the_order_without_shuffling),
      cmocka_unit_test(is_the_same_on_every_mesh),
      cmocka_unit_test(gives_every_rank_its_share),
      cmocka_unit_test(reads_every_sample_once_an_epoch),
      cmocka_unit_test(keeps_its_order_for_ever),
      cmocka_unit_test(reports_what_does_not_fit),
  };
  return cmocka_run_group_tests_name("data_order", tests, make_dataset, temporary_remove);
}
