/* SPDX-License-Identifier: Apache-2.0 */
/* Real argument lists of Megatron-LM, and what its own validate_args made of each, as TAP: each is valid here
 * too, with at most three warnings, and the values that follow are the same. Where they differ the reviewed
 * file deviations.txt says why, a line each: KEY CASE REASON (KEY is a name or the id of an error); a line
 * that is not needed fails. Usage: corpus FOLDER; $NX_SHARED/corpora/megatron/expected.json is read, and
 * without it the test is skipped. */
#include "compiler/config/compile_settings.h"
#include "tests/tap.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARNINGS_MAX = 3, DEVIATIONS_MAX = 64 };

/* A name of Megatron's namespace, and the same here. */
static const struct {
  const char *key, *expression;
} fields[] = {
    {"accumulate_allreduce_grads_in_fp32", "@bf16 or @accumulate-allreduce-grads-in-fp32"},
    {"add_bias_linear", "model.bias"},
    {"add_position_embedding", "not @no-position-embedding"},
    {"add_qkv_bias", "model.qkv_bias"},
    {"align_param_gather", "not @no-align-param-gather and mesh.virtual_pipeline > 1"},
    {"apply_query_key_layer_scaling", "model.query_key_layer_scaling"},
    {"attention_softmax_in_fp32", "@attention-softmax-in-fp32 or model.query_key_layer_scaling"},
    {"bf16", "precision.param == 'bf16'"},
    {"bias_gelu_fusion", "not @no-bias-gelu-fusion and not @disable-bias-linear"},
    {"bias_swiglu_fusion", "not @no-bias-swiglu-fusion"},
    {"context_parallel_size", "mesh.context"},
    {"data_parallel_size", "mesh.data"},
    {"dataloader_type", "@dataloader-type == null ? 'single' : @dataloader-type"},
    {"encoder_num_layers", "model.layers"},
    {"encoder_seq_length", "model.sequence"},
    {"end_weight_decay", "optimizer.weight_decay"},
    {"expert_model_parallel_size", "mesh.expert"},
    {"ffn_hidden_size", "model.ffn_hidden"},
    {"fp16", "precision.param == 'fp16'"},
    {"global_batch_size", "batch.global"},
    {"gradient_accumulation_fusion", "not @no-gradient-accumulation-fusion"},
    {"group_query_attention", "@group-query-attention"},
    {"hidden_size", "model.hidden"},
    {"kv_channels", "model.head_dim"},
    {"lr", "optimizer.lr"},
    {"masked_softmax_fusion", "not @no-masked-softmax-fusion"},
    {"max_position_embeddings", "model.max_positions"},
    {"micro_batch_size", "batch.micro"},
    {"min_lr", "schedule.min_lr"},
    {"num_attention_heads", "model.heads"},
    {"num_experts", "moe.experts == 0 ? null : moe.experts"},
    {"num_layers", "model.layers"},
    {"num_query_groups", "@num-query-groups"},
    {"overlap_grad_reduce", "@overlap-grad-reduce"},
    {"overlap_p2p_comm", "not @no-overlap-p2p-communication and mesh.virtual_pipeline > 1"},
    {"overlap_param_gather", "@overlap-param-gather"},
    {"params_dtype", "precision.param == 'fp16' ? 'half' : precision.param == 'bf16' ? 'bf16' : 'float'"},
    {"pipeline_model_parallel_size", "mesh.pipeline"},
    {"position_embedding_type", "model.position_embedding == 'learned' ? 'learned_absolute' : "
                                "model.position_embedding"},
    {"recompute_granularity", "recompute.granularity == 'none' ? null : recompute.granularity"},
    {"recompute_method", "@recompute-method"},
    {"recompute_num_layers", "@recompute-num-layers"},
    {"seq_length", "model.sequence"},
    {"sequence_parallel", "sequence_parallel"},
    {"split", "@split"},
    {"start_weight_decay", "optimizer.weight_decay"},
    {"swiglu", "model.activation == 'swiglu'"},
    {"tensor_model_parallel_size", "mesh.tensor"},
    {"tokenizer_type", "@tokenizer-type == null ? 'GPT2BPETokenizer' : @tokenizer-type"},
    {"train_iters", "@train-iters"},
    {"train_samples", "@train-samples"},
    {"transformer_pipeline_model_parallel_size", "mesh.pipeline"},
    {"untie_embeddings_and_output_weights", "not model.tied_embeddings"},
    {"use_dist_ckpt", "@ckpt-format != 'torch'"},
    {"use_distributed_optimizer", "optimizer.zero_stage == 1"},
    {"use_rotary_position_embeddings", "@use-rotary-position-embeddings"},
    {"virtual_pipeline_model_parallel_size", "mesh.virtual_pipeline == 1 ? null : mesh.virtual_pipeline"},
    {"weight_decay", "optimizer.weight_decay"},
    {"world_size", "mesh.world"},
};

