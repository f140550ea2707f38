/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/assignment.h"
#include "compiler/config/settings_json.h"
#include "tests/unit/cmocka_all.h"

#include <jansson.h>
#include <string.h>

typedef struct fixture {
  nxc_arena *arena;
  nxc_sink *sink;
  nxc_settings *settings;
} fixture;

static int set_up(void **state) {
  static fixture f;
  f.arena = nxc_arena_new();
  f.sink = nxc_sink_new(f.arena);
  f.settings = nxc_settings_new(f.arena);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  nxc_arena_free(((fixture *)*state)->arena);
  return 0;
}

static void test_catalogue(void **state) {
  (void)state;
  for (size_t id = 0; id < NX_N_SETTINGS; id++) {
    assert_int_equal(nxc_setting_find(nxc_setting_path((nxc_setting_id)id)), id);
  }
  assert_int_equal(nxc_setting_find("mesh.tensor"), NX_SETTING_MESH_TENSOR);
  assert_int_equal(nxc_setting_find("mesh"), NX_N_SETTINGS);
  assert_int_equal(nxc_setting_find(""), NX_N_SETTINGS);
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    for (size_t j = 0; j < dialect->n_options; j++) {
      assert_ptr_equal(nxc_option_find(dialect, dialect->options[j].name), &dialect->options[j]);
    }
  }
}

static void test_no_setting_is_infinite(void **state) {
  fixture *f = *state;
  for (size_t id = 0; id < NX_N_SETTINGS; id++) {
    nxc_type type = nxc_setting_rows[id].domain.type;
    bool list = type == NXC_TYPE_LIST_FLOAT;
    if (type != NXC_TYPE_FLOAT && type != NXC_TYPE_INT_OR_FLOAT && !list) continue;
    const char *path = nxc_setting_path((nxc_setting_id)id);
    assert_false(nxc_settings_set_text(f->settings, path, list ? "[.inf]" : ".inf", f->sink));
    assert_false(nxc_settings_set_text(f->settings, path, list ? "[-.inf]" : "-.inf", f->sink));
  }
}

static void test_defaults(void **state) {
  fixture *f = *state;
  assert_int_equal(nxc_int(f->settings, NX_SETTING_MESH_TENSOR), 1);
  assert_false(nxc_settings_known(f->settings, NX_SETTING_MESH_WORLD));
  assert_false(nxc_has(f->settings, NX_SETTING_MESH_WORLD));
  assert_true(nxc_settings_known(f->settings, NX_SETTING_OPTIMIZER_CLIP_NORM));
  assert_false(nxc_has(f->settings, NX_SETTING_OPTIMIZER_CLIP_NORM)); /* none */
  assert_int_equal(nxc_settings_from(f->settings, NX_SETTING_MESH_TENSOR)->kind, NXC_FROM_DEFAULT);
  assert_int_equal(nxc_settings_from(f->settings, NX_SETTING_MESH_WORLD)->kind, NXC_FROM_UNKNOWN);
  size_t n_items;
  const nxc_value *betas = nxc_list(f->settings, NX_SETTING_OPTIMIZER_BETAS, &n_items);
  assert_int_equal(n_items, 2);
  assert_true(betas[0].number == 0.9 && betas[1].number == 0.999);
  assert_null(nxc_list(f->settings, NX_SETTING_PIPELINE_CUTS, &n_items));
  assert_int_equal(n_items, 0);
}

static void test_set_text(void **state) {
  fixture *f = *state;
  assert_true(nxc_settings_set_text(f->settings, "mesh.tensor", "4", f->sink));
  assert_int_equal(nxc_int(f->settings, NX_SETTING_MESH_TENSOR), 4);
  assert_true(nxc_settings_set_text(f->settings, "optimizer.lr", "1", f->sink)); /* an int becomes a float */
  assert_true(nxc_settings_value(f->settings, NX_SETTING_OPTIMIZER_LR)->kind == NXC_FLOAT);
  assert_true(nxc_settings_set_text(f->settings, "optimizer.betas", "[0.8, 0.9]", f->sink));
  assert_true(nxc_settings_set_text(f->settings, "sequence_parallel", "true", f->sink));
  assert_true(nxc_flag(f->settings, NX_SETTING_SEQUENCE_PARALLEL));
  assert_true(nxc_settings_set_text(f->settings, "optimizer.clip_norm", "1.0", f->sink));
  assert_true(nxc_number(f->settings, NX_SETTING_OPTIMIZER_CLIP_NORM) == 1.0);
  assert_true(nxc_settings_set_text(f->settings, "optimizer.clip_norm", "null", f->sink));
  assert_false(nxc_has(f->settings, NX_SETTING_OPTIMIZER_CLIP_NORM));
  /* a scalar becomes a list of one */
  assert_true(nxc_settings_set_text(f->settings, "data.path", "a/b", f->sink));
  size_t n_items;
  assert_string_equal(nxc_list(f->settings, NX_SETTING_DATA_PATH, &n_items)[0].text, "a/b");
  assert_int_equal(nxc_sink_n_findings(f->sink), 0);
}

