/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows documents are packed into, and what a sample of whole documents holds. */
#include "runtime/data/sampler.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/dataset_files.h"

enum { N = 300, ROW = 64 };

/* -- rows ------------------------------------------------------------------------------------------------ */

typedef struct searched {
  uint64_t n_rows, row_of[N];
} searched;

/* What stands first in a group's order, of documents that are not placed: the longest, or the next. */
static uint64_t next_of(const nx_packing_rule *packing, const uint32_t *lengths, const bool *placed,
                        uint64_t first, uint64_t end) {
  uint64_t best = end;
  for (uint64_t i = first; i < end; i++) {
    if (placed[i]) continue;
    if (best == end || (packing->kind == NX_PACKING_DECREASING && lengths[i] > lengths[best])) best = i;
  }
  return best;
}

/* The same rows, found by looking at each. */
static searched search(const nx_packing_rule *packing, const uint32_t *lengths, uint64_t n) {
  searched found = {0};
  uint64_t group = packing->group ? packing->group : n, used[N] = {0};
  bool placed[N] = {false};
  for (uint64_t first = 0; first < n; first += group) {
    uint64_t end = first + group < n ? first + group : n, first_row = found.n_rows;
    for (uint64_t i; (i = next_of(packing, lengths, placed, first, end)) != end; placed[i] = true) {
      bool last_alone = packing->kind == NX_PACKING_IN_ORDER && found.n_rows > first_row;
      uint64_t row = last_alone ? found.n_rows - 1 : first_row;
      while (row < found.n_rows && used[row] + lengths[i] > ROW) row++;
      if (row == found.n_rows) found.n_rows++;
      used[row] += lengths[i];
      found.row_of[i] = row;
    }
  }
  return found;
}

static void check_rows(const nx_packing_rule *packing, const uint32_t *lengths, uint64_t n) {
  nx_rows rows;
  assert_true(nx_rows_make(packing, lengths, n, &rows));
  searched found = search(packing, lengths, n);
  bool seen[N] = {false};
  assert_int_equal(rows.n, found.n_rows);
  assert_int_equal(rows.firsts[rows.n], n);
  for (uint64_t row = 0; row < rows.n; row++)
    for (uint64_t i = rows.firsts[row]; i < rows.firsts[row + 1]; i++) {
      uint64_t document = rows.documents[i];
      assert_true(document < n && !seen[document]);
      seen[document] = true;
      assert_int_equal(found.row_of[document], row);
    }
  nx_rows_free(&rows);
}

static void rows_are_those_that_a_plain_search_finds(void **state) {
  (void)state;
  uint32_t lengths[N];
  srand(1);
  for (int round = 0; round < 60; round++) {
    uint64_t n = round < 3 ? (uint64_t)round : (uint64_t)(rand() % N) + 1;
    for (uint64_t i = 0; i < n; i++) lengths[i] = (uint32_t)(rand() % ROW) + 1;
    for (nx_packing kind = NX_PACKING_IN_ORDER; kind <= NX_PACKING_DECREASING; kind++)
      for (uint64_t group = 0; group < 40; group += 13)
        check_rows(&(nx_packing_rule){.kind = kind, .row_tokens = ROW, .group = group}, lengths, n);
  }
}

static void the_longest_first_needs_fewer_rows(void **state) {
  (void)state;
  static const uint32_t lengths[] = {14, 24, 30, 34, 40, 50};
  static const uint64_t wanted[] = {
      [NX_PACKING_IN_ORDER] = 4, [NX_PACKING_FIRST_FIT] = 4, [NX_PACKING_DECREASING] = 3};
  for (nx_packing kind = NX_PACKING_IN_ORDER; kind <= NX_PACKING_DECREASING; kind++) {
    nx_rows rows;
    assert_true(nx_rows_make(&(nx_packing_rule){.kind = kind, .row_tokens = ROW}, lengths, 6, &rows));
    assert_int_equal(rows.n, wanted[kind]);
    nx_rows_free(&rows);
  }
}

/* -- samples --------------------------------------------------------------------------------------------- */

enum { SEQUENCE = 8, N_TOKENS = 16 };

/* Documents of 3, 6, 2 and 5 tokens; token i of the file is i + 1, and its weight i / 4. */
static int make_dataset(void **state) {
  temporary_make(state);
  const int32_t sizes[] = {3, 6, 2, 5};
  const int64_t pointers[] = {0, 6, 18, 22}, borders[] = {0, 1, 2, 3, 4};
  uint8_t index[256];
  uint16_t tokens[N_TOKENS];
  float weights[N_TOKENS];
  for (uint16_t i = 0; i < N_TOKENS; i++) tokens[i] = (uint16_t)(i + 1), weights[i] = (float)i / 4;
  temporary_write("set.idx", index,
                  dataset_files_index(&(dataset_files){8, 4, 5, sizes, pointers, borders}, index));
  temporary_write("set.bin", tokens, sizeof tokens);
  temporary_write("set.weights", weights, sizeof weights);
  return 0;
}

