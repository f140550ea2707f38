/* SPDX-License-Identifier: Apache-2.0 */
/* What a dataset of several sources gives: which of them, which of their documents, and how often. */
#include "runtime/data/data_set.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/dataset_files.h"

enum { SEQUENCE = 4, N_DOCUMENTS = 10, DOCUMENT = 9, N_SOURCES = 3, VOCAB = 300, END = 299 };

/* Ten documents of nine tokens; token i of the file is `first` + i. */
static void write_dataset(const char *name, uint16_t first) {
  char file[64];
  int32_t sizes[N_DOCUMENTS];
  int64_t pointers[N_DOCUMENTS], borders[N_DOCUMENTS + 1];
  uint8_t index[512];
  uint16_t tokens[N_DOCUMENTS * DOCUMENT];
  for (int i = 0; i <= N_DOCUMENTS; i++) borders[i] = i;
  for (int i = 0; i < N_DOCUMENTS; i++) sizes[i] = DOCUMENT, pointers[i] = 2 * DOCUMENT * i;
  for (uint16_t i = 0; i < N_DOCUMENTS * DOCUMENT; i++) tokens[i] = (uint16_t)(first + i);
  const dataset_files files = {8, N_DOCUMENTS, N_DOCUMENTS + 1, sizes, pointers, borders};
  snprintf(file, sizeof file, "%s.idx", name);
  temporary_write(file, index, dataset_files_index(&files, index));
  snprintf(file, sizeof file, "%s.bin", name);
  temporary_write(file, tokens, sizeof tokens);
}

static int make_datasets(void **state) {
  temporary_make(state);
  write_dataset("low", 0);
  write_dataset("high", 100);
  return 0;
}

typedef struct made {
  nx_plan plan;
  nx_run run;
  nx_dataset record;
  nx_source records[N_SOURCES];
  char strings[1024];
  nxr_data_sources sources;
  nxr_set set;
} made;

/* "low" is text 1; "high" stands behind it. */
static uint32_t high_of(const made *m) {
  return (uint32_t)strlen(m->strings + 1) + 2;
}

static void make(made *m, nx_blend blend, uint32_t n_sources) {
  *m = (made){.run = {.seed = 5, .sequence = SEQUENCE, .vocab = VOCAB, .end_of_document = NX_NONE},
              .record = {.role = NX_DATASET_TRAIN,
                         .n_sources = n_sources,
                         .sampler = NX_SAMPLER_STREAM, .order = NX_ORDER_EPOCHS,
                         .blend = blend,
                         .shuffle = 1}};
  size_t n = (size_t)snprintf(m->strings + 1, sizeof m->strings / 2, "%s", temporary_path(0, "low")) + 2;
  snprintf(m->strings + n, sizeof m->strings / 2, "%s", temporary_path(0, "high"));
  for (uint32_t i = 0; i < N_SOURCES; i++)
    m->records[i] = (nx_source){.prefix = 1, .split = NX_SPLIT_SUMS, .shares = {1}};
  m->plan = (nx_plan){.run = &m->run, .strings = m->strings, .datasets = &m->record, .sources = m->records};
  m->plan.n[NX_SECTION_DATASETS] = 1, m->plan.n[NX_SECTION_SOURCES] = n_sources;
}

static bool open_set(made *m, nxr_fault *fault) {
  return nxr_data_sources_make(&m->plan, &m->sources, fault) &&
         nxr_set_open(&m->plan, &m->record, UINT64_MAX, &m->sources, &m->set, fault);
}

static void close_set(made *m) {
  nxr_set_close(&m->set);
  nxr_data_sources_close(&m->sources);
}

static void read_sample(made *m, uint64_t sample, int32_t tokens[SEQUENCE + 1]) {
  int32_t starts[SEQUENCE];
  float weights[SEQUENCE];
  nxr_fault fault = {""};
  const nxr_row row = {tokens, starts, weights};
  if (!nxr_set_read(&m->set, sample, &row, &fault)) fail_msg("%s", fault.text);
}

