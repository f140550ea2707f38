/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun against PyTorch: `test_parity RECORDED CASE [nxrun arguments]` trains a recorded case on one rank and
 * compares losses, gradient norms, rates and, where they were recorded, the first step's gradients. See
 * tests/parity/README.md. */
#include "tests/parity/training.h"
#include "tests/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char llama[] =
    "mesh: {world: 1}\n"
    "model: {layers: 3, hidden: 64, ffn_hidden: 136, heads: 4, kv_heads: 2, max_positions: 32, vocab: 250,\n"
    "  normalization: rmsnorm, norm_epsilon: 1e-5, position_embedding: rope, activation: swiglu}\n";
static const char gpt2[] =
    "mesh: {world: 1}\n"
    "model: {layers: 2, hidden: 64, ffn_hidden: 256, heads: 4, max_positions: 32, vocab: 250, bias: true,\n"
    "  normalization: layernorm, norm_epsilon: 1e-5, position_embedding: learned, activation: gelu_tanh,\n"
    "  tied_embeddings: true, query_key_layer_scaling: false}\n";

static const char mixtral[] =
    "mesh: {world: 1}\n"
    "model: {layers: 2, hidden: 64, ffn_hidden: 72, heads: 4, kv_heads: 2, max_positions: 32, vocab: 250,\n"
    "  normalization: rmsnorm, norm_epsilon: 1e-5, position_embedding: rope, activation: swiglu}\n"
    "moe: {experts: 4, top_k: 2}\n";

static json_t *record; /* CASE.json */
static char overrides[8192];