typedef struct opened {
  nx_run run;
  nx_source record;
  nx_plan plan;
  char strings[4096];
  nxr_data_sources sources;
  nxr_sampler sampler;
  int32_t tokens[SEQUENCE + 1], starts[SEQUENCE];
  float weights[SEQUENCE], labels[SEQUENCE + 1];
} opened;

static bool open_sampler(opened *set, nx_sampler kind, uint32_t sequence, uint32_t documents,
                         nxr_fault *fault) {
  *set = (opened){
      .run = {.sequence = sequence, .vocab = 100, .documents = documents, .end_of_document = NX_NONE},
      .record = {.prefix = 1, .split = NX_SPLIT_SUMS, .weight = 1, .shares = {1}}};
  snprintf(set->strings + 1, sizeof set->strings - 1, "%s", temporary_path(0, "set"));
  set->plan = (nx_plan){.run = &set->run, .strings = set->strings, .sources = &set->record};
  set->plan.n[NX_SECTION_SOURCES] = 1;
  assert_true(nxr_data_sources_make(&set->plan, &set->sources, fault));
  const nxr_data_source *source = nxr_data_source_open(&set->sources, 0, fault);
  assert_non_null(source);
  set->sampler = (nxr_sampler){.run = &set->run, .source = source, .n_needed = 4,
                               .packing = {.kind = NX_PACKING_DECREASING}};
  return nxr_sampler_open(&set->sampler, kind, fault);
}

static void check_sample(opened *set, uint64_t sample, const int32_t *tokens, const int32_t *starts,
                         const float *weights) {
  const nxr_row row = {set->tokens, set->starts, set->weights, set->labels};
  set->sampler.kind->read(&set->sampler, sample, &row);
  assert_memory_equal(set->tokens, tokens, sizeof set->tokens);
  assert_memory_equal(set->starts, starts, sizeof set->starts);
  assert_memory_equal(set->weights, weights, sizeof set->weights);
}

static void close_sampler(opened *set) {
  nxr_sampler_close(&set->sampler);
  nxr_data_sources_close(&set->sources);
}

/* Rows are documents 1 and 2, and 3 and 0. */
static void a_row_holds_documents_apart(void **state) {
  (void)state;
  opened set;
  nxr_fault fault = {""};
  const uint32_t apart = NX_DOCUMENTS_ATTENTION | NX_DOCUMENTS_POSITIONS | NX_DOCUMENTS_LOSS;
  assert_true(open_sampler(&set, NX_SAMPLER_PACKED, SEQUENCE, apart, &fault));
  assert_int_equal(set.sampler.n_samples, 2);
  check_sample(&set, 0, (int32_t[]){4, 5, 6, 7, 8, 9, 10, 11, 0}, (int32_t[]){0, 0, 0, 0, 0, 0, 6, 6},
               (float[]){1, 1.25F, 1.5F, 1.75F, 2, 0, 2.5F, 0});
  check_sample(&set, 1, (int32_t[]){12, 13, 14, 15, 16, 1, 2, 3, 0}, (int32_t[]){0, 0, 0, 0, 0, 5, 5, 5},
               (float[]){3, 3.25F, 3.5F, 3.75F, 0, 0.25F, 0.5F, 0});
  close_sampler(&set);
}

/* Where documents do not end the loss, the first token of one is predicted as it weighs. */
static void a_row_may_go_on_from_document_to_document(void **state) {
  (void)state;
  opened set;
  nxr_fault fault = {""};
  assert_true(open_sampler(&set, NX_SAMPLER_PACKED, SEQUENCE, 0, &fault));
  check_sample(&set, 1, (int32_t[]){12, 13, 14, 15, 16, 1, 2, 3, 0}, (int32_t[]){0, 0, 0, 0, 0, 5, 5, 5},
               (float[]){3, 3.25F, 3.5F, 3.75F, 0, 0.25F, 0.5F, 0});
  check_sample(&set, 0, (int32_t[]){4, 5, 6, 7, 8, 9, 10, 11, 0}, (int32_t[]){0, 0, 0, 0, 0, 0, 6, 6},
               (float[]){1, 1.25F, 1.5F, 1.75F, 2, 2.25F, 2.5F, 0});
  close_sampler(&set);
}