/* Two parts of one file and a third of another: nothing of one part is ever in a sample of the other. */
static void keeps_to_its_parts(void **state) {
  (void)state;
  for (uint32_t part = 0; part < NX_PARTS; part++) {
    made m;
    nxr_fault fault = {""};
    uint32_t n_low = 0;
    static const int32_t firsts[] = {0, 6, 9, 10}; /* documents */
    make(&m, NX_BLEND_WEIGHTS, 2);
    for (uint32_t i = 0; i < 2; i++) {
      m.records[i] = (nx_source){
          .prefix = 1, .part = part, .split = NX_SPLIT_SUMS, .weight = 0.5, .shares = {0.6, 0.3, 0.1}};
    }
    m.records[1].prefix = high_of(&m);
    assert_true(open_set(&m, &fault));
    for (uint64_t sample = 0; sample < 100; sample++) {
      int32_t tokens[SEQUENCE + 1];
      read_sample(&m, sample, tokens);
      int32_t base = tokens[0] >= 100 ? 100 : 0;
      n_low += base == 0;
      for (int i = 0; i <= SEQUENCE; i++)
        assert_in_range(tokens[i] - base, firsts[part] * DOCUMENT, firsts[part + 1] * DOCUMENT - 1);
    }
    assert_int_equal(n_low, 50);
    close_set(&m);
  }
}

/* Each source goes through its own samples, each once an epoch, as often as the blend asks it. */
static void reads_each_sample_once_an_epoch(void **state) {
  (void)state;
  made m;
  nxr_fault fault = {""};
  enum { N_OF_EACH = (N_DOCUMENTS * DOCUMENT - 1) / SEQUENCE };
  make(&m, NX_BLEND_WEIGHTS, 2);
  m.records[0].weight = 0.75, m.records[1].weight = 0.25;
  m.records[1].prefix = high_of(&m);
  assert_true(open_set(&m, &fault));
  assert_int_equal(m.set.n_rows, 2 * N_OF_EACH);
  uint32_t n_times[VOCAB] = {0};
  for (uint64_t sample = 0; sample < 4 * N_OF_EACH; sample++) {
    int32_t tokens[SEQUENCE + 1];
    read_sample(&m, sample, tokens);
    for (int i = 0; i < SEQUENCE; i++) n_times[tokens[i]]++;
  }
  /* Which tokens fall behind the end of an epoch is drawn anew. */
  uint32_t n_low = 0, n_high = 0;
  for (int i = 0; i < N_DOCUMENTS * DOCUMENT; i++) {
    assert_in_range(n_times[i], 1, 3);
    assert_in_range(n_times[100 + i], 0, 1);
    n_low += n_times[i], n_high += n_times[100 + i];
  }
  assert_int_equal(n_low, 3 * N_OF_EACH * SEQUENCE);
  assert_int_equal(n_high, N_OF_EACH * SEQUENCE);
  close_set(&m);
}

static void opens_a_file_once(void **state) {
  (void)state;
  made m;
  nxr_fault fault = {""};
  make(&m, NX_BLEND_SAMPLES, N_SOURCES);
  m.records[1].prefix = high_of(&m);
  m.records[2].shares[0] = m.records[2].shares[1] = 0.5;
  assert_true(open_set(&m, &fault));
  assert_ptr_equal(m.sources.sources[0].dataset, m.sources.sources[2].dataset);
  assert_ptr_not_equal(m.sources.sources[0].dataset, m.sources.sources[1].dataset);
  uint32_t n_times[N_SOURCES] = {0};
  const uint64_t n_samples[N_SOURCES] = {22, 22, 11};
  for (uint64_t sample = 0; sample < 110; sample++) n_times[nxr_blend_pick(&m.set.blend, sample).source]++;
  for (uint32_t i = 0; i < N_SOURCES; i++) {
    assert_int_equal(m.set.samplers[i].n_samples, n_samples[i]);
    assert_int_equal(n_times[i], 2 * n_samples[i]);
  }
  close_set(&m);
}

/* Sources of one file are shuffled independently of one another. */
static void shuffles_sources_apart(void **state) {
  (void)state;
  made m;
  nxr_fault fault = {""};
  uint32_t n_same = 0;
  make(&m, NX_BLEND_WEIGHTS, 2);
  m.records[0].weight = m.records[1].weight = 0.5;
  assert_true(open_set(&m, &fault));
  for (uint64_t sample = 0; sample < 44; sample += 2) {
    int32_t one[SEQUENCE + 1], other[SEQUENCE + 1];
    read_sample(&m, sample, one);
    read_sample(&m, sample + 1, other);
    n_same += memcmp(one, other, sizeof one) == 0;
  }
  assert_in_range(n_same, 0, 10);
  close_set(&m);
}

static void tells_data_apart(void **state) {
  (void)state;
  nxr_fingerprint of[4];
  for (int i = 0; i < 4; i++) {
    made m;
    nxr_fault fault = {""};
    make(&m, NX_BLEND_SAMPLES, i == 3 ? 1 : 2);
    m.records[i == 1 ? 0 : 1].prefix = high_of(&m);
    if (i == 2) m.records[1].shares[0] = m.records[1].shares[1] = 0.5;
    assert_true(open_set(&m, &fault));
    of[i] = m.set.fingerprint;
    close_set(&m);
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < i; j++) assert_false(nxr_fingerprint_equal(&of[i], &of[j]));
  assert_int_equal(of[0].n_documents, 2 * N_DOCUMENTS);
  assert_int_equal(of[2].n_tokens, N_DOCUMENTS * DOCUMENT * 3 / 2);
}

