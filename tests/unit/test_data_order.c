/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens a step trains on: decided by the dataset and the seed, not by the mesh. */
#include "runtime/data/data.h"
#include "runtime/data/data_order.h"
#include "runtime/data/dataset_split.h"
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

/* Atoms: ulysses, ring, data; the rank on each is a constant. */
enum { ULYSSES, RING, DATA, N_ATOMS };

typedef struct made_plan {
  nx_plan plan;
  nx_run run;
  nx_atom atoms[N_ATOMS];
  nx_constant constants[N_ATOMS];
  nx_term terms[N_ATOMS];
  char strings[1024];
  nx_dataset set;
  nx_source sources[2];
} made_plan;

static void make_plan(made_plan *made, const setup *from) {
  *made = (made_plan){.run = {.seed = from->seed, .later_labels = NX_NONE, .later_weights = NX_NONE,
                              .n_steps = N_STEPS,
                              .n_micro_batches = GLOBAL_BATCH / from->data_size / from->micro_batch,
                              .micro_batch = from->micro_batch,
                              .sequence = SEQUENCE,
                              .global_batch = GLOBAL_BATCH,
                              .vocab = from->vocab,
                              .data_size = from->data_size,
                              .data_rank = DATA,
                              .ring_rank = RING,
                              .ring_size = 1,
                              .ulysses_rank = ULYSSES,
                              .ulysses_size = 1},
                      .set = {.role = NX_DATASET_TRAIN,
                              .n_sources = 1,
                              .sampler = NX_SAMPLER_STREAM,
                              .order = NX_ORDER_EPOCHS,
                              .blend = NX_BLEND_WEIGHTS,
                              .shuffle = from->shuffle},
                      .sources = {{.prefix = 1, .split = NX_SPLIT_SUMS, .weight = 1, .shares = {1}}}};
  snprintf(made->strings + 1, sizeof made->strings - 1, "%s", temporary_path(0, "set"));
  made->plan = (nx_plan){.run = &made->run,
                         .strings = made->strings,
                         .datasets = &made->set,
                         .sources = made->sources,
                         .atoms = made->atoms,
                         .constants = made->constants,
                         .terms = made->terms};
  made->plan.n[NX_SECTION_DATASETS] = 1, made->plan.n[NX_SECTION_SOURCES] = 1;
  made->plan.n[NX_SECTION_ATOMS] = N_ATOMS;
}

