/* SPDX-License-Identifier: Apache-2.0 */
/* Indexed datasets: what is written is read back, and nothing damaged is believed. */
#include "runtime/data/dataset_fingerprint.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/dataset_files.h"

#include <sys/wait.h>

/* Five sequences in three documents, of 3, 0 and 4 tokens. */
static const int32_t good_sizes[] = {2, 1, 0, 3, 1};
static const int64_t good_pointers[] = {0, 4, 6, 6, 12}, good_borders[] = {0, 2, 3, 5};
static const uint16_t good_tokens[] = {10, 11, 12, 13, 14, 15, 65535};
static const dataset_files good = {8, 5, 4, good_sizes, good_pointers, good_borders};

static void write_dataset(const dataset_files *files, const void *tokens, size_t n_bytes) {
  uint8_t index[512];
  temporary_write("set.idx", index, dataset_files_index(files, index));
  temporary_write("set.bin", tokens, n_bytes);
}

static bool open_set(nxr_dataset *dataset, nxr_fault *fault) {
  *fault = (nxr_fault){""};
  return nxr_dataset_open(temporary_path(0, "set"), dataset, fault);
}

static void refuses(const char *because) {
  nxr_dataset dataset;
  nxr_fault fault;
  assert_false(open_set(&dataset, &fault));
  if (strstr(fault.text, because) == NULL) fail_msg("expected \"%s\" in: %s", because, fault.text);
}

/* Reads everything that a dataset which opened offers. */
static void exercise(void) {
  nxr_dataset dataset;
  nxr_dataset_summary summary;
  nxr_fault fault;
  if (!open_set(&dataset, &fault)) {
    assert_true(fault.text[0] != '\0');
    return;
  }
  fault.text[0] = '\0';
  nxr_dataset_summarize(&dataset, &summary, &fault);
  nxr_dataset_close(&dataset);
}

static void reads_documents(void **state) {
  (void)state;
  write_dataset(&good, good_tokens, sizeof good_tokens);
  nxr_dataset dataset;
  nxr_fault fault;
  assert_true(open_set(&dataset, &fault));
  assert_int_equal(dataset.n_documents, 3);
  assert_int_equal(dataset.n_tokens, 7);
  const uint64_t lengths[] = {3, 0, 4};
  for (uint64_t document = 0; document < 3; document++)
    assert_int_equal(nxr_dataset_document_tokens(&dataset, document), lengths[document]);
  int32_t tokens[4];
  nxr_dataset_read(&dataset, 0, 1, 2, tokens);
  assert_int_equal(tokens[0], 11);
  assert_int_equal(tokens[1], 12);
  nxr_dataset_read(&dataset, 2, 0, 4, tokens);
  assert_int_equal(tokens[0], 13);
  assert_int_equal(tokens[3], 65535);
  nxr_dataset_summary summary;
  assert_true(nxr_dataset_summarize(&dataset, &summary, &fault));
  assert_int_equal(summary.least_token, 10);
  assert_int_equal(summary.greatest_token, 65535);
  assert_int_equal(summary.shortest, 0);
  assert_int_equal(summary.longest, 4);
  assert_int_equal(summary.n_empty, 1);
  assert_int_equal(summary.unused_bytes, 0);
  nxr_dataset_close(&dataset);
}

typedef struct token_type {
  uint8_t code;
  uint8_t bytes[16]; /* two tokens */
  uint8_t n_bytes;
  int32_t expected[2];
} token_type;

static void open_two_tokens(const token_type *type, nxr_dataset *dataset) {
  const int32_t sizes[] = {2};
  const int64_t pointers[] = {0}, borders[] = {0, 1};
  const dataset_files files = {type->code, 1, 2, sizes, pointers, borders};
  nxr_fault fault;
  write_dataset(&files, type->bytes, type->n_bytes);
  assert_true(open_set(dataset, &fault));
}

static void reads_every_type(void **state) {
  (void)state;
  static const token_type types[] = {
      {1, {7, 255}, 2, {7, 255}},
      {2, {7, 127}, 2, {7, 127}},
      {3, {7, 1, 255, 127}, 4, {263, 32767}},
      {4, {7, 1, 1, 0, 255, 255, 255, 127}, 8, {65799, INT32_MAX}},
      {5, {7, 1, 0, 0, 0, 0, 0, 0, 255, 255, 255, 127, 0, 0, 0, 0}, 16, {263, INT32_MAX}},
      {8, {7, 1, 255, 255}, 4, {263, 65535}},
      {6, {0, 0, 224, 64, 0, 232, 125, 71}, 8, {7, 65000}},
      {7, {0, 0, 224, 64, 0, 232, 125, 71}, 8, {7, 65000}},
      {6, {0, 0, 0, 0, 0, 0, 28, 64, 0, 0, 0, 0, 0, 189, 239, 64}, 16, {7, 65000}},
      {7, {0, 0, 0, 0, 0, 0, 28, 64, 0, 0, 0, 0, 0, 189, 239, 64}, 16, {7, 65000}},
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    nxr_dataset dataset;
    int32_t tokens[2];
    open_two_tokens(&types[i], &dataset);
    nxr_dataset_read(&dataset, 0, 0, 2, tokens);
    assert_int_equal(tokens[0], types[i].expected[0]);
    assert_int_equal(tokens[1], types[i].expected[1]);
    nxr_dataset_close(&dataset);
  }
}