static void makes_up_tokens(void **state) {
  (void)state;
  made m;
  nxr_fault fault = {""};
  uint32_t n_times[VOCAB] = {0};
  make(&m, NX_BLEND_WEIGHTS, 1);
  m.records[0].prefix = 0, m.records[0].weight = 1;
  m.run.end_of_document = END, m.run.sequence = 4096; /* an order of few samples */
  assert_true(open_set(&m, &fault));
  const nxr_data_source *source = &m.sources.sources[0];
  int32_t whole[4096], part[2];
  for (uint64_t document = 0; document < 20; document++) {
    uint64_t n = nxr_data_source_document_tokens(source, document);
    assert_in_range(n, 1, 4096);
    nxr_data_source_read(source, document, 0, n, whole);
    assert_int_equal(whole[n - 1], END);
    for (uint64_t i = 0; i < n; i++) n_times[whole[i]]++;
    if (n < 8) continue;
    nxr_data_source_read(source, document, 5, 2, part);
    assert_memory_equal(part, whole + 5, sizeof part);
  }
  for (int i = 0; i < VOCAB; i++) assert_in_range(n_times[i], 1, 1000);
  close_set(&m);
}

/* Where all epochs are ordered together the weights are still those of the labels: token i weighs i. */
static void weighs_labels_in_every_order(void **state) {
  (void)state;
  float of_tokens[N_DOCUMENTS * DOCUMENT];
  for (int i = 0; i < N_DOCUMENTS * DOCUMENT; i++) of_tokens[i] = (float)i;
  temporary_write("low.weights", of_tokens, sizeof of_tokens);
  for (uint32_t order = NX_ORDER_EPOCHS; order <= NX_ORDER_NEOX; order++) {
    made m;
    nxr_fault fault = {""};
    make(&m, NX_BLEND_WEIGHTS, 1);
    m.records[0].weight = 1, m.record.order = order, m.run.weights = 0;
    assert_true(nxr_data_sources_make(&m.plan, &m.sources, &fault) &&
                nxr_set_open(&m.plan, &m.record, 100, &m.sources, &m.set, &fault));
    for (uint64_t sample = 0; sample < 100; sample++) {
      int32_t tokens[SEQUENCE + 1], starts[SEQUENCE];
      float weights[SEQUENCE];
      const nxr_row row = {tokens, starts, weights};
      assert_true(nxr_set_read(&m.set, sample, &row, &fault));
      for (int i = 0; i < SEQUENCE; i++) assert_true(weights[i] == (float)tokens[i + 1]);
    }
    close_set(&m);
  }
  remove(temporary_path(0, "low.weights"));
}

static void open_ordered(made *m, nx_blend blend, uint32_t n_sources, nx_order order, uint64_t n_needed) {
  nxr_fault fault = {""};
  m->record.order = order, m->record.blend = blend, m->record.n_sources = n_sources;
  for (uint32_t i = 0; i < n_sources; i++)
    m->records[i].weight = blend == NX_BLEND_WEIGHTS ? 1.0 / n_sources : 0;
  if (!nxr_data_sources_make(&m->plan, &m->sources, &fault) ||
      !nxr_set_open(&m->plan, &m->record, n_needed, &m->sources, &m->set, &fault))
    fail_msg("%s", fault.text);
}

/* 90 tokens have 22 samples of 4: of a source with a weight 23 are asked, two epochs have them. */
static void asks_more_of_what_has_a_weight(void **state) {
  (void)state;
  for (uint32_t order = NX_ORDER_MEGATRON; order <= NX_ORDER_NEOX; order++)
    for (uint32_t blend = NX_BLEND_WEIGHTS; blend <= NX_BLEND_SAMPLES; blend++) {
      made m;
      make(&m, blend, 1);
      open_ordered(&m, blend, 1, order, 22);
      assert_int_equal(m.set.samplers[0].orders.n_samples, blend == NX_BLEND_WEIGHTS ? 44 : 22);
      close_set(&m);
    }
}

