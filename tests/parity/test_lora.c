/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun against PEFT: `test_lora RECORDED [KofN]` trains adapters beside the tiny models of transformers,
 * from those that PEFT saved, on one rank in fp32 and bf16 and on meshes in fp32, and compares with what PEFT
 * made of them (record_lora.py): loss and gradient norm of every step, and the adapters at the end. */
#include "tests/parity/training.h"
#include "tests/tap.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct lora_case {
  const char *name, *family, *overrides;
  double tensor_tolerance; /* where it is not that of the variant */
  const char *base;        /* folder of the model, where it is none of the families */
  const char *made;        /* of a second case of one record, what the folder's name ends with */
} lora_case;

static const lora_case cases[] = {
    {"llama", "llama", SET("lora.rank", "4") SET("lora.alpha", "8")},
    {"llama_bias", "llama_bias",
     SET("lora.rank", "3") SET("lora.alpha", "16") SET("lora.modules", "[q_proj,v_proj]")
         SET("lora.bias", "all") SET("lora.rank_stabilized", "true")},
    {"qwen3", "qwen3",
     SET("lora.rank", "4") SET("lora.alpha", "4") SET("lora.modules", "[self_attn.q_proj,v_proj,lm_head]")},
    {"gpt2", "gpt2", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.modules", "[c_attn,mlp.c_proj]")},
    {"gpt2_bias", "gpt2",
     SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.modules", "[c_fc,attn.c_proj]")
         SET("lora.bias", "lora_only")},
    {"gpt_neox", "gpt_neox",
     SET("lora.rank", "2") SET("lora.alpha", "8") SET("lora.modules", "[query_key_value,dense_4h_to_h]")
         SET("lora.bias", "all"),
     1e-3}, /* biases of keys that are not rotated have no gradient but rounding, which Adam enlarges */
    {"nf4", "llama", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "nf4"), 0,
     "lora/nf4/base"},
    {"nf4_stored", "llama", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "nf4"), 0,
     "lora/nf4_stored/base"},
    {"nf4_double_stored", "llama", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "nf4"),
     0, "lora/nf4_double_stored/base"},
    {"nf4_double_stored", "llama",
     SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "nf4")
         SET("lora.double_quantization", "true"),
     0, "lora/nf4/base", "-made"},
    {"nvfp4", "llama", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "nvfp4"), 0,
     "lora/nf4/base"},
    {"nvfp4_stored", "llama", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "nvfp4"), 0,
     "lora/nvfp4_stored/base"},
    {"mxfp4", "llama", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "mxfp4"), 0,
     "lora/nf4/base"},
    {"mxfp4_stored", "llama", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "mxfp4"), 0,
     "lora/mxfp4_stored/base"},
    {"block_fp8", "llama", SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "block_fp8"), 0,
     "lora/block_fp8/base"},
    {"block_fp8_stored", "llama",
     SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.base_type", "block_fp8"), 0,
     "lora/block_fp8_stored/base"},
    {"experts", "qwen3_moe",
     SET("lora.rank", "3") SET("lora.alpha", "6")
         SET("lora.modules", "[q_proj,gate_proj,up_proj,down_proj]")},
    {"experts_shared", "qwen3_moe",
     SET("lora.rank", "3") SET("lora.alpha", "6") SET("lora.shared_by_experts", "true")
         SET("lora.modules", "[q_proj,gate_proj,up_proj,down_proj]")},
    {"phi3", "phi3",
     SET("lora.rank", "4") SET("lora.alpha", "8") SET("lora.modules", "[qkv_proj,gate_up_proj,o_proj]")},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct variant {
  const char *name;
  unsigned n_ranks;
  const char *overrides;
  double tolerance, norm_tolerance, tensor_tolerance; /* relative; 0: adapters are not compared */
  bool bf16, once;                                    /* once: of the first case alone */
} variant;

