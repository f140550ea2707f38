/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun against transformers: `test_families RECORDED [--in-turn] [FAMILY...]` trains the tiny model of each
 * family from the config.json and the weights that transformers wrote, on one rank in fp32 and bf16 and on
 * meshes in fp32, and compares with what transformers' own model does (record_families.py): loss and gradient
 * norm of every step, and in the last checkpoint each tensor's shape and how far it has moved. With --in-turn
 * a family trains on one of the meshes only, the next family on the next. */
#include "runtime/files/safetensors.h"
#include "tests/parity/training.h"
#include "tests/tap.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* tolerance: relative, of losses and norms; norms of bf16 are sums of many rounded gradients. */
typedef struct variant {
  const char *name;
  unsigned n_ranks;
  const char *overrides;
  double tolerance, norm_tolerance;
  bool bf16;      /* compared with the record in bf16 */
  const char *of; /* of families alone whose config.json has one of these keys; NULL: of all */
  const char *from; /* of those alone that have this folder, with weights in several files; NULL: of all */
} variant;

static const char mixtures[] = "num_local_experts num_experts n_routed_experts",
                  latents[] = "kv_lora_rank swiglu_limit";

static const variant variants[] = {
    {"fp32", 1, SET("mesh.world", "1"), 1e-6, 1e-5, false, NULL},
    {"bf16", 1,
     SET("mesh.world", "1") SET("precision.param", "bf16") SET("precision.compute", "bf16")
         SET("precision.master_weights", "true"),
     2e-3, 2e-2, true, NULL},
    {"tp2", 2, SET("mesh.world", "2") SET("mesh.tensor", "2"), 1e-6, 1e-5, false, NULL},
    {"pp2", 2, SET("mesh.world", "2") SET("mesh.pipeline", "2"), 1e-6, 1e-5, false, NULL},
    {"cp2", 2, SET("mesh.world", "2") SET("mesh.context", "2") SET("attention.ring", "true"), 1e-6, 1e-5,
     false, NULL},
    {"tp2-sp-full", 2,
     SET("mesh.world", "2") SET("mesh.tensor", "2") SET("sequence_parallel", "true")
         SET("recompute.granularity", "full"),
     1e-6, 1e-5, false, latents},
    {"cp2-ulysses", 2, SET("mesh.world", "2") SET("mesh.context", "2") SET("attention.ulysses", "true"), 1e-6,
     1e-5, false, latents},
    {"dp2-zero3", 2, SET("mesh.world", "2") SET("optimizer.zero_stage", "3"), 1e-6, 1e-5, false, NULL},
    {"tp2-shards", 2, SET("mesh.world", "2") SET("mesh.tensor", "2"), 1e-6, 1e-5, false, NULL, "shards"},
    {"ep2", 2, SET("mesh.world", "2") SET("mesh.expert", "2"), 1e-6, 1e-5, false, mixtures},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static const double change_tolerance = 1e-3; /* of how far a tensor has moved in 20 steps, in fp32 */

enum { FAMILIES_MAX = 64 };
static const char *recorded;
static bool in_turn;

static void folder_of(char *folder, size_t n_bytes, const char *family, const variant *v) {
  snprintf(folder, n_bytes, "%s-%s-%s", in_turn ? "turn" : "family", family, v->name);
}

static json_t *file_of(const char *family, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/families/%s/%s", recorded, family, name);
  return json_load_file(path, 0, NULL);
}

static bool is_for(const variant *v, const char *family) {
  char folder[512];
  if (v->from) {
    snprintf(folder, sizeof folder, "%s/families/%s/%s", recorded, family, v->from);
    return access(folder, R_OK) == 0;
  }
  if (v->of == NULL) return true;
  json_t *config = file_of(family, "config.json"), *value;
  const char *key;
  bool found = false;
  json_object_foreach(config, key, value) found = found || strstr(v->of, key) != NULL;
  json_decref(config);
  return found;
}

static bool is_tried(size_t which, const char *family, size_t place) {
  size_t meshes[N_VARIANTS], n = 0;
  if (!in_turn || variants[which].n_ranks == 1 || variants[which].from)
    return is_for(&variants[which], family);
  for (size_t i = 0; i < N_VARIANTS; i++)
    if (variants[i].n_ranks > 1 && !variants[i].from && is_for(&variants[i], family)) meshes[n++] = i;
  return meshes[place % n] == which;
}

static void compile(const char *family, const variant *v) {
  char folder[256], overrides[4096];
  json_t *record = file_of(family, "record.json");
  folder_of(folder, sizeof folder, family, v);
  snprintf(overrides, sizeof overrides,
           "--model-config %s/families/%s/config.json --set 'nx:data.path=[%s/tokens]' "
           "--set nx:run.init_from=%s/families/%s/%s --set nx:moe.correction_rate=%g %s",
           recorded, family, recorded, recorded, family, v->from ? v->from : "model.safetensors",
           json_number_value(json_object_get(record, "correction_rate")), v->overrides);
  json_decref(record);
  training_compile(&(training){
      .folder = folder, .config = training_recorded, .overrides = overrides, .n_ranks = v->n_ranks});
}

static void train_all(char **families, int n, unsigned n_ranks) {
  static char words[1 << 16];
  size_t used = 0;
  for (int i = 0; i < n; i++) {
    for (size_t j = 0; j < N_VARIANTS; j++) {
      char folder[256];
      if (variants[j].n_ranks != n_ranks || !is_tried(j, families[i], (size_t)i)) continue;
      compile(families[i], &variants[j]);
      folder_of(folder, sizeof folder, families[i], &variants[j]);
      used += (size_t)snprintf(words + used, sizeof words - used, "%s ", folder);
      if (used >= sizeof words) tap_bail("too many families");
    }
  }
  training_together(n_ranks, in_turn ? "families-in-turn" : "families", words);
}

/* ---- comparing ---- */

static double distance(const nxr_safetensor *a, const nxr_safetensor *b, uint64_t n) {
  float *left = malloc(n * sizeof *left), *right = malloc(n * sizeof *right);
  double sum = 0;
  if (left == NULL || right == NULL) tap_bail("out of memory");
  nxr_safetensor_floats(a, 0, n, left);
  nxr_safetensor_floats(b, 0, n, right);
  for (uint64_t i = 0; i < n; i++) sum += ((double)left[i] - right[i]) * ((double)left[i] - right[i]);
  free(left);
  free(right);
  return sqrt(sum);
}

/* The tensor is there, has its shape and has moved as far as in transformers. */
static bool same_change(const nxr_safetensors *first, const nxr_safetensors *last, const char *name,
                        const json_t *change) {
  const nxr_safetensor *before = nxr_safetensors_find(first, name), *after = nxr_safetensors_find(last, name);
  char wanted[160], found[160];
  if (after == NULL) return tap_note("the checkpoint lacks %s", name), false;
  nx_safetensor_shape(before, wanted);
  nx_safetensor_shape(after, found);
  if (strcmp(wanted, found) != 0) return tap_note("%s is %s instead of %s", name, found, wanted), false;
  uint64_t n = 1;
  for (uint32_t i = 0; i < before->n_dims; i++) n *= before->dims[i];
  double moved = distance(before, after, n), expected = json_number_value(json_array_get(change, 0));
  double size = json_number_value(json_array_get(change, 1));
  if (fabs(moved - expected) <= change_tolerance * fmax(expected, 1e-3 * size)) return true;
  tap_note("%s moved by %.6g instead of %.6g", name, moved, expected);
  return false;
}

static bool same_checkpoint(const char *family, const char *folder, const json_t *record) {
  char path[512];
  nxr_safetensors first, last;
  nxr_fault fault = {""};
  snprintf(path, sizeof path, "%s/families/%s/model.safetensors", recorded, family);
  if (!nxr_safetensors_open(path, &first, &fault)) tap_bail("%s", fault.text);
  snprintf(path, sizeof path, "%s/run/checkpoints/step-000020/model.safetensors", folder);
  if (!nxr_safetensors_open(path, &last, &fault)) tap_bail("%s", fault.text);
  json_t *changes = json_object_get(record, "changes"), *change;
  const char *name;
  bool good = first.n_tensors == last.n_tensors;
  if (!good) tap_note("%zu tensors instead of %zu", (size_t)last.n_tensors, (size_t)first.n_tensors);
  json_object_foreach(changes, name, change) good = same_change(&first, &last, name, change) && good;
  nxr_safetensors_close(&first);
  nxr_safetensors_close(&last);
  return good;
}

/* What nxrun writes beside the weights says what transformers wrote: all that both say. */
static bool same_config(const char *family, const char *folder) {
  char path[512];
  bool good = true;
  snprintf(path, sizeof path, "%s/families/%s/config.json", recorded, family);
  json_t *theirs = json_load_file(path, 0, NULL), *value;
  snprintf(path, sizeof path, "%s/run/checkpoints/step-000020/config.json", folder);
  json_t *ours = json_load_file(path, 0, NULL);
  if (ours == NULL) return tap_note("there is no %s", path), json_decref(theirs), false;
  const char *key;
  json_object_foreach(ours, key, value) {
    json_t *other = json_object_get(theirs, key);
    bool numbers = json_is_number(value) && json_is_number(other);
    bool equal = numbers ? fabs(json_number_value(value) - json_number_value(other)) <= 1e-12
                         : json_equal(value, other);
    if (other == NULL || json_is_null(other) || equal || strcmp(key, "router_aux_loss_coef") == 0)
      continue; /* 0 where it adds no loss */
    tap_note("config.json says another %s", key);
    good = false;
  }
  json_decref(theirs);
  json_decref(ours);
  return good;
}

static void compare(const char *family, const variant *v, const json_t *record) {
  training_result expected, actual;
  char folder[256];
  folder_of(folder, sizeof folder, family, v);
  training_expect(json_object_get(record, v->bf16 ? "bf16" : "fp32"), 0, &expected);
  training_read(folder, &actual);
  bool good = training_compare(&expected, &actual, v->tolerance, v->norm_tolerance);
  if (!v->bf16) good = same_checkpoint(family, folder, record) && good;
  good = same_config(family, folder) && good;
  tap_report(good, "%s", folder);
}

/* The families that were recorded, one a folder. */
/* Those of the share. */
static int list_families(char **families, const training_share *share) {
  char path[512];
  snprintf(path, sizeof path, "%s/families", recorded);
  struct dirent **entries;
  int n_entries = scandir(path, &entries, NULL, alphasort), n = 0;
  if (n_entries < 0) tap_bail("cannot read %s", path);
  for (int i = 0; i < n_entries; i++) {
    bool is_meant = entries[i]->d_name[0] != '.' && training_is_in(share, (size_t)i);
    if (is_meant && n < FAMILIES_MAX) families[n++] = strdup(entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
  return n;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  char *found[FAMILIES_MAX], **families = found;
  recorded = argv[1];
  in_turn = argc > 2 && strcmp(argv[2], "--in-turn") == 0;
  training_share share = training_share_of(argv[2 + in_turn]);
  int n_named = share.n > 1 ? 0 : argc - 2 - in_turn,
      n_found = n_named > 0 ? 0 : list_families(found, &share);
  int n = n_named > 0 ? n_named : n_found;
  if (n_named > 0) families = argv + 2 + in_turn;
  for (unsigned n_ranks = 1; n_ranks <= 2; n_ranks++) train_all(families, n, n_ranks);
  for (int i = 0; i < n; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s/families/%s/record.json", recorded, families[i]);
    json_t *record = json_load_file(path, 0, NULL);
    if (record == NULL) tap_bail("cannot read %s", path);
    for (size_t j = 0; j < N_VARIANTS; j++)
      if (is_tried(j, families[i], (size_t)i)) compare(families[i], &variants[j], record);
    json_decref(record);
  }
  for (int i = 0; i < n_found; i++) free(found[i]);
  return tap_end();
}
