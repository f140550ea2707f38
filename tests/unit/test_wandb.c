/* SPDX-License-Identifier: Apache-2.0 */
/* Offline runs for Weights & Biases: what its client's reader would find, block by block and record by
 * record. tests/parity/check_wandb.py has the client itself upload one. */
#include "runtime/logs/wandb.pb-c.h"
#include "runtime/logs/wandb_file.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/temporary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The definition of CRC-32, bit by bit. */
static uint32_t add_to_crc(uint32_t crc, const uint8_t *bytes, size_t n_bytes) {
  crc = ~crc;
  for (size_t i = 0; i < n_bytes; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

/* A piece in `bytes`, of at most a block; its type, or 0 behind the last. */
static uint8_t read_piece(FILE *file, uint8_t *bytes, uint16_t *n_bytes) {
  uint32_t crc;
  uint8_t type;
  long left = 32768 - ftell(file) % 32768;
  if (left < 7)
    for (; left > 0; left--) assert_int_equal(fgetc(file), 0);
  if (fread(&crc, sizeof crc, 1, file) != 1) return 0;
  assert_int_equal(fread(n_bytes, sizeof *n_bytes, 1, file), 1);
  assert_int_equal(fread(&type, 1, 1, file), 1);
  assert_true(ftell(file) % 32768 == 0 || ftell(file) % 32768 + *n_bytes <= 32768);
  assert_int_equal(fread(bytes, 1, *n_bytes, file), *n_bytes);
  assert_int_equal(crc, add_to_crc(add_to_crc(0, &type, 1), bytes, *n_bytes));
  return type;
}

/* NULL behind the last. */
static NxrWb__Record *read_record(FILE *file) {
  static uint8_t bytes[1 << 18];
  size_t n_bytes = 0;
  for (bool begun = false;; begun = true) {
    uint16_t n;
    uint8_t type = read_piece(file, bytes + n_bytes, &n);
    if (type == 0 && !begun) return NULL;
    assert_true(begun ? type == 3 || type == 4 : type == 1 || type == 2);
    n_bytes += n;
    if (type == 1 || type == 4) break;
  }
  NxrWb__Record *record = nxr_wb__record__unpack(NULL, n_bytes, bytes);
  assert_non_null(record);
  return record;
}

/* ---- a plan of which the file says something ---- */

enum { BLOCK = 32768, LONG = 70000 }; /* a setting that takes more than two blocks */
static char texts[LONG + 800];
static nx_setting_record settings[3];
static nx_run_names names;
static nx_plan plan;

static uint32_t n_text_bytes;

static uint32_t add_text(const char *text) {
  uint32_t at = n_text_bytes;
  strcpy(texts + at, text);
  n_text_bytes += (uint32_t)strlen(text) + 1;
  return at;
}

/* One of its settings is a text of `n_words` bytes, its quotes among them. */
static void make_plan(const char *folder, size_t n_words) {
  static char words[LONG + 1];
  snprintf(words, sizeof words, "\"%0*d\"", (int)n_words - 2, 0);
  n_text_bytes = 1;
  settings[0] = (nx_setting_record){.path = add_text("optimizer.lr"), .value = add_text("0.5")};
  settings[1] = (nx_setting_record){.path = add_text("optimizer.name"), .value = add_text("\"adamw\"")};
  settings[2] = (nx_setting_record){.path = add_text("data.path"), .value = add_text(words)};
  names = (nx_run_names){.wandb = add_text(folder), .wandb_every = 1, .wandb_project = add_text("p"),
                         .wandb_name = add_text("a run"), .wandb_tags = add_text("x\ny z")};
  plan = (nx_plan){.settings = settings, .run_names = &names, .provenance_text = texts};
  plan.n[NX_SECTION_SETTINGS] = 3;
}

/* Steps `done` + 1 and later; the file, behind its first bytes. */
static FILE *write_steps(uint64_t done, uint64_t n_steps, char path[512]) {
  static nxr_wandb_file wandb;
  nxr_fault fault = {""};
  if (!nxr_wandb_open(&wandb, &plan, temporary_folder, done, &fault)) fail_msg("%s", fault.text);
  for (uint64_t step = done + 1; step <= done + n_steps; step++) {
    nxr_wandb_step(&wandb, step);
    nxr_points_add(&wandb.points, "train", "loss", step == 2 ? NAN : 0.5 * (double)step);
    nxr_wandb_step(&wandb, step); /* of an evaluation behind it */
    nxr_points_add(&wandb.points, "held", "loss", 0.1);
  }
  snprintf(path, 512, "%s", wandb.path);
  nxr_wandb_close(&wandb, 3);
  FILE *file = fopen(path, "rb");
  uint8_t beginning[7];
  assert_int_equal(fread(beginning, 1, 7, file), 7);
  assert_memory_equal(beginning, ":W&B\xe1\xbe\0", 7);
  return file;
}

static void next_is_run(FILE *file, bool resumes, size_t n_words, char id[16]) {
  NxrWb__Record *record = read_record(file);
  assert_int_equal(record->record_case, NXR_WB__RECORD__RECORD_HEADER);
  nxr_wb__record__free_unpacked(record, NULL);
  record = read_record(file);
  assert_int_equal(record->num, 2);
  assert_int_equal(record->record_case, NXR_WB__RECORD__RECORD_RUN);
  const NxrWb__Run *run = record->run;
  assert_string_equal(run->project, "p");
  assert_string_equal(run->display_name, "a run");
  assert_string_equal(run->entity, "");
  assert_int_equal(run->n_tags, 2);
  assert_string_equal(run->tags[1], "y z");
  assert_true(run->resume == resumes);
  assert_int_equal(run->config->n_update, 2);
  assert_string_equal(run->config->update[0]->key, "optimizer");
  assert_string_equal(run->config->update[0]->value_json, "{\"lr\":0.5,\"name\":\"adamw\"}");
  assert_int_equal(strlen(run->config->update[1]->value_json), n_words + strlen("{\"path\":}"));
  snprintf(id, 16, "%s", run->run_id);
  nxr_wb__record__free_unpacked(record, NULL);
}

static void next_is_step(FILE *file, int64_t step) {
  char loss[16];
  snprintf(loss, sizeof loss, step == 2 ? "NaN" : "%g", 0.5 * (double)step);
  NxrWb__Record *record = read_record(file);
  assert_int_equal(record->record_case, NXR_WB__RECORD__RECORD_HISTORY);
  assert_int_equal(record->history->step->num, step);
  assert_int_equal(record->history->n_item, 5);
  assert_string_equal(record->history->item[0]->key, "train/loss");
  assert_string_equal(record->history->item[0]->value_json, loss);
  assert_string_equal(record->history->item[1]->key, "held/loss");
  assert_string_equal(record->history->item[2]->key, "_step");
  nxr_wb__record__free_unpacked(record, NULL);
  record = read_record(file);
  assert_int_equal(record->record_case, NXR_WB__RECORD__RECORD_SUMMARY);
  assert_string_equal(record->summary->update[0]->value_json, loss);
  nxr_wb__record__free_unpacked(record, NULL);
}

static void has_a_row_for_each_step(void **state) {
  (void)state;
  char path[512], id[16], again[16], other[16];
  make_plan(temporary_path(0, "curves"), LONG);
  FILE *file = write_steps(0, 400, path);
  next_is_run(file, false, LONG, id);
  assert_int_equal(strlen(id), 8);
  assert_non_null(strstr(path, id));
  for (int64_t step = 1; step <= 400; step++) next_is_step(file, step);
  NxrWb__Record *record = read_record(file);
  assert_int_equal(record->record_case, NXR_WB__RECORD__RECORD_EXIT);
  assert_int_equal(record->exit->exit_code, 3);
  nxr_wb__record__free_unpacked(record, NULL);
  assert_null(read_record(file));
  fclose(file);
  file = write_steps(400, 1, path); /* in the same second */
  next_is_run(file, true, LONG, again);
  assert_string_equal(id, again);
  next_is_step(file, 401);
  fclose(file);
  file = write_steps(0, 1, path); /* a run that begins anew */
  next_is_run(file, false, LONG, other);
  assert_string_not_equal(id, other);
  fclose(file);
}

/* Wherever a record begins in a block: also where only a piece's header has room. */
static void goes_on_in_the_next_block(void **state) {
  (void)state;
  enum { N_STEPS = 8, SHORTEST_RECORD = 100 };
  char path[512], id[16];
  for (size_t n_words = BLOCK - 1000; n_words < BLOCK - 1000 + 2 * SHORTEST_RECORD; n_words++) {
    make_plan(temporary_path(0, "blocks"), n_words);
    FILE *file = write_steps(0, N_STEPS, path);
    next_is_run(file, false, n_words, id);
    for (int64_t step = 1; step <= N_STEPS; step++) next_is_step(file, step);
    fclose(file);
    remove(path);
  }
}

static void names_a_folder_that_cannot_be_made(void **state) {
  (void)state;
  nxr_wandb_file wandb;
  nxr_fault fault = {""};
  make_plan("/proc/none", LONG);
  assert_false(nxr_wandb_open(&wandb, &plan, temporary_folder, 0, &fault));
  assert_non_null(strstr(fault.text, "cannot make /proc/none, a folder for Weights & Biases: "));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(has_a_row_for_each_step),
      cmocka_unit_test(goes_on_in_the_next_block),
      cmocka_unit_test(names_a_folder_that_cannot_be_made),
  };
  return cmocka_run_group_tests_name("wandb", tests, temporary_make, temporary_remove);
}