/* Three samples of 100 tokens of 90: four epochs have them. */
static void joins_epochs_below_a_sample(void **state) {
  (void)state;
  for (uint32_t order = NX_ORDER_MEGATRON; order <= NX_ORDER_NEOX; order++) {
    made m;
    int32_t tokens[101], starts[100];
    uint32_t n_times[100] = {0};
    float weights[100];
    nxr_fault fault = {""};
    const nxr_row row = {tokens, starts, weights};
    make(&m, NX_BLEND_SAMPLES, 1);
    m.run.sequence = 100;
    open_ordered(&m, NX_BLEND_SAMPLES, 1, order, 3);
    for (uint64_t sample = 0; sample < 3; sample++) {
      assert_true(nxr_set_read(&m.set, sample, &row, &fault));
      for (int i = 0; i < 100; i++) n_times[tokens[i]]++;
    }
    for (int i = 0; i < N_DOCUMENTS * DOCUMENT; i++) assert_in_range(n_times[i], 2, 4);
    close_set(&m);
  }
}

/* One source of 22 samples says that it has 21: of 8 at once 16 are read, again and again. */
static void an_epoch_has_whole_micro_batches(void **state) {
  (void)state;
  made m;
  int32_t tokens[5], first[5], starts[4];
  float weights[4];
  nxr_fault fault = {""};
  const nxr_row row = {tokens, starts, weights}, before = {first, starts, weights};
  make(&m, NX_BLEND_EPOCHS, 1);
  m.run.data_size = 2, m.run.micro_batch = 4;
  open_ordered(&m, NX_BLEND_EPOCHS, 1, NX_ORDER_NEOX, 64);
  assert_int_equal(m.set.again, 16);
  for (uint64_t sample = 0; sample < 16; sample++)
    for (uint64_t epoch = 1; epoch < 4; epoch++) {
      assert_true(nxr_set_read(&m.set, sample, &before, &fault));
      assert_true(nxr_set_read(&m.set, 16 * epoch + sample, &row, &fault));
      assert_memory_equal(tokens, first, sizeof tokens);
    }
  close_set(&m);
}

/* Two sources of 22 samples say that they have 21: behind 42 rows GPT-NeoX takes the first again. */
static void begins_a_blend_again(void **state) {
  (void)state;
  static const nx_blend blends[] = {NX_BLEND_WEIGHTS, NX_BLEND_EPOCHS};
  for (size_t i = 0; i < 2; i++) {
    made m;
    make(&m, blends[i], 2);
    m.records[1].prefix = high_of(&m);
    open_ordered(&m, blends[i], 2, NX_ORDER_NEOX, 42);
    uint64_t n = m.set.samplers[0].orders.n_samples - 1;
    for (uint64_t sample = 0; sample < n; sample++)
      for (uint64_t source = 0; source < 2; source++) {
        int32_t first[SEQUENCE + 1], again[SEQUENCE + 1];
        read_sample(&m, 2 * sample + source, first);
        read_sample(&m, 2 * (sample + n) + source, again);
        assert_memory_equal(first, again, sizeof first);
        assert_int_equal(first[0] >= 100, source);
      }
    close_set(&m);
  }
}

/* And a single source of 22 samples has the 23rd as number 22 % 21. */
static void begins_an_epoch_again(void **state) {
  (void)state;
  made m;
  int32_t first[SEQUENCE + 1], again[SEQUENCE + 1];
  make(&m, NX_BLEND_SAMPLES, 1);
  open_ordered(&m, NX_BLEND_SAMPLES, 1, NX_ORDER_NEOX, 22);
  read_sample(&m, 1, first);
  read_sample(&m, 22, again);
  assert_memory_equal(first, again, sizeof first);
  close_set(&m);
}

static void names_what_is_too_small(void **state) {
  (void)state;
  made m;
  nxr_fault fault = {""};
  make(&m, NX_BLEND_SAMPLES, 2);
  m.records[1].prefix = high_of(&m), m.records[1].part = 1;
  assert_false(open_set(&m, &fault));
  assert_non_null(strstr(fault.text, "high has 0 tokens, in 0 of its 10 documents"));
  nxr_data_sources_close(&m.sources);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_to_its_parts),
      cmocka_unit_test(reads_each_sample_once_an_epoch),
      cmocka_unit_test(opens_a_file_once),
      cmocka_unit_test(shuffles_sources_apart),
      cmocka_unit_test(tells_data_apart),
      cmocka_unit_test(makes_up_tokens),
      cmocka_unit_test(weighs_labels_in_every_order),
      cmocka_unit_test(names_what_is_too_small),
      cmocka_unit_test(asks_more_of_what_has_a_weight),
      cmocka_unit_test(joins_epochs_below_a_sample),
      cmocka_unit_test(begins_an_epoch_again),
      cmocka_unit_test(an_epoch_has_whole_micro_batches), cmocka_unit_test(begins_a_blend_again),
  };
  return cmocka_run_group_tests(tests, make_datasets, temporary_remove);
}
