/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: exact on the same mesh, the same files from every mesh, and none that is damaged or of another
 * run. */
#include "tests/unit/checkpoint_case.h"

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
      {"sed -i 's/\"settings\"/\"sattings\"/' manifest.json", 2},
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(resumes_exactly),
      cmocka_unit_test(writes_logical_tensors),
      cmocka_unit_test(imports_on_any_mesh),
      cmocka_unit_test(goes_on_on_any_mesh),
      cmocka_unit_test(refuses_another_plan),
      cmocka_unit_test(refuses_another_dataset),
      cmocka_unit_test(passes_over_damage),
      cmocka_unit_test(refuses_if_all_are_damaged),
  };
  return cmocka_run_group_tests_name("checkpoint", tests, temporary_make, temporary_remove);
}