static void a_document_is_padded(void **state) {
  (void)state;
  opened set;
  nxr_fault fault = {""};
  assert_true(open_sampler(&set, NX_SAMPLER_DOCUMENT, SEQUENCE, NX_DOCUMENTS_ATTENTION, &fault));
  assert_int_equal(set.sampler.n_samples, 4);
  check_sample(&set, 2, (int32_t[]){10, 11, 0, 0, 0, 0, 0, 0, 0}, (int32_t[]){0, 0, 2, 2, 2, 2, 2, 2},
               (float[]){2.5F, 0, 0, 0, 0, 0, 0, 0});
  check_sample(&set, 4, (int32_t[]){1, 2, 3, 0, 0, 0, 0, 0, 0}, (int32_t[]){0, 0, 0, 3, 3, 3, 3, 3},
               (float[]){0.25F, 0.5F, 0, 0, 0, 0, 0, 0});
  close_sampler(&set);
}

/* A document may have a token more than the sequence, the label of its last. */
static void a_document_that_does_not_fit_is_named(void **state) {
  (void)state;
  opened set;
  nxr_fault fault = {""};
  assert_true(open_sampler(&set, NX_SAMPLER_DOCUMENT, 5, 0, &fault));
  close_sampler(&set);
  assert_false(open_sampler(&set, NX_SAMPLER_DOCUMENT, 4, 0, &fault));
  assert_non_null(strstr(fault.text, "document 1 of dataset "));
  assert_non_null(
      strstr(fault.text, "has 6 tokens, and a sample has room for 5: prepare it with data.document_tokens"));
  close_sampler(&set);
}

/* Nor is one read in which no token counts. */
static void long_documents_are_cut_or_left_out(void **state) {
  (void)state;
  opened set;
  nxr_fault fault = {""};
  const float none[3] = {4, 0, 0};
  FILE *file = fopen(temporary_path(0, "set.weights"), "r+b");
  assert_non_null(file);
  assert_int_equal(fwrite(none, sizeof none, 1, file), 1);
  assert_int_equal(fclose(file), 0);
  assert_true(open_sampler(&set, NX_SAMPLER_DOCUMENT, 5, 0, &fault));
  assert_int_equal(set.sampler.n_samples, 4);
  const nx_long_samples rules[] = {NX_LONG_SAMPLES_CUT, NX_LONG_SAMPLES_DROP};
  const int32_t firsts[][2] = {{4, 10}, {10, 12}}; /* tokens of the samples 0 and 1 */
  set.run.sequence = 4;
  for (int i = 0; i < 2; i++) {
    const nxr_row row = {set.tokens, set.starts, set.weights, set.labels};
    nxr_sampler_close(&set.sampler);
    set.sampler.long_samples = rules[i];
    assert_true(nxr_sampler_open(&set.sampler, NX_SAMPLER_DOCUMENT, &fault));
    assert_int_equal(set.sampler.n_samples, 3 - i);
    for (uint64_t sample = 0; sample < 2; sample++) {
      set.sampler.kind->read(&set.sampler, sample, &row);
      assert_int_equal(set.tokens[0], firsts[i][sample]);
    }
  }
  close_sampler(&set);
}

static void weights_belong_to_their_dataset(void **state) {
  (void)state;
  nxr_dataset dataset;
  nxr_fault fault = {""};
  assert_true(nxr_dataset_open(temporary_path(0, "set"), &dataset, &fault));
  float weights[3];
  nxr_dataset_weights(&dataset, 1, 2, 3, weights);
  assert_memory_equal(weights, ((float[]){1.25F, 1.5F, 1.75F}), sizeof weights);
  nxr_dataset_close(&dataset);
  temporary_write("set.weights", weights, sizeof weights);
  assert_false(nxr_dataset_open(temporary_path(0, "set"), &dataset, &fault));
  assert_non_null(strstr(fault.text, "set.weights has 12 bytes, and the tokens of its dataset need 64"));
}

/* -- pairs ----------------------------------------------------------------------------------------------- */

static bool open_pairs(opened *set, uint32_t sequence, nx_long_samples rule, bool beside, nxr_fault *fault) {
  *set = (opened){.run = {.sequence = sequence, .vocab = 100, .end_of_document = NX_NONE,
                          .objective = NX_OBJECTIVE_DPO},
                  .record = {.prefix = 1, .split = NX_SPLIT_SUMS, .weight = 1, .shares = {1}}};
  size_t n = 1 + (size_t)snprintf(set->strings + 1, sizeof set->strings - 1, "%s", temporary_path(0, "set"));
  snprintf(set->strings + n + 1, sizeof set->strings - n - 1, "%s", temporary_path(0, "labels"));
  if (beside) set->record.rejected = 1, set->record.labels = set->record.rejected_labels = (uint32_t)n + 1;
  set->plan = (nx_plan){.run = &set->run, .strings = set->strings, .sources = &set->record};
  set->plan.n[NX_SECTION_SOURCES] = 1;
  assert_true(nxr_data_sources_make(&set->plan, &set->sources, fault));
  const nxr_data_source *source = nxr_data_source_open(&set->sources, 0, fault);
  assert_non_null(source);
  set->sampler = (nxr_sampler){.run = &set->run, .source = source, .n_needed = 40, .shuffle = true,
                               .long_samples = rule};
  return nxr_sampler_open(&set->sampler, NX_SAMPLER_PAIRS, fault);
}