typedef struct deviation {
  char key[96], in[160];
  bool used;
} deviation;

static deviation deviations[DEVIATIONS_MAX];
static size_t n_deviations;

static bool read_deviations(const char *folder) {
  char path[512], line[512];
  snprintf(path, sizeof path, "%s/deviations.txt", folder);
  FILE *file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL && n_deviations < DEVIATIONS_MAX) {
    deviation *read = &deviations[n_deviations];
    if (*line != '#' && sscanf(line, "%95s %159s", read->key, read->in) == 2) n_deviations++;
  }
  return file != NULL && fclose(file) == 0;
}

static bool is_known_deviation(const char *key, const char *name) {
  for (size_t i = 0; i < n_deviations; i++) {
    if (strcmp(deviations[i].key, key) == 0 && strcmp(deviations[i].in, name) == 0)
      return deviations[i].used = true;
  }
  return false;
}

static bool same(const nxc_value *found, const json_t *wanted) {
  if (found == NULL) return false;
  switch (found->kind) {
  case NXC_NULL: return json_is_null(wanted);
  case NXC_BOOL: return json_is_boolean(wanted) && json_boolean_value(wanted) == found->boolean;
  case NXC_INT: return json_is_number(wanted) && json_number_value(wanted) == (double)found->integer;
  case NXC_FLOAT: return json_is_number(wanted) && json_number_value(wanted) == found->number;
  case NXC_STRING: return json_is_string(wanted) && strcmp(json_string_value(wanted), found->text) == 0;
  default: return false;
  }
}

static bool compare(nxc_arena *arena, nxc_binding *binding, const char *name, const json_t *wanted) {
  bool good = true;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const json_t *value = json_object_get(wanted, fields[i].key);
    const nxc_value *found = nxc_binding_evaluate(binding, NULL, fields[i].expression);
    if (value == NULL || same(found, value) || is_known_deviation(fields[i].key, name)) continue;
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    tap_note("%s: %s is %s, and Megatron makes it %s", name, fields[i].key,
           found ? nxc_value_show(arena, found) : "unknown", text);
    free(text);
    good = false;
  }
  return good;
}

/* No error but the known ones, and few warnings. */
static bool check_findings(const nxc_sink *sink, const char *name) {
  size_t n_warnings = nxc_sink_count(sink, NXC_SEVERITY_WARNING);
  bool good = n_warnings <= WARNINGS_MAX;
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    bool bad = finding->severity == NXC_SEVERITY_ERROR && !is_known_deviation(finding->id, name);
    if (bad || (n_warnings > WARNINGS_MAX && finding->severity == NXC_SEVERITY_WARNING))
      tap_note("%s: %s %s", name, finding->id, finding->message);
    good = good && !bad;
  }
  return good;
}

static bool check_case(const char *name, const json_t *wanted) {
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  const json_t *argv = json_object_get(wanted, "argv");
  size_t n_words = json_array_size(argv);
  const char **words = nxc_arena_array(arena, n_words + 1, sizeof *words);
  for (size_t i = 0; i < n_words; i++) words[i] = json_string_value(json_array_get(argv, i));
  const char *world =
      nxc_arena_printf(arena, "%lld", (long long)json_integer_value(json_object_get(wanted, "world_size")));
  const nxc_request request = {
      .arguments = words, .n_arguments = n_words, .dialect = "megatron@0.10", .world_size = world};
  nxc_compiled compiled;
  nxc_compile_settings(arena, &request, sink, &compiled);
  bool good = check_findings(sink, name) && compiled.binding != NULL &&
              compare(arena, compiled.binding, name, json_object_get(wanted, "derived"));
  nxc_arena_free(arena);
  return good;
}

int main(int argc, char **argv) {
  const char *shared = getenv("NX_SHARED");
  char path[512];
  snprintf(path, sizeof path, "%s/corpora/megatron/expected.json", shared ? shared : "");
  json_t *cases = shared && argc == 2 ? json_load_file(path, 0, NULL) : NULL;
  if (cases == NULL) return tap_skip_all("NX_SHARED names no folder with corpora/megatron/expected.json");
  if (!read_deviations(argv[1])) return EXIT_FAILURE;
  const char *name;
  json_t *wanted;
  json_object_foreach(cases, name, wanted) {
    tap_report(check_case(name, wanted), "%s", name);
  }
  for (size_t i = 0; i < n_deviations; i++) {
    if (!deviations[i].used)
      tap_note("deviations.txt: %s %s is not needed", deviations[i].key, deviations[i].in);
    tap_report(deviations[i].used, "%s deviates in %s", deviations[i].in, deviations[i].key);
  }
  json_decref(cases);
  return tap_end();
}
