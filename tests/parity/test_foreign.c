/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun begins with weights that torch wrote as Megatron-LM, GPT-NeoX and torch.distributed.checkpoint have
 * them (record_foreign.py), and trains as transformers does from the same weights: `test_foreign RECORDED`.
 */
#include "tests/parity/training.h"
#include "tests/tap.h"

#include <jansson.h>
#include <stdio.h>

static const struct {
  const char *folder, *family;
  unsigned n_ranks;
  const char *overrides;
  unsigned begins; /* at this step, with the optimizer's state */
} cases[] = {
    {"megatron", "llama", 1, "", 0},
    {"megatron", "llama", 2, SET("mesh.pipeline", "2"), 0},
    {"megatron_old", "gpt2", 2, SET("mesh.tensor", "2"), 0},
    {"torch_dist", "llama", 1, "", 0},
    {"torch_dist", "llama", 2, SET("mesh.tensor", "2"), 0},
    {"fsdp", "llama", 2, SET("optimizer.zero_stage", "3"), 0},
    {"neox", "gpt_neox", 1, "", 0},
    {"neox", "gpt_neox", 2, SET("mesh.tensor", "2"), 0},
    {"neox_serial", "gpt_neox_serial", 1, "", 0},
    {"neox_llama", "llama", 1, "", 0},
    {"chunks", "llama", 1, "", 0},
    {"mixture", "mixtral", 1, "", 0},
    {"mixture", "mixtral", 2, SET("mesh.expert", "2"), 0},
    {"adam", "llama", 1, "", 5},
    {"adam", "llama", 2, SET("optimizer.zero_stage", "1"), 5},
    {"adam_runs", "llama", 2, SET("optimizer.zero_stage", "1"), 5},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void folder_of(size_t i, char folder[64]) {
  snprintf(folder, 64, "foreign-%s-%u", cases[i].folder, cases[i].n_ranks);
}

/* Half of them by run.init_from, the others as a run that goes on from another's weights. */
static const char *way_of(size_t i) {
  if (cases[i].begins) return "--set nx:checkpoint.load";
  return i % 2 ? SET("checkpoint.weights_only", "true") " --set nx:checkpoint.load"
               : "--set nx:run.init_from";
}

static void train_all(const char *recorded, unsigned n_ranks) {
  char words[1024] = "", overrides[4096], folder[64];
  size_t used = 0;
  for (size_t i = 0; i < N_CASES; i++) {
    if (cases[i].n_ranks != n_ranks) continue;
    folder_of(i, folder);
    snprintf(
        overrides, sizeof overrides,
        "--model-config %s/families/%s/config.json --set 'nx:data.path=[%s/tokens]' "
        "--set nx:mesh.world=%u %s=%s/foreign/%s %s",
        recorded, cases[i].family, recorded, n_ranks,
        way_of(i),
        recorded, cases[i].folder, cases[i].overrides);
    training_compile(&(training){
        .folder = folder, .config = training_recorded, .overrides = overrides, .n_ranks = n_ranks});
    used += (size_t)snprintf(words + used, sizeof words - used, "%s ", folder);
  }
  training_together(n_ranks, "foreign", words);
}

static void compare(const char *recorded, size_t i) {
  training_result expected = {0}, actual;
  char path[512], folder[64];
  snprintf(path, sizeof path, "%s/families/%s/record.json", recorded, cases[i].family);
  json_t *record = json_load_file(path, 0, NULL), *steps = json_object_get(record, "fp32");
  if (steps == NULL) tap_bail("cannot read %s", path);
  folder_of(i, folder);
  training_read(folder, &actual);
  training_expect(steps, cases[i].begins, &expected);
  json_decref(record);
  tap_report(training_compare(&expected, &actual, 1e-6, 1e-5), "%s %s", folder, cases[i].overrides);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  for (unsigned n_ranks = 1; n_ranks <= 2; n_ranks++) train_all(argv[1], n_ranks);
  for (size_t i = 0; i < N_CASES; i++) compare(argv[1], i);
  return tap_end();
}
