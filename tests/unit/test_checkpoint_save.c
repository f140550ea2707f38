/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that are written in the background: the same files, whatever happens to the state meanwhile;
 * shared out evenly; with checksums that need no order; and what becomes of one that fails. */
#include "runtime/checkpoint/checkpoint_save.h"
#include "runtime/checkpoint/checkpoint_sum.h"
#include "runtime/checkpoint/checkpoint_write.h"
#include "tests/unit/checkpoint_case.h"

#include <signal.h>
#include <sys/resource.h>

/* Fills what it holds with other numbers as soon as the save has begun. */
static bool save_aside(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  nxr_saver *saver;
  uint32_t later = 77;
  bool good = nxr_saver_open(&checkpoint, true, &saver, &rank->fault) &&
              nxr_saver_begin(saver, ((request *)data)->step, false, &rank->fault);
  if (good) {
    fill(rank, &later);
    good = nxr_saver_finish(saver, &rank->fault) && nxr_saver_newest(saver) == ((request *)data)->step;
  }
  nxr_saver_close(saver);
  return good;
}

static void same_files(void) {
  char command[1200];
  snprintf(command, sizeof command,
           "cd %s/run/checkpoints && for f in step-000001/*.safetensors; do cmp $f step-000002/${f#*/} || "
           "exit 1; done",
           temporary_folder);
  assert_int_equal(system(command), 0);
}

static void writes_what_was_there(void **state) {
  (void)state;
  for (uint32_t i = 0; i < N_SHAPES; i++) {
    remove_run();
    mesh_ranks *all = open_mesh(&shapes[i], 1);
    must(all, prepare, &(request){0});
    must(all, save, &(request){.step = 1});
    must(all, save_aside, &(request){.step = 2});
    same_files();
    request from = {.resume = true};
    must(all, prepare, &from);
    must(all, resume, &from);
    assert_int_equal(from.step, 2);
    holds(all, 1);
    mesh_ranks_close(all);
  }
}

/* ---- who writes what ---- */

typedef struct shares {
  uint64_t bytes[MESH_MAX_RANKS];
} shares;

static bool count_share(mesh_rank *rank, void *data) {
  nxr_tensors tensors;
  bool good =
      nxr_tensors_open(&rank->pieces, &tensors, &rank->fault) && nxr_tensors_share(&tensors, &rank->fault);
  uint64_t *bytes = &((shares *)data)->bytes[rank->world.rank];
  *bytes = nxr_part_take(&tensors, NXR_WEIGHTS, 0, NULL);
  for (uint32_t i = 0; i < tensors.n_states; i++)
    *bytes += nxr_part_take(&tensors, (nxr_content)(NXR_STATES + i), 0, NULL);
  nxr_tensors_close(&tensors);
  return good;
}

/* 7 x 5, 4 x 6, 6 x 5, 6 and 5 numbers in fp32, with or without two moments: no rank has more than the mean
 * and the largest tensor. */
static void shares_evenly(void **state) {
  (void)state;
  for (uint32_t i = 0; i < N_SHAPES; i++) {
    mesh_ranks *all = open_mesh(&shapes[i], 1);
    shares has = {{0}};
    uint64_t total = 0, most = 0, copies = shapes[i].moments ? 3 : 1;
    assert_true(mesh_run(all, count_share, &has));
    for (uint32_t rank = 0; rank < all->n; rank++) {
      total += has.bytes[rank];
      if (has.bytes[rank] > most) most = has.bytes[rank];
    }
    assert_int_equal(total, copies * 4 * (35 + 24 + 30 + 6 + 5));
    assert_true(most <= total / all->n + copies * 4 * 35);
    mesh_ranks_close(all);
  }
}

/* ---- checksums ---- */

enum { FILE_BYTES = 5003 };

static void fill_bytes(uint8_t *bytes) {
  uint32_t x = 1;
  for (int i = 0; i < FILE_BYTES; i++) bytes[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
}

static nxr_sum sum_of(const uint8_t *bytes) {
  nxr_sum sum = {0};
  nxr_sum_add(&sum, bytes, FILE_BYTES, 0);
  return sum;
}

/* Parts of any length, from the last to the first. */
static void sums_have_no_order(void **state) {
  (void)state;
  uint8_t bytes[FILE_BYTES];
  fill_bytes(bytes);
  const nxr_sum whole = sum_of(bytes);
  for (uint64_t length = 1; length < 40; length++) {
    nxr_sum parts = {0};
    for (uint64_t end = FILE_BYTES; end > 0;) {
      uint64_t n = end < length ? end : length;
      end -= n;
      nxr_sum_add(&parts, bytes + end, n, end);
    }
    assert_true(nxr_sum_equal(&parts, &whole));
  }
  char text[NXR_SUM_TEXT_BYTES];
  nxr_sum again;
  nxr_sum_text(&whole, text);
  assert_string_equal(text, "08821d6497a1e10d0d573b6b7e849605"); /* as checkpoints on disks have it */
  assert_true(nxr_sum_parse(text, &again) && nxr_sum_equal(&again, &whole));
  text[3] = 'x';
  assert_false(nxr_sum_parse(text, &again));
  assert_false(nxr_sum_parse("12", &again));
  assert_false(nxr_sum_parse(NULL, &again));
}

static void sums_find_damage(void **state) {
  (void)state;
  uint8_t bytes[FILE_BYTES];
  fill_bytes(bytes);
  const nxr_sum whole = sum_of(bytes);
  for (int i = 0; i < FILE_BYTES; i += 13) {
    bytes[i] ^= (uint8_t)(1u << i % 8);
    nxr_sum changed = sum_of(bytes);
    assert_false(nxr_sum_equal(&changed, &whole));
    bytes[i] ^= (uint8_t)(1u << i % 8);
  }
  for (int distance = 1; distance < 200; distance++) { /* two words that have changed places */
    uint8_t word[8];
    memcpy(word, bytes, sizeof word);
    memcpy(bytes, bytes + 8 * distance, sizeof word);
    memcpy(bytes + 8 * distance, word, sizeof word);
    nxr_sum changed = sum_of(bytes);
    assert_false(nxr_sum_equal(&changed, &whole));
    memcpy(bytes + 8 * distance, bytes, sizeof word);
    memcpy(bytes, word, sizeof word);
  }
}

/* ---- failures ---- */

static void limit_files(rlim_t n_bytes) {
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = n_bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void fails_as_a_whole(void **state) {
  (void)state;
  signal(SIGXFSZ, SIG_IGN);
  for (uint32_t i = 0; i < N_SHAPES; i += 3) {
    mesh_ranks *all = make_run(&shapes[i], 1);
    limit_files(600);
    must_fail(all, save_aside, &(request){.step = 2}, "cannot write");
    limit_files(RLIM_INFINITY);
    assert_true(temporary_exists("run/checkpoints/step-000001/manifest.json"));
    assert_false(temporary_exists("run/checkpoints/step-000002"));
    assert_false(temporary_exists("run/checkpoints/step-000002.tmp"));
    must(all, save_aside, &(request){.step = 2});
    assert_true(temporary_exists("run/checkpoints/step-000002/manifest.json"));
    mesh_ranks_close(all);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(writes_what_was_there), cmocka_unit_test(shares_evenly),
                                     cmocka_unit_test(sums_have_no_order), cmocka_unit_test(sums_find_damage),
                                     cmocka_unit_test(fails_as_a_whole)};
  return cmocka_run_group_tests_name("checkpoint_save", tests, temporary_make, temporary_remove);
}