static void set(const char *setting, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set(const char *setting, const char *format, ...) {
  char value[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(value, sizeof value, format, args);
  va_end(args);
  size_t used = strlen(overrides);
  snprintf(overrides + used, sizeof overrides - used, " --set 'nx:%s=%s'", setting, value);
}

static json_t *at(const char *section, const char *key) {
  json_t *value = json_object_get(json_object_get(record, section), key);
  return value;
}

static double number(const char *section, const char *key) {
  json_t *value = at(section, key);
  if (!json_is_number(value)) {
    fprintf(stderr, "the record lacks %s.%s\n", section, key);
    exit(1);
  }
  return json_number_value(value);
}

static const char *text(const char *section, const char *key) {
  const char *value = json_string_value(at(section, key));
  return value ? value : "";
}

static void set_optimizer(void) {
  set("optimizer.name", "%s", text("optimizer", "name"));
  set("optimizer.lr", "%.17g", number("optimizer", "lr"));
  set("optimizer.weight_decay", "%.17g", number("optimizer", "weight_decay"));
  json_t *clip = at("optimizer", "clip_norm"), *betas = at("optimizer", "betas");
  if (json_is_number(clip)) set("optimizer.clip_norm", "%.17g", json_number_value(clip));
  else set("optimizer.clip_norm", "null");
  if (betas == NULL) return;
  set("optimizer.betas", "[%.17g, %.17g]", json_number_value(json_array_get(betas, 0)),
      json_number_value(json_array_get(betas, 1)));
  set("optimizer.epsilon", "%.17g", number("optimizer", "eps"));
}

/* As the recorder's muon.py reads them. */
static void set_muon(void) {
  if (strcmp(text("optimizer", "name"), "muon") != 0) return;
  char *joined = json_dumps(at("optimizer", "joined"), 0);
  set("optimizer.joined", "%s", joined);
  free(joined);
  set("optimizer.matrix_routers", "%s", json_is_true(at("optimizer", "matrix_routers")) ? "true" : "false");
  if (json_is_true(at("optimizer", "stacked_scale"))) set("optimizer.stacked_scale", "true");
  if (at("optimizer", "matrix_parts"))
    set("optimizer.matrix_parts", "%.17g", number("optimizer", "matrix_parts"));
  if (at("optimizer", "expert_parts"))
    set("optimizer.expert_parts", "%.17g", number("optimizer", "expert_parts"));
  set("optimizer.nesterov", "true");
  set("optimizer.momentum", "%.17g", number("optimizer", "momentum"));
  set("optimizer.ns_steps", "%.17g", number("optimizer", "ns_steps"));
  set("optimizer.ns_coefficients", "%s", text("optimizer", "ns_coefficients"));
  set("optimizer.update_scale", "%s", text("optimizer", "update_scale"));
  set("optimizer.update_factor", "%.17g", number("optimizer", "update_factor"));
}

static void set_schedule(void) {
  bool cosine = strcmp(text("schedule", "name"), "CosineAnnealing") == 0;
  set("schedule.name", "%s", cosine ? "cosine" : "linear");
  set("schedule.warmup_steps", "%.0f", number("schedule", "warmup_steps"));
  set("schedule.max_steps", "%.0f", number("schedule", "max_steps"));
  if (cosine) set("schedule.min_lr", "%.17g", number("schedule", "min_lr"));
}

static void set_precision(void) {
  bool bf16 = strcmp(text("precision", "parameter"), "bf16") == 0;
  if (!bf16) return;
  set("precision.param", "bf16");
  set("precision.compute", "bf16");
  set("precision.master_weights", "true");
}

static void set_mixture(void) {
  bool pre_softmax = json_is_true(at("mixture", "pre_softmax"));
  if (!json_is_object(json_object_get(record, "mixture"))) return;
  set("moe.pre_softmax", "%s", pre_softmax ? "true" : "false");
  set("moe.normalize_top_k", "%s", pre_softmax ? "true" : "false");
  set("moe.aux_loss_scope", "%s", text("mixture", "aux_loss_scope"));
  if (at("mixture", "aux_loss_over")) set("moe.aux_loss_over", "%s", text("mixture", "aux_loss_over"));
  set("moe.aux_loss_coef", "%.17g", number("mixture", "router_aux_loss_coef"));
  set("moe.z_loss_coef", "%.17g", number("mixture", "z_loss_coef"));
}

static void set_all(const char *recorded) {
  set("batch.global", "%.0f", number("batch", "global"));
  set("batch.micro", "%.0f", number("batch", "micro"));
  set("model.sequence", "%.0f", number("batch", "sequence"));
  if (json_is_true(json_object_get(record, "query_key_layer_scaling")))
    set("model.query_key_layer_scaling", "true");
  set("data.path", "[%s/%s]", recorded, json_string_value(json_object_get(record, "data")));
  set("data.shuffle", "false");
  set("data.validation_path", "[%s/%s]", recorded, json_string_value(json_object_get(record, "data")));
  set("evaluate.batches", "1");
  set("evaluate.sanity_batches", "1");
  set("run.init_from", "%s/%s", recorded, json_string_value(json_object_get(record, "init_from")));
  set_optimizer();
  set_muon();
  set_schedule();
  set_precision();
  set_mixture();
}

/* Where tensor-parallel ranks make their own parts orthogonal there are so many. */
static unsigned n_ranks(void) {
  if (at("optimizer", "tensor") == NULL) return 1;
  double n = number("optimizer", "tensor");
  set("mesh.world", "%.0f", n);
  set("mesh.tensor", "%.0f", n);
  set("optimizer.blockwise", "true");
  return (unsigned)n;
}

static const char *config_of(const char *model) {
  if (strcmp(model, "mixtral") == 0) return mixtral;
  return strcmp(model, "llama") == 0 ? llama : gpt2;
}

/* Before the first step the validation set, which is the training's, has PyTorch's loss of the first batch,
 * and to the last bit the loss that training finds. */
static bool is_evaluated(const training_result *expected, const training_result *actual, double allowed) {
  double first = expected->steps[0].loss, found = actual->evaluations[0];
  bool good =
      actual->n_evaluations == 1 && found == actual->steps[0].loss && fabs(found - first) <= allowed * first;
  tap_note("evaluation: loss %.9g, PyTorch's %.9g, of the first step %.9g", found, first,
           actual->steps[0].loss);
  return good;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *recorded = argv[1], *name = argv[2];
  char path[4096], folder[512], actual_path[1024];
  snprintf(path, sizeof path, "%s/%s.json", recorded, name);
  record = json_load_file(path, 0, NULL);
  if (record == NULL) return fprintf(stderr, "cannot read %s\n", path), 1;
  set_all(recorded);
  const char *config = config_of(json_string_value(json_object_get(record, "model")));
  snprintf(folder, sizeof folder, "parity-%s%s", name, argc > 3 ? "-with-arguments" : "");
  char arguments[1024] = "";
  for (int i = 3; i < argc; i++) {
    size_t used = strlen(arguments);
    snprintf(arguments + used, sizeof arguments - used, " %s", argv[i]);
  }
  const char *gradients = json_string_value(json_object_get(record, "first_gradients"));
  const training request = {.folder = folder, .config = config, .overrides = overrides,
                            .arguments = arguments, .n_ranks = n_ranks(), .gradients = gradients != NULL};
  training_result expected, actual;
  training_expect(json_object_get(record, "steps"), 0, &expected);
  training_run(&request, &actual);
  double allowed = json_number_value(json_object_get(record, "tolerance"));
  bool good = training_compare(&expected, &actual, allowed, allowed);
  good = is_evaluated(&expected, &actual, allowed) && good;
  if (gradients) {
    snprintf(path, sizeof path, "%s/%s", recorded, gradients);
    snprintf(actual_path, sizeof actual_path, "%s/gradients/gradients.safetensors", folder);
    double tolerance = json_number_value(json_object_get(record, "first_gradient_tolerance"));
    good = training_compare_tensors(path, actual_path, tolerance) && good;
  }
  json_decref(record);
  tap_report(good, "%s", folder);
  return tap_end();
}