static nxr_data *open_data(made_plan *made, uint32_t rank) {
  const uint32_t sizes[N_ATOMS] = {made->run.ulysses_size, made->run.ring_size, made->run.data_size};
  uint32_t stride = 1;
  nxr_data *data;
  nxr_fault fault = {""};
  for (uint32_t atom = 0; atom < N_ATOMS; atom++) {
    made->atoms[atom] = (nx_atom){.size = sizes[atom], .stride = stride};
    made->terms[atom] = (nx_term){.atoms = 1u << atom, .stride = 1, .kind = NX_TERM_STRIDE};
    made->constants[atom] = (nx_constant){.first_term = atom, .n_terms = 1};
    stride *= sizes[atom];
  }
  assert_true(nxr_data_open(&made->plan, rank, NXR_READS_ALL, &data, &fault));
  return data;
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
  const nxr_batch batch = {tokens, labels, positions, samples, NULL, NULL};
  assert_true(nxr_data_read(data, 0, step, micro_batch, &batch, &fault));
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
    nxr_data *data = open_data(&made, rank);
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
  nxr_data *data = open_data(&made, 1);
  nxr_fault fault = {""};
  int32_t tokens[2 * SEQUENCE], labels[2 * SEQUENCE], positions[2 * SEQUENCE];
  int64_t samples[2];
  const nxr_batch batch = {tokens, labels, positions, samples, NULL, NULL};
  assert_true(nxr_data_read(data, 0, 3, 1, &batch, &fault));
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

/* Borders as Megatron Core draws them: cumulative shares of the documents, rounded, a half to the even
 * one. */
static void divides_as_megatron_does(void **state) {
  (void)state;
  static const struct {
    const char *shares;
    uint64_t n, borders[4];
  } cases[] = {
      {"969,30,1", 1000, {0, 969, 999, 1000}},
      {"969, 30, 1", 17, {0, 16, 17, 17}},
      {"99,1,0", 100, {0, 99, 100, 100}},
      {"1/1", 5, {0, 2, 5, 5}},
      {"1,1", 7, {0, 4, 7, 7}},
      {"98,2", 1, {0, 1, 1, 1}},
      {"1", 3, {0, 3, 3, 3}},
      {"0,1", 3, {0, 0, 3, 3}},
      {"969,30,1", 150, {0, 145, 150, 150}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double shares[NX_PARTS];
    uint64_t borders[NX_PARTS + 1];
    assert_true(nxr_split_parse(cases[i].shares, shares));
    nxr_split_borders(shares, cases[i].n, borders);
    assert_memory_equal(borders, cases[i].borders, sizeof borders);
  }
  static const char *const none[] = {"", ",", "0,0,0", "1,2,3,4", "a", "1,,2", "1;2", "-1,2", "1e999", "inf"};
  double shares[NX_PARTS];
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_false(nxr_split_parse(none[i], shares));
}

/* Of the four documents the first two are trained on, with 40 tokens: nine samples, and none of the
 * others. */
static void reads_its_share_alone(void **state) {
  (void)state;
  made_plan made;
  make_plan(&made, &(setup){true, 7, 40, 2, 1});
  made.sources[0].shares[0] = made.sources[0].shares[1] = 0.5;
  nxr_data *data = open_data(&made, 0);
  static reading all;
  all = (reading){0};
  for (uint64_t step = 0; step < N_STEPS; step++)
    for (uint32_t micro_batch = 0; micro_batch < made.run.n_micro_batches; micro_batch++)
      read_micro_batch(data, &(setup){true, 7, 40, 2, 1}, step, micro_batch, &all);
  uint32_t n_times[10] = {0};
  for (uint32_t sample = 0; sample < 9; sample++) n_times[all.tokens[sample][0] / SEQUENCE]++;
  for (uint32_t i = 0; i < 9; i++) assert_int_equal(n_times[i], 1);
  assert_int_equal(nxr_data_fingerprint(data)->n_documents, 2);
  assert_int_equal(nxr_data_fingerprint(data)->n_tokens, 40);
  nxr_data_close(data);
  nxr_fault fault = {""};
  made.sources[0].shares[0] = 0.01, made.sources[0].shares[1] = 0.99;
  assert_false(nxr_data_open(&made.plan, 0, NXR_READS_ALL, &data, &fault));
  assert_non_null(strstr(fault.text, "0 of its 4 documents"));
}

/* At an epoch's end micro-batches of both are read in turn: neither order is made again. */
static void keeps_two_epochs(void **state) {
  (void)state;
  made_plan made;
  nxr_data_sources sources;
  nxr_orders orders;
  nxr_fault fault = {""};
  make_plan(&made, &(setup){true, 7, 100, 2, 1});
  assert_true(nxr_data_sources_make(&made.plan, &sources, &fault));
  const nxr_data_source *source = nxr_data_source_open(&sources, 0, &fault);
  const nxr_order_rule rule = {.seed = 7, .shuffle = true, .order = NX_ORDER_EPOCHS, .n_needed = UINT64_MAX};
  assert_true(nxr_orders_open(source, &rule, &orders, &fault));
  for (uint64_t epoch = 0; epoch < 5; epoch++) {
    const nxr_order *one = nxr_orders_of(&orders, epoch), *next = nxr_orders_of(&orders, epoch + 1);
    uint64_t first = one->samples[0];
    one->samples[0] = UINT64_MAX; /* a mark, which an order that is made again has not */
    assert_ptr_equal(nxr_orders_of(&orders, epoch), one);
    assert_true(one->samples[0] == UINT64_MAX && one->epoch == epoch && next->epoch == epoch + 1);
    one->samples[0] = first;
  }
  nxr_orders_close(&orders);
  nxr_data_sources_close(&sources);
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
  nxr_fault fault = {""};
  make_plan(&made, &(setup){false, 1, 30, 8, 1});
  nxr_data *data = open_data(&made, 0);
  int32_t tokens[8 * SEQUENCE], labels[8 * SEQUENCE], positions[8 * SEQUENCE];
  int64_t samples[8];
  const nxr_batch batch = {tokens, labels, positions, samples, NULL, NULL};
  assert_false(nxr_data_read(data, 0, 0, 0, &batch, &fault));
  assert_non_null(strstr(fault.text, "token 30"));
  assert_non_null(strstr(fault.text, "30 words"));
  nxr_data_close(data);

  made.run.sequence = N_TOKENS, fault.text[0] = '\0';
  assert_false(nxr_data_open(&made.plan, 0, NXR_READS_ALL, &data, &fault));
  assert_null(data);
  assert_non_null(strstr(fault.text, "fewer than one sample"));

  made.set.sampler = (uint32_t)NX_SAMPLER_PAIRS + 1, fault.text[0] = '\0';
  assert_false(nxr_data_open(&made.plan, 0, NXR_READS_ALL, &data, &fault));
  assert_non_null(strstr(fault.text, "no sampler"));

  made.set.sampler = NX_SAMPLER_STREAM, made.run.sequence = SEQUENCE, fault.text[0] = '\0';
  strcat(made.strings + 1, "-not");
  assert_false(nxr_data_open(&made.plan, 0, NXR_READS_ALL, &data, &fault));
  assert_non_null(strstr(fault.text, "nxdata build"));
}

/* One sequence of 24 tokens, token i of which is i, on ranks of 2 rings of 3. */
enum { LONG = 24, N_RING = 2, N_ULYSSES = 3, PART = LONG / N_RING, OWN = PART / N_ULYSSES };

static void divides_a_sequence_over_its_ranks(void **state) {
  (void)state;
  static const int32_t expected[N_RING * N_ULYSSES][OWN] = {
      {0, 1, 2, 3}, {4, 5, 18, 19}, {20, 21, 22, 23}, {6, 7, 8, 9}, {10, 11, 12, 13}, {14, 15, 16, 17}};
  made_plan made;
  make_plan(&made, &(setup){false, 1, 100, 1, 1});
  made.run.sequence = LONG, made.run.ring_size = N_RING, made.run.ulysses_size = N_ULYSSES;
  for (uint32_t rank = 0; rank < N_RING * N_ULYSSES; rank++) {
    nxr_data *data = open_data(&made, rank);
    int32_t tokens[OWN], labels[OWN], positions[OWN], starts[PART];
    int64_t sample;
    nxr_fault fault = {""};
    const nxr_batch batch = {tokens, labels, positions, &sample, starts, NULL};
    assert_true(nxr_data_read(data, 0, 0, 0, &batch, &fault));
    assert_memory_equal(tokens, expected[rank], sizeof tokens);
    assert_memory_equal(positions, expected[rank], sizeof positions);
    for (int i = 0; i < OWN; i++) assert_int_equal(labels[i], tokens[i] + 1);
    for (int i = 0; i < PART; i++) assert_int_equal(starts[i], 0);
    const int32_t *places = nxr_data_places(data), *own = expected[rank / N_ULYSSES * N_ULYSSES];
    assert_memory_equal(places, own, PART * sizeof *own); /* the ranks of a part have it in order */
    const int32_t *before = expected[N_ULYSSES - rank / N_ULYSSES * N_ULYSSES];
    assert_memory_equal(places + PART, before, PART * sizeof *own);
    nxr_data_close(data);
  }
}

/* Token 5 ends a document, in the first piece of ring rank 0. */
static void tells_documents_apart(void **state) {
  (void)state;
  made_plan made;
  make_plan(&made, &(setup){false, 1, 100, 1, 1});
  made.run.sequence = LONG, made.run.ring_size = N_RING;
  made.run.end_of_document = 5;
  made.run.documents = NX_DOCUMENTS_ATTENTION | NX_DOCUMENTS_POSITIONS | NX_DOCUMENTS_LOSS;
  nxr_data *data = open_data(&made, 0);
  int32_t tokens[PART], labels[PART], positions[PART], starts[PART];
  int64_t sample;
  float weights[PART];
  nxr_fault fault = {""};
  const nxr_batch batch = {tokens, labels, positions, &sample, starts, weights};
  assert_true(nxr_data_read(data, 0, 0, 0, &batch, &fault));
  for (int i = 0; i < PART; i++) {
    int32_t start = tokens[i] <= 5 ? 0 : 6;
    assert_int_equal(starts[i], start);
    assert_int_equal(positions[i], tokens[i] - start);
    assert_true(weights[i] == (tokens[i] == 5 ? 0.0F : (float)(24.0 / 23)));
  }
  made.run.documents = NX_DOCUMENTS_POSITIONS;
  assert_true(nxr_data_read(data, 0, 0, 0, &batch, &fault));
  for (int i = 0; i < PART; i++) {
    assert_int_equal(starts[i], 0);
    assert_true(weights[i] == 1.0F);
  }
  nxr_data_close(data);
}

/* Documents begin at tokens 0, 40 and 69 of the file, as the index has them; no token says so. */
static void tells_documents_apart_by_the_index(void **state) {
  (void)state;
  made_plan made;
  make_plan(&made, &(setup){false, 1, 100, 1, 1});
  made.run.sequence = LONG, made.run.ring_size = N_RING;
  made.run.end_of_document = NX_NONE;
  made.run.documents = NX_DOCUMENTS_ATTENTION | NX_DOCUMENTS_POSITIONS | NX_DOCUMENTS_INDEX;
  nxr_data *data = open_data(&made, 0);
  int32_t tokens[PART], labels[PART], positions[PART], starts[PART];
  int64_t sample;
  nxr_fault fault = {""};
  const nxr_batch batch = {tokens, labels, positions, &sample, starts, NULL};
  for (uint32_t number = 0; number < 3; number++) {
    assert_true(nxr_data_read(data, 0, 0, number, &batch, &fault));
    int32_t first = (int32_t)number * LONG;
    for (int i = 0; i < PART; i++) {
      int32_t document = tokens[i] < 40 ? 0 : tokens[i] < 69 ? 40 : 69;
      int32_t start = document > first ? document - first : 0;
      assert_int_equal(starts[i], start);
      assert_int_equal(positions[i], tokens[i] - first - start);
      assert_int_equal(labels[i], tokens[i] + 1);
    }
  }
  nxr_data_close(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_the_order_without_shuffling),
      cmocka_unit_test(is_the_same_on_every_mesh),
      cmocka_unit_test(gives_every_rank_its_share),
      cmocka_unit_test(reads_every_sample_once_an_epoch),
      cmocka_unit_test(keeps_its_order_for_ever),
      cmocka_unit_test(keeps_two_epochs),
      cmocka_unit_test(divides_as_megatron_does),
      cmocka_unit_test(reads_its_share_alone),
      cmocka_unit_test(reports_what_does_not_fit),
      cmocka_unit_test(divides_a_sequence_over_its_ranks),
      cmocka_unit_test(tells_documents_apart),
      cmocka_unit_test(tells_documents_apart_by_the_index),
  };
  return cmocka_run_group_tests_name("data_order", tests, make_dataset, temporary_remove);
}
