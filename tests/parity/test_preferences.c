/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun against PyTorch on answers: `test_preferences RECORDED [KofN]` trains DPO, ORPO, KTO and a reward
 * model on the answers that were recorded (record_preferences.py), on one rank and on meshes, and compares
 * the loss, the gradient norm and the metrics of every step, and the first gradients. */
#include "schema/objective.h"
#include "tests/parity/training.h"
#include "tests/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct objective {
  const char *name, *overrides;
  bool gradients; /* were recorded too */
  nx_objective kind;
  const char *begins;              /* with the weights of this folder */
  const char *beside, *beside_set; /* a setting that names a further dataset; NULL: none does */
} objective;

static const char family[] = "families/llama";

static const objective objectives[] = {
    {"dpo", SET("alignment.strategy", "dpo") SET("alignment.beta", "0.1"), false,
     NX_OBJECTIVE_DPO, family},
    {"dpo_smoothed",
     SET("alignment.strategy", "dpo") SET("alignment.beta", "0.5") SET("alignment.label_smoothing", "0.1"),
     true, NX_OBJECTIVE_DPO, family},
    {"dpo_free",
     SET("alignment.strategy", "dpo") SET("alignment.beta", "0.2") SET("alignment.reference_free", "true"),
     false, NX_OBJECTIVE_DPO, family},
    {"orpo", SET("alignment.strategy", "orpo") SET("alignment.beta", "0.25"), true,
     NX_OBJECTIVE_ORPO, family},
    {"kto",
     SET("alignment.strategy", "kto") SET("alignment.beta", "0.5") SET("alignment.desirable_weight", "1.5")
         SET("alignment.undesirable_weight", "0.75") SET("batch.micro", "4"),
     true, NX_OBJECTIVE_KTO, family, "reward_path", "rewards"},
    {"reward", SET("alignment.strategy", "reward") SET("alignment.value_penalty", "0.05"), true,
     NX_OBJECTIVE_REWARD, "preferences/reward", "label_path", "value_labels"},
};
enum { N_OBJECTIVES = sizeof objectives / sizeof *objectives };

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
    {"pp2", 2, SET("mesh.world", "2") SET("mesh.pipeline", "2")},
    {"ring2", 2, SET("mesh.world", "2") SET("mesh.context", "2") SET("attention.ring", "true")},
    {"ulysses2", 2, SET("mesh.world", "2") SET("mesh.context", "2") SET("attention.ulysses", "true")},
    {"dp2", 2, SET("mesh.world", "2")},
    {"dp2-zero1", 2, SET("mesh.world", "2") SET("optimizer.zero_stage", "1")},
    {"dp2-zero2", 2, SET("mesh.world", "2") SET("optimizer.zero_stage", "2")},
    {"dp2-zero3", 2, SET("mesh.world", "2") SET("optimizer.zero_stage", "3")},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static const double loss_tolerance = 1e-6, norm_tolerance = 1e-5, gradient_tolerance = 1e-5;
static const char *recorded;
static training_share share;

static void folder_of(char *folder, size_t n_bytes, const objective *o, const variant *v) {
  snprintf(folder, n_bytes, "preferences-%s-%s", o->name, v->name);
}

/* A batch is 8 samples, in micro-batches of 2 pairs or 4 answers. */
static void compile(const objective *o, const variant *v) {
  char folder[256], overrides[4096], beside[512] = "";
  folder_of(folder, sizeof folder, o, v);
  if (o->beside)
    snprintf(beside, sizeof beside, "--set 'nx:data.%s=[%s/preferences/%s]'", o->beside, recorded,
             o->beside_set);
  snprintf(overrides, sizeof overrides,
           "--model-config %s/families/llama/config.json --set 'nx:data.path=[%s/preferences/pairs]' "
           "--set nx:run.init_from=%s/%s/model.safetensors %s %s %s",
           recorded, recorded, recorded, o->begins, beside, o->overrides, v->overrides);
  training_compile(&(training){.folder = folder,
                               .config = training_recorded,
                               .overrides = overrides,
                               .n_ranks = v->n_ranks,
                               .gradients = true});
}

