/* SPDX-License-Identifier: Apache-2.0 */
/* The rules engine, and the values that the real system gives for the shipped files
 * ($NX_SHARED/corpora/nxdt). */
#include "tests/unit/compile_text.h"

#include <dirent.h>
#include <stdio.h>

static void test_violation(void **state) {
  (void)state;
  trial t;
  trial_begin(
      &t, "mesh: {world: 8, tensor: 2}\nbatch:\n  micro: 1\n  global: 6\nmodel:\n  heads: 3\n  hidden: 64\n");
  trial_run(&t);
  assert_false(t.ok);
  const nxc_finding *finding = trial_finding(&t, "NX2101", 0);
  assert_non_null(finding);
  assert_non_null(finding->at.source);
  assert_true(finding->n_remarks >= 2);
  bool heads = false, tensor = false;
  for (size_t i = 0; i < finding->n_remarks; i++) {
    heads = heads || strstr(finding->remarks[i].text, "model.heads is 3");
    tensor = tensor || strstr(finding->remarks[i].text, "mesh.tensor is 2");
    assert_non_null(finding->remarks[i].at.source);
  }
  assert_true(heads && tensor);
  trial_end(&t);
}

/* Unknown inputs: the rule is skipped and listed, and the verdict stays good. */
static void test_skipped(void **state) {
  (void)state;
  trial t;
  trial_begin(&t, "mesh: {tensor: 2}\nbatch: {micro: 1, global: 7}\n");
  trial_run(&t);
  assert_true(t.ok);
  assert_false(nxc_settings_known(t.out.settings, NX_SETTING_MESH_DATA));
  assert_true(t.out.rules.n_skipped > 0);
  bool heads = false;
  for (size_t i = 0; i < t.out.rules.n_skipped; i++) {
    const nxc_skipped_rule *skipped = &t.out.rules.skipped[i];
    assert_non_null(skipped->rule->id);
    assert_true(*skipped->missing != '\0');
    heads = heads || (strcmp(skipped->rule->id, "NX2101") == 0 && strstr(skipped->missing, "model.heads"));
  }
  assert_true(heads);
  trial_end(&t);
}

static void test_derived_chain(void **state) {
  (void)state;
  trial t;
  trial_begin(&t, "mesh: {world: 8, tensor: 2}\nbatch: {micro: 1, global: 16}\n");
  trial_run(&t);
  assert_true(t.ok);
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_BATCH_ACCUMULATION), 4);
  const nxc_provenance *from = nxc_settings_from(t.out.settings, NX_SETTING_BATCH_ACCUMULATION);
  assert_int_equal(from->kind, NXC_FROM_RULE);
  assert_int_equal(nxc_settings_span(t.out.settings, NX_SETTING_BATCH_ACCUMULATION).line > 0, 1);
  trial_end(&t);
}

/* Every rule's expressions evaluate on a bare record without failing for a reason of their own. */
static void test_catalogue_is_usable(void **state) {
  (void)state;
  trial t;
  trial_begin(&t, "mesh: {tensor: 1}\n");
  trial_run(&t);
  for (size_t i = 0; i < nxc_n_rules; i++) {
    assert_true(nxc_rules[i].require != NULL || nxc_rules[i].derives < NX_N_SETTINGS);
    assert_ptr_equal(nxc_rule_find(nxc_rules[i].id), &nxc_rules[i]);
    if (nxc_rules[i].require != NULL) assert_non_null(nxc_rules[i].message);
  }
  trial_end(&t);
}

/* -- the shipped files ----------------------------------------------------------------------------------- */

static const char *shared(const char *below) {
  static char path[512];
  const char *root = getenv("NX_SHARED");
  if (root == NULL) return NULL;
  snprintf(path, sizeof path, "%s/%s", root, below);
  return path;
}

static void compile_file(trial *t, const char *path) {
  *t = (trial){.arena = nxc_arena_new()};
  t->sink = nxc_sink_new(t->arena);
  t->request.file = path;
  t->ok = nxc_compile_settings(t->arena, &t->request, t->sink, &t->out);
}

/* What NxDT itself stops at: samples of 4096 tokens for an encoder_seq_length of 8192. */
static bool stops(const char *file, const char *id) {
  return strcmp(file, "hf_llama3_8B_SFT_config.yaml") == 0 && strcmp(id, "NX2501") == 0;
}

