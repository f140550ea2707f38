/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics file: whole lines, read back exactly, continued where the run is; nothing else is lost. */
#include "runtime/logs/metrics.h"
#include "schema/plan_check.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/temporary.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const double odd_numbers[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 2e-6, 4096, -0.0};

static void report_step(nxr_metrics *metrics, uint64_t step) {
  nxr_metrics_row row = {.step = step, .seconds = 1};
  nxr_metrics_add(&row, "loss", odd_numbers[step % 7]);
  nxr_metrics_add(&row, "lr", 1e-3);
  nxr_metrics_add(&row, "grad_norm", step == 5 ? NAN : 2.5);
  nxr_metrics_add(&row, "tokens_per_s", INFINITY);
  nxr_metrics_add(&row, "memory_bytes", 1099511627776.0);
  nxr_metrics_report(metrics, &row);
}

/* Reports steps first … last; nothing is printed, since none is a multiple of log_every. */
static void report_steps(const char *name, uint64_t done, uint64_t first, uint64_t last) {
  nxr_metrics metrics = {.log_every = 1000000, .n_steps = 1000000};
  nxr_fault fault = {""};
  if (!nxr_metrics_open(&metrics, temporary_path(0, name), done, &fault)) fail_msg("%s", fault.text);
  for (uint64_t step = first; step <= last; step++)
    report_step(&metrics, step);
  nxr_metrics_close(&metrics, 0);
}

/* The file has the steps 1 … last, each once. */
static void has_steps(const char *name, uint64_t last) {
  FILE *file = fopen(temporary_path(1, name), "r");
  assert_non_null(file);
  char line[1024];
  uint64_t step = 0;
  while (fgets(line, sizeof line, file)) {
    json_t *row = json_loads(line, 0, NULL);
    assert_non_null(row);
    assert_int_equal(json_integer_value(json_object_get(row, "step")), ++step);
    double loss = odd_numbers[step % 7];
    assert_true(json_number_value(json_object_get(row, "loss")) == loss);
    assert_true(json_number_value(json_object_get(row, "lr")) == 1e-3);
    assert_int_equal(json_is_null(json_object_get(row, "grad_norm")), step == 5);
    assert_true(json_is_null(json_object_get(row, "tokens_per_s")));
    assert_int_equal(json_integer_value(json_object_get(row, "memory_bytes")), INT64_C(1) << 40);
    json_decref(row);
  }
  assert_int_equal(step, last);
  fclose(file);
}

static void writes_one_object_a_step(void **state) {
  (void)state;
  report_steps("new", 0, 1, 9);
  has_steps("new", 9);
}

/* A line of a set is printed in any case; here it would stand among the results. */
static void report_in_silence(nxr_metrics *metrics, const nxr_metrics_row *row) {
  fflush(stdout);
  int results = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
  assert_true(results >= 0 && nowhere >= 0);
  dup2(nowhere, STDOUT_FILENO);
  nxr_metrics_report(metrics, row);
  fflush(stdout);
  dup2(results, STDOUT_FILENO);
  close(results);
  close(nowhere);
}

/* The name of a set is the user's. */
static void a_set_may_have_any_name(void **state) {
  (void)state;
  static const char *const names[] = {"a \"b\" \\ c", "tab\there", "\xE2\x82\xAC", "\x01"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    nxr_metrics metrics = {.log_every = 1, .n_steps = 1};
    nxr_metrics_row row = {.step = 1, .set = names[i], .seconds = 1};
    nxr_fault fault = {""};
    char name[16];
    snprintf(name, sizeof name, "named%zu", i);
    assert_true(nxr_metrics_open(&metrics, temporary_path(0, name), 0, &fault));
    nxr_metrics_add(&row, "loss", 1);
    report_in_silence(&metrics, &row);
    nxr_metrics_close(&metrics, 0);
    json_t *read = json_load_file(temporary_path(1, name), 0, NULL);
    assert_non_null(read);
    assert_string_equal(json_string_value(json_object_get(read, "set")), names[i]);
    json_decref(read);
  }
}

static void sets_an_earlier_run_aside(void **state) {
  (void)state;
  report_steps("again", 0, 1, 3);
  report_steps("again", 0, 1, 2);
  report_steps("again", 0, 1, 1);
  has_steps("again.1", 3);
  has_steps("again.2", 2);
  has_steps("again", 1);
}

static void continues_where_the_run_is(void **state) {
  (void)state;
  report_steps("on", 0, 1, 8);
  FILE *file = fopen(temporary_path(0, "on"), "a");
  fputs("{\"step\":9,\"lo", file); /* what a killed run may leave */
  fclose(file);
  report_steps("on", 6, 7, 7);
  has_steps("on", 7);
  report_steps("on", 7, 8, 8);
  has_steps("on", 8);
  assert_false(temporary_exists("on.1"));
  report_steps("late", 4, 5, 5); /* a file that is not there yet */
  assert_true(temporary_exists("late"));
}

typedef struct foreign {
  const char *text;
  size_t n_bytes;
} foreign;

/* A run that begins and one that goes on leave a file that is not theirs as it is. */
static void leaves(const foreign *file, uint64_t done) {
  nxr_metrics metrics = {.log_every = 1};
  nxr_fault fault = {""};
  temporary_write("notes", file->text, file->n_bytes);
  assert_false(nxr_metrics_open(&metrics, temporary_path(0, "notes"), done, &fault));
  assert_non_null(strstr(fault.text, "no file of metrics"));
  nxr_metrics_close(&metrics, 0);
  size_t n_bytes;
  uint8_t *left = temporary_read("notes", &n_bytes);
  assert_int_equal(n_bytes, file->n_bytes);
  assert_memory_equal(left, file->text, n_bytes);
  free(left);
  assert_false(temporary_exists("notes.1"));
}