static void reports_tokens_that_are_none(void **state) {
  (void)state;
  static const token_type types[] = {
      {2, {7, 128}, 2, {0}},
      {3, {7, 1, 255, 255}, 4, {0}},
      {4, {7, 1, 1, 0, 0, 0, 0, 128}, 8, {0}},
      {5, {7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0}, 16, {0}},
      {6, {0, 0, 224, 64, 0, 0, 240, 64}, 8, {0}},
      {7, {0, 0, 0, 0, 0, 0, 28, 64, 0, 0, 0, 0, 0, 0, 248, 127}, 16, {0}},
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    nxr_dataset dataset;
    nxr_dataset_summary summary;
    nxr_fault fault = {""};
    open_two_tokens(&types[i], &dataset);
    assert_false(nxr_dataset_summarize(&dataset, &summary, &fault));
    assert_non_null(strstr(fault.text, "token 1 of document 0"));
    nxr_dataset_close(&dataset);
  }
}

static void refuses_every_truncation(void **state) {
  (void)state;
  uint8_t index[512];
  size_t n_bytes = dataset_files_index(&good, index);
  temporary_write("set.bin", good_tokens, sizeof good_tokens);
  for (size_t n = 0; n < n_bytes; n++) {
    temporary_write("set.idx", index, n);
    refuses("set.idx");
  }
  temporary_write("set.idx", index, n_bytes + 1);
  refuses("cut short or damaged");
  temporary_write("set.idx", index, n_bytes);
  for (size_t n = 0; n < sizeof good_tokens; n++) {
    temporary_write("set.bin", good_tokens, n);
    refuses("cut short");
  }
}