static void train_all(unsigned n_ranks) {
  static char words[1 << 14];
  char name[64];
  size_t used = 0;
  for (size_t i = 0; i < N_OBJECTIVES; i++)
    for (size_t j = 0; j < N_VARIANTS; j++) {
      char folder[256];
      if (variants[j].n_ranks != n_ranks || !training_is_in(&share, i + j)) continue;
      compile(&objectives[i], &variants[j]);
      folder_of(folder, sizeof folder, &objectives[i], &variants[j]);
      used += (size_t)snprintf(words + used, sizeof words - used, "%s ", folder);
    }
  if (used >= sizeof words) tap_bail("too many cases");
  snprintf(name, sizeof name, "preferences-%s", share.name);
  training_together(n_ranks, name, words);
}

static json_t *read_record(const objective *o) {
  char path[512];
  snprintf(path, sizeof path, "%s/preferences/%s/record.json", recorded, o->name);
  json_t *record = json_load_file(path, 0, NULL);
  if (record == NULL) tap_bail("cannot read %s", path);
  return record;
}

static double number(const json_t *step, const char *name) {
  return json_number_value(json_object_get(step, name));
}

/* The metrics are those that were recorded, as far as sums of tens of tokens in fp32 tell. */
static bool same_metrics(const char *folder, const json_t *record, nx_objective kind) {
  const char *const *names = nx_objective_find(kind)->metrics;
  char path[512], line[4096];
  snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
  FILE *metrics = fopen(path, "r");
  bool good = metrics != NULL;
  for (size_t i = 0; good && fgets(line, sizeof line, metrics); i++) {
    json_t *found = json_loads(line, 0, NULL);
    const json_t *step = json_array_get(json_object_get(record, "fp64"), i);
    unsigned n_compared = 0;
    for (int k = 0; k < NX_N_ANSWER_METRICS && names[k]; k++) {
      if (json_object_get(step, names[k]) == NULL) continue;
      double wanted = number(step, names[k]), given = number(found, names[k]);
      n_compared++;
      if (json_object_get(found, names[k]) && fabs(given - wanted) <= 1e-5 * (1 + fabs(wanted))) continue;
      tap_note("step %zu: %s is %.9g, and was recorded as %.9g", i + 1, names[k], given, wanted);
      good = false;
    }
    json_decref(found);
    good = good && n_compared >= 2;
  }
  if (metrics) fclose(metrics);
  return good;
}

static void compare(const objective *o, const variant *v) {
  training_result expected, actual;
  char folder[256], theirs[512], ours[512];
  folder_of(folder, sizeof folder, o, v);
  json_t *record = read_record(o);
  training_expect(json_object_get(record, "fp64"), 0, &expected);
  training_read(folder, &actual);
  bool good = training_compare(&expected, &actual, loss_tolerance, norm_tolerance);
  good = same_metrics(folder, record, o->kind) && good;
  snprintf(theirs, sizeof theirs, "%s/preferences/%s/gradients.safetensors", recorded, o->name);
  snprintf(ours, sizeof ours, "%s/gradients/gradients.safetensors", folder);
  if (o->gradients) good = training_compare_tensors(theirs, ours, gradient_tolerance) && good;
  tap_report(good, "%s", folder);
  json_decref(record);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  recorded = argv[1];
  share = training_share_of(argv[2]);
  for (unsigned n_ranks = 1; n_ranks <= 2; n_ranks++) train_all(n_ranks);
  for (size_t i = 0; i < N_OBJECTIVES; i++)
    for (size_t j = 0; j < N_VARIANTS; j++)
      if (training_is_in(&share, i + j)) compare(&objectives[i], &variants[j]);
  return tap_end();
}
