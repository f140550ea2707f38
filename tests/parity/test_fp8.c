/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun against PyTorch's float8 types: `test_fp8 RECORDED [KofN]` trains the tiny Llama of record_fp8.py
 * with each recipe, on one rank and on meshes, and compares loss and gradient norm of every step. A number
 * that lies on a border is rounded up or down by the last bit of the sum that made it: so differences grow
 * with the steps, and the first step, before any update, is compared more strictly. */
#include "schema/fp8.h"
#include "tests/parity/training.h"
#include "tests/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct variant {
  const char *name;
  unsigned n_ranks;
  const char *overrides;
} variant;

static const variant variants[] = {
    {"one", 1, SET("mesh.world", "1")},
    {"recomputed", 1, SET("mesh.world", "1") SET("recompute.granularity", "full")},
    {"tp2", 2, SET("mesh.world", "2") SET("mesh.tensor", "2")},
    {"tp2-sp", 2, SET("mesh.world", "2") SET("mesh.tensor", "2") SET("sequence_parallel", "true")},
    {"cp2", 2, SET("mesh.world", "2") SET("mesh.context", "2") SET("attention.ring", "true")},
    {"dp2", 2, SET("mesh.world", "2")},
    {"dp2-zero3", 2, SET("mesh.world", "2") SET("optimizer.zero_stage", "3")},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

/* A scale that is made now has the last bits of what it is made of, and numbers have those of the scale. */
static const double first_tolerance = 2e-6, first_norm_tolerance = 5e-4, tolerance = 5e-4,
                    norm_tolerance = 1e-2;

static const char *recorded;
static training_share share;
static json_t *cases; /* those of the share */

static void folder_of(char *folder, size_t n_bytes, const char *name, const variant *v) {
  snprintf(folder, n_bytes, "fp8-%s-%s", name, v->name);
}

static const char *recipe_of(const json_t *record) {
  return json_string_value(json_object_get(json_object_get(record, "settings"), "recipe"));
}

/* Blocks of 128 rows, or of tokens, are others where ranks cut them; what passes remember is that of so many
 * data-parallel ranks. */
static bool is_run(const json_t *record, const variant *v) {
  const char *recipe = recipe_of(record);
  bool delayed = strcmp(recipe, "delayed") == 0, blocks = !delayed && strcmp(recipe, "tensorwise") != 0;
  bool cuts = strstr(v->overrides, "mesh.tensor") || strstr(v->overrides, "mesh.context");
  long long ranks = strncmp(v->name, "dp2", 3) == 0 ? 2 : 1;
  if (delayed) return json_integer_value(json_object_get(record, "ranks")) == ranks;
  return !(blocks && cuts) && strcmp(v->name, "dp2") != 0;
}

static size_t settings_of(const json_t *settings, char *text, size_t n_bytes) {
  const char *key;
  json_t *value;
  size_t used = (size_t)snprintf(text, n_bytes, SET("precision.products", "fp8"));
  json_object_foreach((json_t *)(uintptr_t)settings, key, value) {
    char *word = json_dumps(value, JSON_ENCODE_ANY);
    used += (size_t)snprintf(text + used, n_bytes - used, " --set 'nx:precision.fp8_%s=%s'", key, word);
    free(word);
  }
  return used;
}

static void compile(const char *name, const json_t *settings, const variant *v) {
  char folder[256], recipe[1024], overrides[4096];
  folder_of(folder, sizeof folder, name, v);
  settings_of(settings, recipe, sizeof recipe);
  snprintf(overrides, sizeof overrides,
           "--model-config %s/lora/nf4/base/config.json --set 'nx:data.path=[%s/tokens]' "
           "--set nx:run.init_from=%s/lora/nf4/base/model.safetensors %s %s",
           recorded, recorded, recorded, recipe, v->overrides);
  training_compile(&(training){
      .folder = folder, .config = training_recorded, .overrides = overrides, .n_ranks = v->n_ranks});
}

static void train_all(unsigned n_ranks) {
  static char words[1 << 13];
  char together[64];
  size_t used = 0;
  const char *name;
  json_t *record;
  json_object_foreach(cases, name, record) {
    for (size_t i = 0; i < N_VARIANTS; i++) {
      char folder[256];
      if (variants[i].n_ranks != n_ranks || !is_run(record, &variants[i])) continue;
      compile(name, json_object_get(record, "settings"), &variants[i]);
      folder_of(folder, sizeof folder, name, &variants[i]);
      used += (size_t)snprintf(words + used, sizeof words - used, "%s ", folder);
      if (used >= sizeof words) tap_bail("too many cases");
    }
  }
  snprintf(together, sizeof together, "fp8-%s", share.name);
  training_together(n_ranks, together, words);
}

static void compare(const char *name, const json_t *record, const variant *v) {
  char folder[256];
  training_result actual, expected = {0};
  folder_of(folder, sizeof folder, name, v);
  training_read(folder, &actual);
  training_expect(json_object_get(record, "steps"), 0, &expected);
  if (actual.n_steps < expected.n_steps) tap_bail("%s has too few steps", folder);
  actual.n_steps = expected.n_steps;
  training_result first = actual, expected_first = expected;
  first.n_steps = expected_first.n_steps = 1;
  bool good = training_compare(&expected_first, &first, first_tolerance, first_norm_tolerance);
  good = training_compare(&expected, &actual, tolerance, norm_tolerance) && good;
  tap_report(good, "%s", folder);
}

/* Bit by bit, but for the sign of zero. */
static void compare_rounding(const char *name, const json_t *vectors, const nx_fp8_row *format) {
  const json_t *x = json_object_get(vectors, "x"), *y = json_object_get(vectors, "y");
  size_t n = json_array_size(x), n_wrong = 0;
  for (size_t i = 0; i < n; i++) {
    float from = (float)json_number_value(json_array_get(x, i)),
          to = (float)json_number_value(json_array_get(y, i));
    n_wrong += nx_fp8_round(format, from) != to;
    if (format == &nx_fp8_rows[NX_FP8_E4M3]) n_wrong += nx_e4m3_decode(nx_e4m3_encode(to)) != to;
  }
  tap_report(n > 300 && n_wrong == 0, "%s rounds %zu numbers as PyTorch does", name, n);
}

/* ---- experts: their products are in fp8 too, wherever they are ---- */

/* Each as the one before it that has as many data-parallel ranks. */
static const variant expert_variants[] = {
    {"one", 1, SET("mesh.world", "1")},
    {"etp2", 2, SET("mesh.world", "2") SET("mesh.tensor", "2") SET("mesh.expert_tensor", "2")},
    {"pp2", 2, SET("mesh.world", "2") SET("mesh.pipeline", "2")},
    {"pp2-recomputed", 2,
     SET("mesh.world", "2") SET("mesh.pipeline", "2") SET("recompute.granularity", "full")},
    {"dp2", 2, SET("mesh.world", "2")},
    {"ep2", 2, SET("mesh.world", "2") SET("mesh.expert", "2")},
};

static void train_experts(const char *recipe, const variant *v, training_result *result) {
  char folder[256], overrides[4096];
  snprintf(folder, sizeof folder, "fp8-experts-%s-%s", recipe, v->name);
  snprintf(overrides, sizeof overrides,
           "--model-config %s/families/qwen3_moe/config.json --set 'nx:data.path=[%s/tokens]' "
           "--set nx:run.init_from=%s/families/qwen3_moe/model.safetensors %s %s%s %s",
           recorded, recorded, recorded, recipe[0] ? SET("precision.products", "fp8") : "",
           recipe[0] ? " --set nx:precision.fp8_recipe=" : "", recipe, v->overrides);
  training_run(&(training){.folder = folder,
                           .config = training_recorded,
                           .overrides = overrides,
                           .arguments = "--stop-after 2",
                           .n_ranks = v->n_ranks},
               result);
}

static void compare_experts(const char *recipe) {
  training_result plain, one, other;
  train_experts("", &expert_variants[0], &plain);
  train_experts(recipe, &expert_variants[0], &one);
  double moved = fabs(one.steps[0].loss / plain.steps[0].loss - 1);
  bool good = moved > 1e-6 && moved < 1e-2;
  for (size_t i = 1; i < sizeof expert_variants / sizeof *expert_variants; i++) {
    train_experts(recipe, &expert_variants[i], &other);
    if (strcmp(expert_variants[i].name, "dp2") == 0) one = other;
    else good = training_compare(&one, &other, first_tolerance, first_norm_tolerance) && good;
  }
  tap_report(good, "experts of every mesh round alike: %s", recipe);
}

static void pick_cases(const json_t *all) {
  const char *name;
  json_t *record, *every = json_object_get(all, "cases");
  size_t n = 0;
  cases = json_object();
  json_object_foreach(every, name, record) {
    if (training_is_in(&share, n++)) json_object_set(cases, name, record);
  }
}

int main(int argc, char **argv) {
  char path[512];
  const char *name;
  json_t *record;
  if (argc < 2) return 2;
  recorded = argv[1];
  share = training_share_of(argv[2]);
  snprintf(path, sizeof path, "%s/fp8.json", recorded);
  json_t *all = json_load_file(path, 0, NULL);
  if (all == NULL) tap_bail("cannot read %s", path);
  pick_cases(all);
  const json_t *rounding = json_object_get(all, "rounding");
  compare_rounding("e4m3", json_object_get(rounding, "e4m3"), &nx_fp8_rows[NX_FP8_E4M3]);
  compare_rounding("e5m2", json_object_get(rounding, "e5m2"), &nx_fp8_rows[NX_FP8_E5M2]);
  for (unsigned n_ranks = 1; n_ranks <= 2; n_ranks++) train_all(n_ranks);
  json_object_foreach(cases, name, record) {
    for (size_t i = 0; i < N_VARIANTS; i++)
      if (is_run(record, &variants[i])) compare(name, record, &variants[i]);
  }
  if (training_is_in(&share, 0)) compare_experts("delayed");
  if (training_is_in(&share, 0)) compare_experts("mxfp8");
  json_decref(cases);
  json_decref(all);
  return tap_end();
}