static void survives_every_changed_bit(void **state) {
  (void)state;
  uint8_t index[512];
  size_t n_bytes = dataset_files_index(&good, index);
  temporary_write("set.bin", good_tokens, sizeof good_tokens);
  for (size_t bit = 0; bit < 8 * n_bytes; bit++) {
    index[bit / 8] ^= (uint8_t)(1 << bit % 8);
    temporary_write("set.idx", index, n_bytes);
    exercise();
    index[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
}

static void refuses_damage(void **state) {
  (void)state;
  const int32_t negative[] = {2, 1, -1, 3, 1}, longer[] = {2, 1, 0, 3, 2};
  const int64_t below[] = {0, 4, 6, -6, 12}, beyond[] = {0, 4, 6, 6, 13}, far[] = {0, 4, 6, 6, INT64_MAX};
  const int64_t late[] = {1, 2, 3, 5}, short_of[] = {0, 2, 3, 4}, falling[] = {0, 3, 2, 5},
                past[] = {0, 2, 6, 5};
  const dataset_files damaged[] = {
      {8, 5, 4, negative, good_pointers, good_borders}, {8, 5, 4, longer, good_pointers, good_borders},
      {8, 5, 4, good_sizes, below, good_borders},       {8, 5, 4, good_sizes, beyond, good_borders},
      {8, 5, 4, good_sizes, far, good_borders},         {8, 5, 4, good_sizes, good_pointers, late},
      {8, 5, 4, good_sizes, good_pointers, short_of},   {8, 5, 4, good_sizes, good_pointers, falling},
      {8, 5, 4, good_sizes, good_pointers, past},       {4, 5, 4, good_sizes, good_pointers, good_borders},
  };
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    write_dataset(&damaged[i], good_tokens, sizeof good_tokens);
    refuses("is damaged");
  }
  const uint8_t no_types[] = {0, 9, 255};
  for (size_t i = 0; i < sizeof no_types; i++) {
    write_dataset(&(dataset_files){no_types[i], 5, 4, good_sizes, good_pointers, good_borders}, good_tokens,
                  sizeof good_tokens);
    refuses("no type of tokens");
  }
  uint8_t index[512];
  size_t n_bytes = dataset_files_index(&good, index);
  index[9] = 2;
  temporary_write("set.idx", index, n_bytes);
  refuses("version 2");
  index[9] = 1, index[0] = 'm';
  temporary_write("set.idx", index, n_bytes);
  refuses("is not the index");
}

static void reports_missing_files(void **state) {
  (void)state;
  write_dataset(&good, good_tokens, sizeof good_tokens);
  remove(temporary_path(1, "set.bin"));
  refuses("set.bin: No such file");
  mkdir(temporary_path(1, "set.bin"), 0700);
  refuses("it is no file");
  rmdir(temporary_path(1, "set.bin"));
  remove(temporary_path(1, "set.idx"));
  refuses("nxdata build");
}

/* What was checked stays, whatever is written to the index meanwhile. */
static void survives_an_index_that_is_rewritten(void **state) {
  (void)state;
  nxr_dataset dataset;
  nxr_fault fault;
  int32_t tokens[4];
  size_t n_bytes;
  write_dataset(&good, good_tokens, sizeof good_tokens);
  assert_true(open_set(&dataset, &fault));
  uint8_t *index = temporary_read("set.idx", &n_bytes);
  FILE *file = fopen(temporary_path(1, "set.idx"), "r+b");
  memset(index, 0x7f, n_bytes);
  assert_int_equal(fwrite(index, 1, n_bytes, file), n_bytes);
  fclose(file);
  nxr_dataset_read(&dataset, 2, 0, 4, tokens);
  assert_int_equal(tokens[0], 13);
  assert_int_equal(tokens[3], 65535);
  assert_int_equal(nxr_dataset_document_tokens(&dataset, 0), 3);
  nxr_dataset_close(&dataset);
  free(index);
}

static nxr_fingerprint fingerprint(uint64_t n_documents) {
  nxr_dataset dataset;
  nxr_fault fault;
  assert_true(open_set(&dataset, &fault));
  nxr_fingerprint is = nxr_fingerprint_of(&dataset, n_documents, 0);
  nxr_dataset_close(&dataset);
  return is;
}

/* Of small data every bit counts; of large data its size, its ends and samples between. */
static void tells_datasets_apart(void **state) {
  (void)state;
  write_dataset(&good, good_tokens, sizeof good_tokens);
  nxr_fingerprint is = fingerprint(3), same = fingerprint(3), fewer = fingerprint(2);
  assert_true(nxr_fingerprint_equal(&is, &same));
  assert_false(nxr_fingerprint_equal(&is, &fewer));
  for (size_t token = 0; token < 7; token++) {
    uint16_t tokens[7];
    memcpy(tokens, good_tokens, sizeof tokens);
    tokens[token] ^= 1;
    write_dataset(&good, tokens, sizeof tokens);
    nxr_fingerprint other = fingerprint(3);
    assert_false(nxr_fingerprint_equal(&is, &other));
  }
  const int64_t borders[] = {0, 2, 2, 5};
  write_dataset(&(dataset_files){8, 5, 4, good_sizes, good_pointers, borders}, good_tokens,
                sizeof good_tokens);
  nxr_fingerprint other = fingerprint(3);
  assert_false(nxr_fingerprint_equal(&is, &other));

  enum { LARGE = 20 << 20 };
  static uint8_t large[LARGE];
  write_dataset(&good, large, sizeof large);
  is = fingerprint(3);
  const size_t changed[] = {0, LARGE - 1, (LARGE - 4096) / 1023 * 500 + 2000};
  for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
    large[changed[i]] = 1;
    write_dataset(&good, large, sizeof large);
    other = fingerprint(3);
    assert_false(nxr_fingerprint_equal(&is, &other));
    large[changed[i]] = 0;
  }
}

/* What the test's own process cannot survive: a child reads on, and says which file. */
static void names_a_file_that_was_cut(void **state) {
  (void)state;
  write_dataset(&good, good_tokens, sizeof good_tokens);
  pid_t child = fork();
  if (child == 0) {
    nxr_dataset dataset;
    nxr_fault fault;
    int32_t token;
    if (!open_set(&dataset, &fault) || freopen(temporary_path(1, "said"), "w", stderr) == NULL) _exit(2);
    nxr_mapping_guard("reader", 0);
    if (truncate(temporary_path(1, "set.bin"), 0) != 0) _exit(3);
    nxr_dataset_read(&dataset, 0, 0, 1, &token);
    _exit(0);
  }
  int status = 0;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 1);
  size_t n_bytes;
  char *said = (char *)temporary_read("said", &n_bytes);
  said[n_bytes] = '\0';
  assert_non_null(strstr(said, "reader: "));
  assert_non_null(strstr(said, "set.bin was cut short"));
  free(said);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_documents),
      cmocka_unit_test(reads_every_type),
      cmocka_unit_test(reports_tokens_that_are_none),
      cmocka_unit_test(refuses_every_truncation),
      cmocka_unit_test(survives_every_changed_bit),
      cmocka_unit_test(refuses_damage),
      cmocka_unit_test(reports_missing_files),
      cmocka_unit_test(survives_an_index_that_is_rewritten),
      cmocka_unit_test(tells_datasets_apart),
      cmocka_unit_test(names_a_file_that_was_cut),
  };
  return cmocka_run_group_tests_name("dataset", tests, temporary_make, temporary_remove);
}
