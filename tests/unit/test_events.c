/* SPDX-License-Identifier: Apache-2.0 */
/* Event files: what TensorBoard's reader would find in them, record by record. */
#include "runtime/logs/events.pb-c.h"
#include "runtime/logs/events_file.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/temporary.h"

#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

/* TFRecord's definition once more: a CRC-32C, rotated and added to. */
static uint32_t masked(const void *bytes, size_t n_bytes) {
  uint32_t crc = ~crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)n_bytes, ~0u);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static NxrTb__Event *read_event(FILE *file) {
  uint64_t length;
  uint32_t of_length, of_bytes;
  uint8_t bytes[4096];
  if (fread(&length, sizeof length, 1, file) != 1) return NULL;
  assert_int_equal(fread(&of_length, sizeof of_length, 1, file), 1);
  assert_int_equal(of_length, masked(&length, sizeof length));
  assert_in_range(length, 1, sizeof bytes);
  assert_int_equal(fread(bytes, 1, length, file), length);
  assert_int_equal(fread(&of_bytes, sizeof of_bytes, 1, file), 1);
  assert_int_equal(of_bytes, masked(bytes, length));
  NxrTb__Event *event = nxr_tb__event__unpack(NULL, length, bytes);
  assert_non_null(event);
  return event;
}

static FILE *write_two_steps(const char *name, uint64_t done) {
  static nxr_events_file events;
  nxr_fault fault = {""};
  if (!nxr_events_open(&events, temporary_path(0, name), done, &fault)) fail_msg("%s", fault.text);
  for (uint64_t step = done + 1; step <= done + 2; step++) {
    nxr_points_add(&events.points, "train", "loss", 0.5 * (double)step);
    nxr_points_add(&events.points, "train", "lr", 1e-3);
    nxr_events_write(&events, step);
  }
  FILE *file = fopen(events.path, "rb");
  assert_non_null(file);
  nxr_events_close(&events);
  return file;
}

static void next_is_step(FILE *file, int64_t step) {
  NxrTb__Event *event = read_event(file);
  assert_int_equal(event->step, step);
  assert_int_equal(event->what_case, NXR_TB__EVENT__WHAT_SUMMARY);
  assert_int_equal(event->summary->n_value, 2);
  assert_string_equal(event->summary->value[0]->tag, "train/loss");
  assert_true(event->summary->value[0]->simple_value == 0.5F * (float)step);
  assert_string_equal(event->summary->value[1]->tag, "train/lr");
  assert_true(event->wall_time > 1e9);
  nxr_tb__event__free_unpacked(event, NULL);
}

static void next_is_version(FILE *file) {
  NxrTb__Event *event = read_event(file);
  assert_int_equal(event->what_case, NXR_TB__EVENT__WHAT_FILE_VERSION);
  assert_string_equal(event->file_version, "brain.Event:2");
  nxr_tb__event__free_unpacked(event, NULL);
}

static void writes_scalars_by_tag(void **state) {
  (void)state;
  FILE *file = write_two_steps("curves", 0);
  next_is_version(file);
  next_is_step(file, 1);
  next_is_step(file, 2);
  assert_null(read_event(file));
  fclose(file);
}

/* TensorBoard drops points of this step and later ones that earlier files have. */
static void a_resumed_run_says_where_it_begins(void **state) {
  (void)state;
  FILE *file = write_two_steps("again", 7);
  next_is_version(file);
  NxrTb__Event *event = read_event(file);
  assert_int_equal(event->what_case, NXR_TB__EVENT__WHAT_SESSION_LOG);
  assert_int_equal(event->session_log->status, NXR_TB__SESSION_LOG__STATUS__START);
  assert_int_equal(event->step, 8);
  nxr_tb__event__free_unpacked(event, NULL);
  next_is_step(file, 8);
  next_is_step(file, 9);
  fclose(file);
}

static void names_a_folder_that_cannot_be_made(void **state) {
  (void)state;
  nxr_events_file events;
  nxr_fault fault = {""};
  assert_false(nxr_events_open(&events, "/proc/none/curves", 0, &fault));
  assert_non_null(strstr(fault.text, "/proc/none/curves, the folder for TensorBoard"));
}

/* The check value of CRC-32C (RFC 3720, B.4: 32 bytes of zeros). */
static void the_library_has_the_right_polynomial(void **state) {
  (void)state;
  unsigned char zeros[32] = {0};
  assert_int_equal(~crc32_iscsi(zeros, sizeof zeros, ~0u), 0x8a9136aau);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_library_has_the_right_polynomial),
      cmocka_unit_test(writes_scalars_by_tag),
      cmocka_unit_test(a_resumed_run_says_where_it_begins),
      cmocka_unit_test(names_a_folder_that_cannot_be_made),
  };
  return cmocka_run_group_tests_name("events", tests, temporary_make, temporary_remove);
}