static void refuses_what_is_not_its_own(void **state) {
  (void)state;
  static const char weights[1024] = "\0\1\0\2", half[1024] = "{\"step\":1";
  const foreign files[] = {
#define TEXT(text) {text, sizeof text - 1}
      TEXT("model:\n  layers: 4\n"),
      TEXT("a file without an end of its line"),
      TEXT("\0"),
      TEXT("{\"step\":1}\nand something else\n"),
      TEXT("{\"step\":1}\nand something else"),
      TEXT("{\"step\":1}\n{\"step\":9}\nafter the last step\n"),
      TEXT("{\"step\":1}\n\n"),
      TEXT("{\"step\":1,\n"),
#undef TEXT
      {weights, sizeof weights},
      {half, sizeof half},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    leaves(&files[i], 0);
    leaves(&files[i], 3);
  }
  nxr_metrics metrics = {.log_every = 1};
  nxr_fault fault = {""};
  assert_false(nxr_metrics_open(&metrics, temporary_path(0, "none/metrics"), 0, &fault));
  assert_non_null(strstr(fault.text, "cannot write"));
  nxr_metrics_close(&metrics, 0);
}

/* Lines that find no room are missing, and the ones before and after are whole. */
static void survives_a_full_disk(void **state) {
  (void)state;
  struct rlimit before, limit;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  for (rlim_t most = 300; most < 420; most += 7) {
    remove(temporary_path(2, "full"));
    limit = (struct rlimit){most, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    report_steps("full", 0, 1, 6);
    setrlimit(RLIMIT_FSIZE, &before);
    FILE *file = fopen(temporary_path(1, "full"), "r");
    char line[1024];
    uint64_t n_lines = 0;
    json_int_t last = 0;
    while (fgets(line, sizeof line, file)) {
      json_t *row = json_loads(line, 0, NULL);
      assert_non_null(row);
      assert_int_equal(line[strlen(line) - 1], '\n');
      assert_true(json_integer_value(json_object_get(row, "step")) > last);
      last = json_integer_value(json_object_get(row, "step"));
      json_decref(row);
      n_lines++;
    }
    fclose(file);
    assert_in_range(n_lines, 2, 5);
  }
  signal(SIGXFSZ, SIG_DFL);
}

/* What a plan's strings may do to a terminal. */
static void messages_have_no_control_characters(void **state) {
  (void)state;
  nxr_fault fault = {""};
  nxr_fault_set(&fault, "cannot read %s\n  give another", "a\x1b[31mb\x7f\r\xc3\xa9");
  assert_string_equal(fault.text, "cannot read a?[31mb??\xc3\xa9\n  give another");
  char printed[64] = "", marks[] = "c\xe2\x80\xae"
                                   "d\xc2\x9b"
                                   "2J\xff";
  FILE *out = fmemopen(printed, sizeof printed, "w");
  nxr_print(out, "nxrun: the folder %s has a run\n", marks);
  fclose(out);
  assert_string_equal(printed, "nxrun: the folder c?d?2J? has a run\n");
  nx_fault of_plan;
  nx_fault_set(&of_plan, 0, "the pattern %s", marks);
  assert_string_equal(of_plan.text, "the pattern c?d?2J?");
}

/* A line finds a file under the name, whatever became of the one before. */
static void is_made_again_where_it_was_removed(void **state) {
  (void)state;
  nxr_metrics metrics = {.log_every = 1000000, .n_steps = 1000000};
  nxr_fault fault = {""};
  assert_true(nxr_metrics_open(&metrics, temporary_path(2, "gone"), 0, &fault));
  report_step(&metrics, 1);
  assert_int_equal(unlink(temporary_path(0, "gone")), 0);
  report_step(&metrics, 1);
  report_step(&metrics, 2);
  has_steps("gone", 2);
  report_steps("other", 0, 1, 2); /* an editor's new file in its place, with half a line */
  FILE *file = fopen(temporary_path(0, "other"), "a");
  fputs("{\"step\":", file);
  fclose(file);
  assert_int_equal(rename(temporary_path(0, "other"), temporary_path(1, "gone")), 0);
  report_step(&metrics, 3);
  has_steps("gone", 3);
  assert_int_equal(unlink(temporary_path(0, "gone")), 0);
  assert_int_equal(mkdir(temporary_path(0, "gone"), 0700), 0);
  report_step(&metrics, 4); /* is said, and the training goes on */
  report_step(&metrics, 5);
  nxr_metrics_close(&metrics, 0);
  assert_int_equal(rmdir(temporary_path(0, "gone")), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_one_object_a_step),    cmocka_unit_test(sets_an_earlier_run_aside),
      cmocka_unit_test(a_set_may_have_any_name),     cmocka_unit_test(continues_where_the_run_is),
      cmocka_unit_test(refuses_what_is_not_its_own), cmocka_unit_test(messages_have_no_control_characters),
      cmocka_unit_test(survives_a_full_disk),        cmocka_unit_test(is_made_again_where_it_was_removed),
  };
  return cmocka_run_group_tests_name("metrics", tests, temporary_make, temporary_remove);
}