static void pairs_stay_together_in_every_order(void **state) {
  (void)state;
  opened set;
  nxr_fault fault = {""};
  bool first[2] = {false, false};
  assert_true(open_pairs(&set, SEQUENCE, NX_LONG_SAMPLES_FAIL, false, &fault));
  assert_int_equal(set.sampler.n_samples, 2);
  for (uint64_t pair = 0; pair < 40; pair++) {
    uint64_t document = nxr_sampler_row_document(&set.sampler, 2 * pair);
    assert_int_equal(document % 2, 0);
    assert_int_equal(nxr_sampler_row_document(&set.sampler, 2 * pair + 1), document + 1);
    if (pair % 2 == 0) first[document / 2] = true;
  }
  assert_true(first[0] && first[1]); /* epochs differ */
  close_sampler(&set);
}

static void long_pairs_fail_are_cut_or_left_out(void **state) {
  (void)state;
  opened set;
  nxr_fault fault = {""};
  assert_false(open_pairs(&set, 4, NX_LONG_SAMPLES_FAIL, false, &fault));
  assert_non_null(strstr(fault.text, "document 1 of dataset"));
  assert_non_null(strstr(fault.text, "data.long_samples"));
  nxr_data_sources_close(&set.sources);
  assert_true(open_pairs(&set, 4, NX_LONG_SAMPLES_CUT, false, &fault));
  assert_int_equal(set.sampler.n_samples, 2);
  close_sampler(&set);
  assert_true(open_pairs(&set, 4, NX_LONG_SAMPLES_DROP, false, &fault));
  assert_int_equal(set.sampler.n_samples, 1);
  assert_int_equal(nxr_sampler_row_document(&set.sampler, 0), 2);
  close_sampler(&set);
}

/* The dataset is both answers' here: documents 2 i and 2 i + 1 of the source are its i-th. */
static void answers_may_stand_in_two_datasets_with_labels(void **state) {
  (void)state;
  opened set;
  nxr_fault fault = {""};
  const int32_t sizes[] = {3, 6, 2, 5};
  const int64_t pointers[] = {0, 12, 36, 44}, borders[] = {0, 1, 2, 3, 4};
  uint8_t index[256];
  int32_t labels[N_TOKENS];
  for (int i = 0; i < N_TOKENS; i++) labels[i] = i % 2 == 0 ? -100 : i + 1;
  temporary_write("labels.idx", index,
                  dataset_files_index(&(dataset_files){4, 4, 5, sizes, pointers, borders}, index));
  temporary_write("labels.bin", labels, sizeof labels);
  assert_true(open_pairs(&set, SEQUENCE, NX_LONG_SAMPLES_FAIL, true, &fault));
  assert_int_equal(set.sampler.source->n_documents, 8);
  const nxr_row row = {set.tokens, set.starts, set.weights, set.labels};
  for (uint64_t document = 2; document < 4; document++) { /* tokens 4 to 9 */
    nxr_sampler_read_document(&set.sampler, document, &row);
    for (int i = 0; i < 5; i++) {
      assert_int_equal(set.tokens[i], 4 + i);
      assert_int_equal((int)set.weights[i], i % 2); /* of token i + 1 */
    }
  }
  close_sampler(&set);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_those_that_a_plain_search_finds),
      cmocka_unit_test(the_longest_first_needs_fewer_rows),
      cmocka_unit_test_setup_teardown(a_row_holds_documents_apart, make_dataset, temporary_remove),
      cmocka_unit_test_setup_teardown(a_row_may_go_on_from_document_to_document, make_dataset,
                                      temporary_remove),
      cmocka_unit_test_setup_teardown(a_document_is_padded, make_dataset, temporary_remove),
      cmocka_unit_test_setup_teardown(a_document_that_does_not_fit_is_named, make_dataset, temporary_remove),
      cmocka_unit_test_setup_teardown(long_documents_are_cut_or_left_out, make_dataset, temporary_remove),
      cmocka_unit_test_setup_teardown(weights_belong_to_their_dataset, make_dataset, temporary_remove),
      cmocka_unit_test_setup_teardown(pairs_stay_together_in_every_order, make_dataset, temporary_remove),
      cmocka_unit_test_setup_teardown(long_pairs_fail_are_cut_or_left_out, make_dataset, temporary_remove),
      cmocka_unit_test_setup_teardown(answers_may_stand_in_two_datasets_with_labels, make_dataset,
                                      temporary_remove),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
