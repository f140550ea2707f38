/* SPDX-License-Identifier: Apache-2.0 */
/* A run's folder: what is kept, removed and left alone, whatever was there and however a save ends. */
#include "tests/unit/checkpoint_case.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

static void survives_a_killed_save(void **state) {
  (void)state;
  mesh_ranks *all = make_run(&shapes[3], 2);
  char command[1024];
  snprintf(command, sizeof command,
           "cd %s/run/checkpoints && cp -r step-000002 step-000003.tmp && "
           "truncate -s 100 step-000003.tmp/moment1.safetensors && rm step-000003.tmp/manifest.json && "
           "touch step-000003.tmp/unfinished",
           temporary_folder);
  assert_int_equal(system(command), 0);
  request from = {.resume = true};
  must(all, prepare, &from);
  assert_false(temporary_exists("run/checkpoints/step-000003.tmp"));
  must(all, resume, &from);
  assert_int_equal(from.step, 2);
  must(all, save, &(request){.step = 3});
  must(all, resume, &from);
  assert_int_equal(from.step, 3);
  mesh_ranks_close(all);
}

static void keeps_as_many_as_asked(void **state) {
  (void)state;
  static const struct { int32_t keep; uint32_t oldest; } cases[] = {{-1, 1}, {0, 5}, {1, 5}, {3, 3}, {9, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    remove_run();
    mesh_ranks *all = open_mesh(&one_rank, 1);
    mesh.run_names.keep = cases[i].keep;
    must(all, prepare, &(request){0});
    for (uint64_t step = 1; step <= 5; step++) must(all, save, &(request){.step = step});
    for (uint32_t step = 1; step <= 5; step++) {
      char name[64];
      snprintf(name, sizeof name, "run/checkpoints/step-%06u", step);
      assert_int_equal(temporary_exists(name), step >= cases[i].oldest);
    }
    mesh_ranks_close(all);
  }
}

static void shell(const char *command) {
  char line[2048];
  snprintf(line, sizeof line, "cd %s && %s", temporary_folder, command);
  if (system(line) != 0) fail_msg("failed: %s", command);
}

/* What a user linked in, or put beside our files, outlives pruning and does not count. */
static void removes_only_its_own(void **state) {
  (void)state;
  mesh_ranks_close(make_run(&one_rank, 2));
  shell("rm -rf other && mv run other");
  mesh_ranks *all = make_run(&one_rank, 2);
  shell("cd run/checkpoints && ln -s ../../other/checkpoints/step-000001 step-000000 && "
        "touch step-000001/notes && rm -rf ../../folder && mkdir ../../folder && touch ../../folder/mine && "
        "mv step-000002/moment1.safetensors ../../folder && "
        "ln -s ../../../folder/moment1.safetensors step-000002/moment1.safetensors");
  mesh.run_names.keep = 1;
  for (uint64_t step = 3; step <= 5; step++) must(all, save, &(request){.step = step});
  shell("test -L run/checkpoints/step-000000 && cmp other/checkpoints/step-000001/model.safetensors "
        "run/checkpoints/step-000001/model.safetensors && test -e run/checkpoints/step-000001/notes && "
        "test -e run/checkpoints/step-000002/manifest.json && test -s folder/moment1.safetensors");
  shell("test ! -e run/checkpoints/step-000003 && test ! -e run/checkpoints/step-000004 && "
        "test -e run/checkpoints/step-000005");
  mesh.run_names.keep = -1;
  mesh_ranks_close(all);
}

/* A temporary name that something else has is left to it: the checkpoint is written under another. */
static void takes_another_temporary_name(void **state) {
  (void)state;
  static const char *const occupants[] = {
      "ln -s ../../folder step-000002.tmp",
      "mkdir step-000002.tmp && touch step-000002.tmp/mine",
      "mkdir -p step-000002.tmp/model.safetensors && touch step-000002.tmp/unfinished",
      "mkdir step-000002.tmp && touch step-000002.tmp/model.safetensors",
      "touch step-000002.tmp",
  };
  for (size_t i = 0; i < sizeof occupants / sizeof *occupants; i++) {
    mesh_ranks *all = make_run(&shapes[3], 1);
    char command[512];
    snprintf(command, sizeof command,
             "rm -rf folder && mkdir folder && touch folder/unfinished folder/model.safetensors && "
             "cd run/checkpoints && %s", occupants[i]);
    shell(command);
    shell("ls -lR --time-style=full-iso run/checkpoints/step-000002.tmp* folder | grep -v ^total >before");
    must(all, prepare, &(request){.resume = true});
    must(all, save, &(request){.step = 2});
    shell("ls -lR --time-style=full-iso run/checkpoints/step-000002.tmp* folder | grep -v ^total >after && "
          "cmp before after && test ! -e run/checkpoints/step-000002.tmp-2 && "
          "test ! -e run/checkpoints/step-000002/unfinished");
    request from = {.resume = true};
    must(all, resume, &from);
    assert_int_equal(from.step, 2);
    mesh_ranks_close(all);
  }
}

static void overwrites_nothing(void **state) {
  (void)state;
  mesh_ranks *all = make_run(&one_rank, 1);
  must_fail(all, prepare, &(request){0}, "continue it with --resume");
  uint32_t salt = 8;
  mesh_run(all, fill, &salt);
  must(all, save, &(request){.step = 1}); /* of the same plan and step: there already */
  check_file(temporary_path(0, "run/checkpoints/step-000001/model.safetensors"), 1);
  mesh_ranks_close(all);

  remove_run();
  all = open_mesh(&one_rank, 1);
  must(all, prepare, &(request){0});
  must(all, prepare, &(request){0}); /* it has no checkpoint yet */
  request from = {.resume = true, .step = 7};
  must(all, prepare, &from);
  must(all, resume, &from);
  assert_int_equal(from.step, 0);
  remove_run();
  temporary_write("run", "", 0);
  must_fail(all, prepare, &(request){0}, "cannot make the folder");
  mesh_ranks_close(all);
}

/* Another process that has the folder is noticed, and forgotten when it is gone. */
static void one_run_uses_a_folder(void **state) {
  (void)state;
  mesh_ranks *all = make_run(&one_rank, 1);
  char command[1024];
  snprintf(command, sizeof command, "flock -n %s/run/lock true", temporary_folder);
  assert_int_not_equal(system(command), 0);
  mesh_ranks_close(all);
  remove_run();
  all = open_mesh(&one_rank, 1);
  snprintf(command, sizeof command, "mkdir -p %s/run", temporary_folder);
  assert_int_equal(system(command), 0);
  int other = open(temporary_path(0, "run/lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
  must_fail(all, prepare, &(request){0}, "another run is using the folder");
  close(other);
  must(all, prepare, &(request){0});
  mesh_ranks_close(all);
}

static void a_full_disk_harms_nothing(void **state) {
  (void)state;
  signal(SIGXFSZ, SIG_IGN);
  for (rlim_t most = 16; most < 2000; most += 97) {
    mesh_ranks *all = make_run(&shapes[3], 1);
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){most, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    bool saved = mesh_run(all, save, &(request){.step = 2});
    setrlimit(RLIMIT_FSIZE, &before);
    if (!saved) assert_non_null(strstr(mesh_fault(all), "cannot write"));
    assert_false(temporary_exists("run/checkpoints/step-000002.tmp"));
    request from = {.resume = true};
    must(all, prepare, &from);
    must(all, resume, &from);
    assert_int_equal(from.step, saved ? 2 : 1);
    if (most == 16) assert_false(saved);
    mesh_ranks_close(all);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(survives_a_killed_save),
      cmocka_unit_test(keeps_as_many_as_asked),
      cmocka_unit_test(removes_only_its_own),
      cmocka_unit_test(takes_another_temporary_name),
      cmocka_unit_test(overwrites_nothing),
      cmocka_unit_test(one_run_uses_a_folder),
      cmocka_unit_test(a_full_disk_harms_nothing),
  };
  return cmocka_run_group_tests_name("checkpoint_folder", tests, temporary_make, temporary_remove);
}