static void test_shipped_files(void **state) {
  (void)state;
  const char *folder = shared("corpora/nxdt");
  DIR *entries = folder ? opendir(folder) : NULL;
  if (entries == NULL) {
    skip_test(__func__, "NX_SHARED names no folder with corpora");
    return;
  }
  size_t n_files = 0;
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (strstr(entry->d_name, ".yaml") == NULL) continue;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    trial t;
    compile_file(&t, path);
    for (size_t i = 0; i < nxc_sink_n_findings(t.sink); i++) {
      const nxc_finding *finding = nxc_sink_finding(t.sink, i);
      if (finding->severity == NXC_SEVERITY_ERROR && !stops(entry->d_name, finding->id))
        fail_msg("%s: %s %s", entry->d_name, finding->id, finding->message);
    }
    assert_true(nxc_sink_count(t.sink, NXC_SEVERITY_WARNING) <= 3);
    trial_end(&t);
    n_files++;
  }
  closedir(entries);
  assert_true(n_files >= 11);
}

static void check_row(const char *file, char *const *columns) {
  enum {
    WORLD = 3,
    TENSOR,
    PIPELINE,
    VIRTUAL,
    CONTEXT,
    EXPERT,
    ZERO1,
    GLOBAL,
    MICRO,
    DATA,
    N_MICRO,
    PRECISION,
    MASTER,
    FP32_GRAD,
    SEQUENCE,
    STEPS
  };
  static const struct {
    int column;
    nxc_setting_id id;
  } integers[] = {
      {WORLD, NX_SETTING_MESH_WORLD},        {TENSOR, NX_SETTING_MESH_TENSOR},
      {PIPELINE, NX_SETTING_MESH_PIPELINE},  {VIRTUAL, NX_SETTING_MESH_VIRTUAL_PIPELINE},
      {CONTEXT, NX_SETTING_MESH_CONTEXT},    {EXPERT, NX_SETTING_MESH_EXPERT},
      {GLOBAL, NX_SETTING_BATCH_GLOBAL},     {MICRO, NX_SETTING_BATCH_MICRO},
      {DATA, NX_SETTING_MESH_DATA},          {N_MICRO, NX_SETTING_BATCH_ACCUMULATION},
      {SEQUENCE, NX_SETTING_MODEL_SEQUENCE}, {STEPS, NX_SETTING_SCHEDULE_MAX_STEPS},
  };
  trial t;
  compile_file(&t, file);
  const nxc_settings *settings = t.out.settings;
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
    long long expected = (long long)strtod(columns[integers[i].column], NULL);
    /* The table has model.encoder_seq_length; pairs are as long as data.seq_length, and base.py compares
     * other batches alone. */
    bool pairs = nxc_is(settings, NX_SETTING_ALIGNMENT_STRATEGY, "dpo") ||
                 nxc_is(settings, NX_SETTING_ALIGNMENT_STRATEGY, "orpo");
    if (pairs && integers[i].id == NX_SETTING_MODEL_SEQUENCE) continue;
    if (nxc_int(settings, integers[i].id) != expected) {
      fail_msg("%s: %s is %lld, not %lld", file, nxc_setting_path(integers[i].id),
               (long long)nxc_int(settings, integers[i].id), expected);
    }
  }
  assert_int_equal(nxc_int(settings, NX_SETTING_OPTIMIZER_ZERO_STAGE), strcmp(columns[ZERO1], "True") == 0);
  assert_int_equal(nxc_flag(settings, NX_SETTING_PRECISION_MASTER_WEIGHTS),
                   strcmp(columns[MASTER], "True") == 0);
  assert_int_equal(nxc_is(settings, NX_SETTING_PRECISION_GRAD_ACCUMULATION, "fp32"),
                   strcmp(columns[FP32_GRAD], "True") == 0);
  assert_true(nxc_is(settings, NX_SETTING_PRECISION_PRESET, columns[PRECISION]));
  trial_end(&t);
}

static void test_expected_values(void **state) {
  (void)state;
  enum { MAX_COLUMNS = 32 };
  const char *path = shared("corpora/nxdt/expected.tsv");
  FILE *table = path ? fopen(path, "r") : NULL;
  if (table == NULL) {
    skip_test(__func__, "NX_SHARED names no folder with corpora");
    return;
  }
  char line[2048], file[1024], *columns[MAX_COLUMNS];
  size_t n_rows = 0;
  assert_non_null(fgets(line, sizeof line, table));
  while (fgets(line, sizeof line, table) != NULL) {
    size_t n_columns = 0;
    for (char *at = strtok(line, "\t\n"); at && n_columns < MAX_COLUMNS; at = strtok(NULL, "\t\n"))
      columns[n_columns++] = at;
    snprintf(file, sizeof file, "%s/corpora/nxdt/%s", getenv("NX_SHARED"), columns[0]);
    check_row(file, columns);
    n_rows++;
  }
  fclose(table);
  assert_true(n_rows >= 11);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_violation),     cmocka_unit_test(test_skipped),
      cmocka_unit_test(test_derived_chain), cmocka_unit_test(test_catalogue_is_usable),
      cmocka_unit_test(test_shipped_files), cmocka_unit_test(test_expected_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