static const variant variants[] = {
    {"fp32", 1, SET("mesh.world", "1"), 1e-6, 1e-5, 1e-5, false, false},
    {"bf16", 1,
     SET("mesh.world", "1") SET("precision.param", "bf16") SET("precision.compute", "bf16")
         SET("precision.master_weights", "true"),
     2e-3, 2e-2, 0, true, false},
    {"recomputed", 1, SET("mesh.world", "1") SET("recompute.granularity", "full"), 1e-6, 1e-5, 1e-5, false,
     true},
    {"tp2", 2, SET("mesh.world", "2") SET("mesh.tensor", "2"), 1e-6, 1e-5, 1e-5, false, true},
    {"tp2-sp", 2, SET("mesh.world", "2") SET("mesh.tensor", "2") SET("sequence_parallel", "true"), 1e-6, 1e-5,
     1e-5, false, false},
    {"pp2", 2, SET("mesh.world", "2") SET("mesh.pipeline", "2"), 1e-6, 1e-5, 1e-5, false, true},
    {"cp2", 2, SET("mesh.world", "2") SET("mesh.context", "2") SET("attention.ring", "true"), 1e-6, 1e-5,
     1e-5, false, true},
    {"dp2-zero1", 2, SET("mesh.world", "2") SET("optimizer.zero_stage", "1"), 1e-6, 1e-5, 1e-5, false, true},
    {"dp2-zero3", 2, SET("mesh.world", "2") SET("optimizer.zero_stage", "3"), 1e-6, 1e-5, 1e-5, false, false},
    {"ep2", 2, SET("mesh.world", "2") SET("mesh.expert", "2"), 1e-6, 1e-5, 1e-5, false, false},
    {"etp2", 2, SET("mesh.world", "2") SET("mesh.tensor", "2") SET("mesh.expert_tensor", "2"), 1e-6, 1e-5,
     1e-5, false, false},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static const char *recorded;
static training_share share;

static void folder_of(char *folder, size_t n_bytes, const lora_case *c, const variant *v) {
  snprintf(folder, n_bytes, "lora-%s%s-%s", c->name, c->made ? c->made : "", v->name);
}

static bool is_run(size_t which, size_t how) {
  if (!training_is_in(&share, which + how)) return false;
  bool experts = strncmp(cases[which].name, "experts", strlen("experts")) == 0;
  if (strstr(variants[how].overrides, "mesh.expert") && !experts) return false;
  if (experts && variants[how].bf16) return false; /* not recorded */
  if (cases[which].base && strstr(variants[how].overrides, "mesh.tensor"))
    return false; /* blocks would be cut */
  return which == 0 || !variants[how].once;
}

static void compile(const lora_case *c, const variant *v) {
  char folder[256], model[512], overrides[4096];
  folder_of(folder, sizeof folder, c, v);
  snprintf(model, sizeof model, "%s/%s%s", recorded, c->base ? c->base : "families/",
           c->base ? "" : c->family);
  snprintf(overrides, sizeof overrides,
           "--model-config %s/config.json --set 'nx:data.path=[%s/tokens]' "
           "--set nx:run.init_from=%s/model.safetensors --set nx:lora.init_from=%s/lora/%s %s %s",
           model, recorded, model, recorded, c->name, c->overrides, v->overrides);
  training_compile(&(training){
      .folder = folder, .config = training_recorded, .overrides = overrides, .n_ranks = v->n_ranks});
}

static void train_all(unsigned n_ranks) {
  static char words[1 << 14];
  char name[64];
  size_t used = 0;
  for (size_t i = 0; i < N_CASES; i++)
    for (size_t j = 0; j < N_VARIANTS; j++) {
      char folder[256];
      if (variants[j].n_ranks != n_ranks || !is_run(i, j)) continue;
      compile(&cases[i], &variants[j]);
      folder_of(folder, sizeof folder, &cases[i], &variants[j]);
      used += (size_t)snprintf(words + used, sizeof words - used, "%s ", folder);
    }
  if (used >= sizeof words) tap_bail("too many cases");
  snprintf(name, sizeof name, "lora-%s", share.name);
  training_together(n_ranks, name, words);
}

static void read_expected(const lora_case *c, const variant *v, training_result *expected) {
  char path[512];
  snprintf(path, sizeof path, "%s/lora/%s/record.json", recorded, c->name);
  json_t *record = json_load_file(path, 0, NULL);
  const json_t *steps = json_object_get(record, v->bf16 ? "bf16" : "fp32");
  if (record == NULL) tap_bail("cannot read %s", path);
  training_expect(steps, 0, expected);
  json_decref(record);
}

/* adapter_config.json says what PEFT's says, as far as both do and it changes what the adapters are. */
static bool same_config(const lora_case *c, const char *folder) {
  static const char *const keys[] = {"peft_type",  "task_type",     "r", "lora_alpha", "bias",
                                     "use_rslora", "fan_in_fan_out"};
  char path[512];
  bool good = true;
  snprintf(path, sizeof path, "%s/lora/%s/adapter_config.json", recorded, c->name);
  json_t *theirs = json_load_file(path, 0, NULL);
  snprintf(path, sizeof path, "%s/run/checkpoints/step-000020/adapter_config.json", folder);
  json_t *ours = json_load_file(path, 0, NULL);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (json_equal(json_object_get(ours, keys[i]), json_object_get(theirs, keys[i]))) continue;
    tap_note("adapter_config.json says another %s", keys[i]);
    good = false;
  }
  json_decref(theirs);
  json_decref(ours);
  return good;
}

static void compare(const lora_case *c, const variant *v) {
  training_result expected, actual;
  char folder[256], theirs[512], ours[512];
  folder_of(folder, sizeof folder, c, v);
  read_expected(c, v, &expected);
  training_read(folder, &actual);
  bool good = training_compare(&expected, &actual, v->tolerance, v->norm_tolerance);
  snprintf(theirs, sizeof theirs, "%s/lora/%s/last/adapter_model.safetensors", recorded, c->name);
  snprintf(ours, sizeof ours, "%s/run/checkpoints/step-000020/adapter_model.safetensors", folder);
  double tolerance = c->tensor_tolerance > 0 ? c->tensor_tolerance : v->tensor_tolerance;
  if (v->tensor_tolerance > 0) good = training_compare_tensors(theirs, ours, tolerance) && good;
  tap_report(same_config(c, folder) && good, "%s", folder);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  recorded = argv[1];
  share = training_share_of(argv[2]);
  for (unsigned n_ranks = 1; n_ranks <= 2; n_ranks++) train_all(n_ranks);
  for (size_t i = 0; i < N_CASES; i++)
    for (size_t j = 0; j < N_VARIANTS; j++)
      if (is_run(i, j)) compare(&cases[i], &variants[j]);
  return tap_end();
}