static void test_refusals(void **state) {
  fixture *f = *state;
  static const struct {
    const char *path, *text, *id;
  } rows[] = {
      {"mesh.tensor", "0", "NX1305"},
      {"mesh.tensor", "2.0", "NX1303"},
      {"mesh.tensor", "null", "NX1306"},
      {"optimizer.name", "adamm", "NX1304"},
      {"mesh.tensr", "2", "NX1312"},
      {"sequence_parallel", "1", "NX1303"},
      {"model.rotary_percentage", "0", "NX1305"},
      {"mesh.tensor", "99999999999999999999", "NX1305"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxc_sink *sink = nxc_sink_new(f->arena);
    assert_false(nxc_settings_set_text(f->settings, rows[i].path, rows[i].text, sink));
    assert_int_equal(nxc_sink_n_findings(sink), 1);
    assert_string_equal(nxc_sink_finding(sink, 0)->id, rows[i].id);
  }
  assert_int_equal(nxc_int(f->settings, NX_SETTING_MESH_TENSOR), 1);
}

/* A stronger provenance wins, whichever comes first; the weaker stays as `previous`. */
static void test_provenance(void **state) {
  fixture *f = *state;
  const nxc_value two = {.kind = NXC_INT, .integer = 2}, three = {.kind = NXC_INT, .integer = 3};
  const nxc_provenance file = {.kind = NXC_FROM_FILE, .option = "tp"},
                       cli = {.kind = NXC_FROM_CLI, .option = "--set"};
  assert_true(nxc_settings_set(f->settings, NX_SETTING_MESH_TENSOR, &two, &cli, f->sink));
  assert_true(nxc_settings_set(f->settings, NX_SETTING_MESH_TENSOR, &three, &file, f->sink));
  assert_int_equal(nxc_int(f->settings, NX_SETTING_MESH_TENSOR), 2);
  const nxc_provenance *from = nxc_settings_from(f->settings, NX_SETTING_MESH_TENSOR);
  assert_int_equal(from->kind, NXC_FROM_CLI);
  assert_int_equal(from->previous->kind, NXC_FROM_FILE);
  assert_int_equal(from->previous->value->integer, 3);
  assert_int_equal(from->previous->previous->kind, NXC_FROM_DEFAULT);
  assert_string_equal(nxc_setting_name_in_dialect(f->settings, NX_SETTING_MESH_TENSOR), "--set");
  nxc_settings_speak(f->settings, nxc_dialect_find("nxdt"));
  assert_string_equal(nxc_setting_name_in_dialect(f->settings, NX_SETTING_MESH_PIPELINE),
                      "distributed_strategy.pipeline_model_parallel_size");
}

static void test_derive(void **state) {
  fixture *f = *state;
  static const char *const given[][2] = {{"mesh.world", "16"}, {"mesh.tensor", "2"},   {"mesh.pipeline", "2"},
                                         {"batch.micro", "1"}, {"batch.global", "32"}, {"model.hidden", "64"},
                                         {"model.heads", "4"}};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    assert_true(nxc_settings_set_text(f->settings, given[i][0], given[i][1], f->sink));
  }
  assert_true(nxc_settings_derive(f->settings, f->sink));
  assert_int_equal(nxc_int(f->settings, NX_SETTING_MESH_DATA), 4);
  assert_int_equal(nxc_int(f->settings, NX_SETTING_BATCH_ACCUMULATION), 8);
  assert_int_equal(nxc_int(f->settings, NX_SETTING_MODEL_HEAD_DIM), 16);
  const nxc_provenance *from = nxc_settings_from(f->settings, NX_SETTING_MESH_DATA);
  assert_int_equal(from->kind, NXC_FROM_RULE);
  assert_non_null(from->origin);
  assert_true(from->n_inputs >= 3);
}

static void test_json(void **state) {
  fixture *f = *state;
  const nxc_value secret = {.kind = NXC_STRING, .text = "hunter2", .n_bytes = 7};
  const nxc_provenance from = {.kind = NXC_FROM_FILE, .redacted = true, .option = "name"};
  assert_true(nxc_settings_set(f->settings, NX_SETTING_RUN_NAME, &secret, &from, f->sink));
  json_t *settings = nxc_settings_to_json(f->arena, f->settings), *sources = nxc_sources_to_json(f->settings);
  assert_int_equal(json_integer_value(json_object_get(settings, "mesh.tensor")), 1);
  assert_int_equal(json_object_size(settings), NX_N_SETTINGS);
  assert_true(json_is_null(json_object_get(settings, "mesh.world")));
  assert_true(json_is_null(json_object_get(settings, "optimizer.clip_norm")));
  const char *shown = json_string_value(json_object_get(settings, "run.name"));
  assert_null(strstr(shown, "hunter2"));
  assert_non_null(strstr(shown, "redacted"));
  assert_string_equal(json_string_value(json_object_get(json_object_get(sources, "run.name"), "kind")),
                      "file");
  assert_string_equal(json_string_value(json_object_get(json_object_get(sources, "mesh.world"), "kind")),
                      "unknown");
  assert_null(strstr(nxc_settings_show(f->settings, NX_SETTING_RUN_NAME), "hunter2"));
  json_decref(settings);
  json_decref(sources);
}

static void test_unknown_for_plan(void **state) {
  fixture *f = *state;
  nxc_setting_id ids[NX_N_SETTINGS];
  size_t n_before = nxc_settings_unknown_for_plan(f->settings, ids);
  assert_true(n_before > 0);
  assert_int_equal(ids[0], NX_SETTING_MESH_WORLD);
  assert_true(nxc_settings_set_text(f->settings, "mesh.world", "2", f->sink));
  assert_int_equal(nxc_settings_unknown_for_plan(f->settings, ids), n_before - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_catalogue),
      cmocka_unit_test_setup_teardown(test_defaults, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_set_text, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_provenance, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_no_setting_is_infinite, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_derive, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_json, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_unknown_for_plan, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
