/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: exact on the same mesh, the same files from every mesh, and safe whatever happens to them. */
#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"
#include "schema/bf16.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/mesh_plan.h"
#include "tests/unit/temporary.h"

#include <signal.h>
#include <sys/resource.h>

static const mesh_shape one_rank = {1, 1, false, true};
static const mesh_shape shapes[] = {{1, 1, true, true}, {2, 1, true, true},  {1, 2, true, true},
                                    {2, 2, true, true}, {1, 4, true, true},  {2, 2, false, true},
                                    {1, 2, false, true}, {2, 2, true, false}, {1, 1, false, false},
                                    {2, 2, true, true, true}, {1, 4, false, true, true}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* The number at a place of a logical tensor; `salt` tells storages and steps apart. */
static float number(const char *tensor, int64_t row, int64_t column, uint32_t salt) {
  uint32_t mixed =
      (uint32_t)(unsigned char)tensor[0] * 7919u + (uint32_t)row * 104729u + (uint32_t)column * 1299709u;
  mixed = (mixed ^ salt * 15485863u) * 2654435761u;
  return (float)(mixed >> 4) * 0x1p-28f + 0.1f;
}

/* Fills all that a rank holds; parameters are rounded from the same numbers as their masters. */
static bool fill(mesh_rank *rank, void *data) {
  const uint32_t *salt = data;
  const nxr_pieces *pieces = &rank->pieces;
  memset(rank->arenas, 0, (size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
  for (uint32_t piece = 0; piece < MESH_PIECES; piece++) {
    const nx_piece *at = &pieces->plan->pieces[piece];
    const char *name = nx_plan_string(pieces->plan, at->name);
    for (int64_t row = 0; row < at->rows; row++) {
      float values[16], room[16];
      nxr_span whole = nxr_pieces_row(pieces, NXR_PARAM, piece, row);
      for (int64_t i = 0; i < whole.n; i++) values[i] = number(name, whole.row, whole.column + i, *salt);
      if (whole.n) nxr_pieces_set(pieces, piece, row, values, room);
      for (nxr_kind kind = NXR_GRAD; kind < NXR_N_KINDS; kind++) {
        if (!nxr_pieces_has(pieces, kind, piece)) continue;
        nxr_span span = nxr_pieces_row(pieces, kind, piece, row);
        for (int64_t i = 0; i < span.n; i++)
          values[i] = number(name, span.row, span.column + i, *salt + 100 * kind);
        nxr_pieces_put(pieces, NX_f32, &span, values);
      }
    }
  }
  return true;
}

typedef struct request {
  uint64_t step;
  bool resume;
  const char *path;
} request;

static const nxr_fingerprint *trained_on;
static bool welcomes_another;

static nxr_checkpoint checkpoint_of(mesh_rank *rank) {
  static char directory[512];
  if (rank->world.rank == 0) snprintf(directory, sizeof directory, "%s/run", temporary_folder);
  uint64_t meet = 0;
  nxr_world_max(&rank->world, &meet, 1);
  const nxr_manifest_run run = {&rank->all->mesh->plan, trained_on, welcomes_another};
  return (nxr_checkpoint){run, &rank->world, &rank->pieces, directory};
}

static bool prepare(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  return nxr_checkpoint_prepare(&checkpoint, ((request *)data)->resume, &rank->fault);
}

static bool save(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  return nxr_checkpoint_save(&checkpoint, ((request *)data)->step, &rank->fault);
}

static bool resume(mesh_rank *rank, void *data) {
  uint64_t step = UINT64_MAX;
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  bool good = nxr_checkpoint_resume(&checkpoint, &step, &rank->fault);
  if (rank->world.rank == 0) ((request *)data)->step = step;
  return good;
}

static bool import(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  return nxr_checkpoint_import(&checkpoint, ((request *)data)->path, &rank->fault);
}

static bool gradients(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  return nxr_checkpoint_gradients(&checkpoint, ((request *)data)->path, &rank->fault);
}

static void remove_run(void) {
  char command[600];
  snprintf(command, sizeof command, "rm -rf %s/run", temporary_folder);
  assert_int_equal(system(command), 0);
}

static mesh_plan mesh;

static mesh_ranks *open_mesh(const mesh_shape *shape, uint32_t salt) {
  mesh_make(&mesh, shape);
  mesh_ranks *all = mesh_ranks_open(&mesh);
  mesh_run(all, fill, &salt);
  return all;
}

static void must(mesh_ranks *all, bool (*work)(mesh_rank *, void *), request *with) {
  if (!mesh_run(all, work, with)) fail_msg("%s", mesh_fault(all));
}

static void must_fail(mesh_ranks *all, bool (*work)(mesh_rank *, void *), request *with,
                      const char *because) {
  if (mesh_run(all, work, with)) fail_msg("succeeded, expected: %s", because);
  if (strstr(mesh_fault(all), because) == NULL) fail_msg("expected \"%s\" in: %s", because, mesh_fault(all));
}

/* A run with checkpoints of steps 1 … n, filled with the step as salt. */
static mesh_ranks *make_run(const mesh_shape *shape, uint32_t n) {
  remove_run();
  mesh_ranks *all = open_mesh(shape, 1);
  must(all, prepare, &(request){0});
  for (uint32_t step = 1; step <= n; step++) {
    mesh_run(all, fill, &step);
    must(all, save, &(request){.step = step});
  }
  return all;
}

/* Whether everything but gradients is as `fill` with that salt leaves it. */
static void holds(mesh_ranks *all, uint32_t salt) {
  for (uint32_t i = 0; i < all->n; i++) {
    mesh_rank *rank = &all->ranks[i];
    uint8_t *was = malloc((size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
    memcpy(was, rank->arenas, (size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
    fill(rank, &salt);
    memset(rank->pieces.base[NX_ARENA_grad], 0, MESH_ARENA_BYTES);
    memset(was + (size_t)NX_ARENA_grad * MESH_ARENA_BYTES, 0, MESH_ARENA_BYTES);
    assert_memory_equal(rank->arenas, was, (size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
    free(was);
  }
}

static void resumes_exactly(void **state) {
  (void)state;
  for (uint32_t i = 0; i < N_SHAPES; i++) {
    mesh_ranks *all = make_run(&shapes[i], 2);
    for (uint32_t rank = 0; rank < all->n; rank++)
      memset(all->ranks[rank].arenas, 0, (size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
    request from = {.resume = true};
    must(all, prepare, &from);
    must(all, resume, &from);
    assert_int_equal(from.step, 2);
    holds(all, 2);
    assert_true(temporary_exists("run/checkpoints/step-000002/moment1.safetensors") == shapes[i].moments);
    mesh_ranks_close(all);
  }
}

static void check_tensor(const char *path, const char *name, int64_t rows, int64_t columns, bool transposed,
                         uint32_t salt) {
  nxr_safetensors file;
  nxr_fault fault = {""};
  if (!nxr_safetensors_open(path, &file, &fault)) fail_msg("%s", fault.text);
  const nxr_safetensor *tensor = nxr_safetensors_find(&file, name);
  assert_non_null(tensor);
  assert_int_equal(tensor->dtype, NX_f32);
  assert_int_equal(tensor->n_dims, rows == 1 ? 1 : 2);
  assert_int_equal(tensor->dims[0], rows == 1 || transposed ? columns : rows);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t column = 0; column < columns; column++) {
      float value;
      nxr_safetensor_floats(tensor, (uint64_t)(transposed ? column * rows + row : row * columns + column), 1,
                            &value);
      assert_true(value == number(name, row, column, salt));
    }
  nxr_safetensors_close(&file);
}

static void check_file(const char *path, uint32_t salt) {
  check_tensor(path, "rows", 7, 5, false, salt);
  check_tensor(path, "columns", 4, 6, true, salt);
  check_tensor(path, "fused", 6, 5, true, salt);
  check_tensor(path, "bias", 1, 6, false, salt);
  check_tensor(path, "norm", 1, 5, false, salt);
}

static void writes_logical_tensors(void **state) {
  (void)state;
  for (uint32_t i = 0; i < N_SHAPES; i++) {
    mesh_ranks *all = make_run(&shapes[i], 1);
    check_file(temporary_path(0, "run/checkpoints/step-000001/model.safetensors"), 1);
    if (shapes[i].moments) {
      check_file(temporary_path(0, "run/checkpoints/step-000001/moment1.safetensors"), 1 + 100 * NXR_STATE);
      check_file(temporary_path(0, "run/checkpoints/step-000001/moment2.safetensors"),
                 1 + 100 * (NXR_STATE + 1));
    }
    char folder[512];
    strcpy(folder, temporary_path(0, "run/gradients"));
    must(all, gradients, &(request){.path = folder});
    check_file(temporary_path(0, "run/gradients/gradients.safetensors"), 1 + 100 * NXR_GRAD);
    must_fail(all, gradients, &(request){.path = folder}, "exists");
    mesh_ranks_close(all);
  }
}

static void imports_on_any_mesh(void **state) {
  (void)state;
  mesh_ranks_close(make_run(&shapes[3], 1));
  char path[512];
  strcpy(path, temporary_path(0, "run/checkpoints/step-000001"));
  for (uint32_t i = 0; i < N_SHAPES; i++) {
    mesh_ranks *all = open_mesh(&shapes[i], 9);
    must(all, import, &(request){.path = path});
    for (uint32_t rank = 0; rank < all->n; rank++) {
      uint8_t *state_arena = all->ranks[rank].pieces.base[NX_ARENA_state];
      uint8_t *was = malloc(MESH_ARENA_BYTES);
      memcpy(was, state_arena, MESH_ARENA_BYTES);
      uint32_t nine = 9, one = 1;
      uint8_t *weights = malloc(2 * MESH_ARENA_BYTES);
      memcpy(weights, all->ranks[rank].pieces.base[NX_ARENA_param], 2 * MESH_ARENA_BYTES);
      fill(&all->ranks[rank], &nine);
      assert_memory_equal(state_arena, was, MESH_ARENA_BYTES); /* moments are not imported */
      fill(&all->ranks[rank], &one);
      assert_memory_equal(all->ranks[rank].pieces.base[NX_ARENA_param], weights, 2 * MESH_ARENA_BYTES);
      free(was), free(weights);
    }
    mesh_ranks_close(all);
  }
}

/* From any mesh and stage of ZeRO to any other with the same types and moments. */
static void goes_on_on_any_mesh(void **state) {
  (void)state;
  for (uint32_t from = 0; from < N_SHAPES; from++) {
    mesh_ranks_close(make_run(&shapes[from], 2));
    for (uint32_t to = 0; to < N_SHAPES; to++) {
      if (shapes[to].bf16 != shapes[from].bf16 || shapes[to].moments != shapes[from].moments) continue;
      mesh_ranks *all = open_mesh(&shapes[to], 9);
      request going_on = {.resume = true};
      must(all, prepare, &going_on);
      must(all, resume, &going_on);
      assert_int_equal(going_on.step, 2);
      holds(all, 2);
      mesh_ranks_close(all);
    }
  }
}

static void refuses_another_plan(void **state) {
  (void)state;
  mesh_ranks_close(make_run(&shapes[3], 2));
  mesh_ranks *all = open_mesh(&shapes[7], 5);
  request from = {.resume = true};
  must(all, prepare, &from);
  must_fail(all, resume, &from, "optimizer.name: \"adamw\" there, \"sgd\" here");
  assert_non_null(strstr(mesh_fault(all), "run.init_from"));
  assert_non_null(strstr(mesh_fault(all), "step-000002"));
  holds(all, 5);
  assert_true(temporary_exists("run/checkpoints/step-000002/manifest.json"));
  mesh_ranks_close(all);
}

static void refuses_another_dataset(void **state) {
  (void)state;
  const nxr_fingerprint one = {.sha256 = {1}, .n_documents = 7, .n_tokens = 700},
                        other = {.sha256 = {2}, .n_documents = 8, .n_tokens = 700};
  const nxr_fingerprint *const before[] = {&one, NULL, &one}, *const now[] = {&one, &one, NULL};
  for (int i = 0; i < 3; i++) { /* the same, or not known */
    trained_on = before[i];
    mesh_ranks *all = make_run(&shapes[3], 2);
    trained_on = now[i];
    request from = {.resume = true};
    must(all, resume, &from);
    assert_int_equal(from.step, 2);
    mesh_ranks_close(all);
  }
  trained_on = &one;
  mesh_ranks *all = make_run(&shapes[3], 2);
  trained_on = &other;
  request from = {.resume = true};
  must_fail(all, resume, &from, "7 documents of 700 tokens there (SHA-256 010000000000…), 8 of 700 here");
  assert_non_null(strstr(mesh_fault(all), "--new-dataset"));
  welcomes_another = true;
  must(all, resume, &from);
  assert_int_equal(from.step, 2);
  welcomes_another = false;
  trained_on = NULL;
  mesh_ranks_close(all);
}

typedef struct damage {
  const char *command; /* in the folder of step 3 */
  uint64_t left;       /* the step that a resume finds */
} damage;

static void passes_over_damage(void **state) {
  (void)state;
  static const damage cases[] = {
      {"rm manifest.json", 2},
      {"rm model.safetensors", 2},
      {"rm moment2.safetensors", 2},
      {"truncate -s -1 moment1.safetensors", 2},
      {"truncate -s +1 model.safetensors", 2},
      {"truncate -s 0 model.safetensors", 2},
      {"printf x | dd of=model.safetensors bs=1 seek=900 conv=notrunc 2>/dev/null", 2},
      {"truncate -s -3 manifest.json", 2},
      {"echo '{}' >manifest.json", 2},
      {"sed -i 's/\"step\": 3/\"step\": 4/' manifest.json", 2},
      {"sed -i 's/moment1.saf/moment7.saf/' manifest.json", 2},
      {"cp ../step-000002/manifest.json .", 2},
      {"cp ../step-000002/model.safetensors .", 2},
      {"rm manifest.json ../step-000002/moment1.safetensors", 1},
      {"mkdir ../step-000004 ../step-000005.tmp ../step-6 ../step-000007x; "
       "touch ../step-000005.tmp/unfinished ../step-000005.tmp/model.safetensors",
       3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mesh_ranks *all = make_run(&shapes[3], 3);
    char command[1024];
    snprintf(command, sizeof command, "cd %s/run/checkpoints/step-000003 && %s", temporary_folder,
             cases[i].command);
    assert_int_equal(system(command), 0);
    uint32_t salt = 77;
    mesh_run(all, fill, &salt);
    request from = {.resume = true};
    must(all, prepare, &from);
    must(all, resume, &from);
    if (from.step != cases[i].left) fail_msg("resumed from %d after: %s", (int)from.step, cases[i].command);
    holds(all, (uint32_t)from.step);
    assert_false(temporary_exists("run/checkpoints/step-000005.tmp"));
    if (cases[i].left < 3) {
      assert_true(temporary_exists("run/checkpoints/step-000003.damaged"));
      must(all, save, &(request){.step = 3}); /* its place is free again */
      assert_true(temporary_exists("run/checkpoints/step-000003/manifest.json"));
    }
    mesh_ranks_close(all);
  }
}

/* Where no checkpoint is left, the run does not quietly begin again. */
static void refuses_if_all_are_damaged(void **state) {
  (void)state;
  mesh_ranks *all = make_run(&shapes[3], 2);
  char command[1024];
  snprintf(command, sizeof command, "rm %s/run/checkpoints/*/manifest.json", temporary_folder);
  assert_int_equal(system(command), 0);
  request from = {.resume = true};
  must(all, prepare, &from);
  must_fail(all, resume, &from, "no checkpoint in");
  must_fail(all, resume, &from, "nothing was changed");
  assert_true(temporary_exists("run/checkpoints/step-000002/model.safetensors"));
  holds(all, 2);
  mesh_ranks_close(all);
}

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
  snprintf(command, sizeof command, "mkdir -p %s/run && (flock -n 9 && sleep 0.4) 9>%s/run/lock & sleep 0.1",
           temporary_folder, temporary_folder);
  assert_int_equal(system(command), 0);
  must_fail(all, prepare, &(request){0}, "another run is using the folder");
  usleep(500000);
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
      cmocka_unit_test(resumes_exactly),        cmocka_unit_test(writes_logical_tensors),
      cmocka_unit_test(imports_on_any_mesh),    cmocka_unit_test(goes_on_on_any_mesh),
      cmocka_unit_test(refuses_another_plan),   cmocka_unit_test(refuses_another_dataset),
      cmocka_unit_test(passes_over_damage),     cmocka_unit_test(refuses_if_all_are_damaged),
      cmocka_unit_test(survives_a_killed_save), cmocka_unit_test(keeps_as_many_as_asked),
      cmocka_unit_test(removes_only_its_own),   cmocka_unit_test(takes_another_temporary_name),
      cmocka_unit_test(overwrites_nothing),     cmocka_unit_test(one_run_uses_a_folder),
      cmocka_unit_test(a_full_disk_harms_nothing),
  };
  return cmocka_run_group_tests_name("checkpoint", tests, temporary_make, temporary_remove);
}
