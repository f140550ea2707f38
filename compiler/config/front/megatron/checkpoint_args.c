/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments that Megatron keeps in its own checkpoints, for --use-checkpoint-args: those that say the
 * model take the place of what is given here, as Megatron's own loader has it. */
#include "compiler/config/front/megatron/checkpoint_args.h"

#include "compiler/config/front/megatron/front_megatron.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"
#include "schema/torch/torch_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- which arguments ---- */

typedef enum when { ALWAYS, WHERE_NONE, DEGREES } when;

/* Names of argparse's namespace. What is taken where there is none stays as it is given, or as its default;
 * degrees are taken where use-mp-args-from-checkpoint-args asks for them, and before it came always. */
static const struct {
  const char *name;
  when when;
} taken[] = {
    {"num_layers", WHERE_NONE},
    {"hidden_size", WHERE_NONE},
    {"ffn_hidden_size", WHERE_NONE},
    {"seq_length", WHERE_NONE},
    {"num_attention_heads", WHERE_NONE},
    {"num_query_groups", ALWAYS},
    {"group_query_attention", ALWAYS},
    {"kv_channels", WHERE_NONE},
    {"max_position_embeddings", WHERE_NONE},
    {"position_embedding_type", ALWAYS},
    {"add_position_embedding", ALWAYS},
    {"use_rotary_position_embeddings", ALWAYS},
    {"rotary_base", ALWAYS},
    {"rotary_percent", ALWAYS},
    {"rotary_interleaved", ALWAYS},
    {"disable_bias_linear", ALWAYS}, /* as the oldest have it */
    {"add_bias_linear", ALWAYS},
    {"add_qkv_bias", ALWAYS},
    {"squared_relu", ALWAYS},
    {"swiglu", ALWAYS},
    {"untie_embeddings_and_output_weights", ALWAYS},
    {"apply_layernorm_1p", ALWAYS},
    {"normalization", ALWAYS},
    {"apply_query_key_layer_scaling", ALWAYS},
    {"attention_dropout", ALWAYS},
    {"hidden_dropout", ALWAYS},
    {"spec", ALWAYS},
    {"num_experts", ALWAYS},
    {"mtp_num_layers", ALWAYS},
    {"moe_layer_freq", ALWAYS},
    {"moe_ffn_hidden_size", ALWAYS},
    {"moe_router_topk", ALWAYS},
    {"moe_router_pre_softmax", ALWAYS},
    {"moe_grouped_gemm", ALWAYS},
    {"moe_shared_expert_intermediate_size", ALWAYS},
    {"moe_router_score_function", ALWAYS},
    {"moe_router_enable_expert_bias", ALWAYS},
    {"moe_router_topk_scaling_factor", ALWAYS},
    {"moe_latent_size", ALWAYS},
    {"hybrid_layer_pattern", WHERE_NONE},
    {"heterogeneous_layers_config_path", ALWAYS},
    {"padded_vocab_size", WHERE_NONE},
    {"tensor_model_parallel_size", DEGREES},
    {"pipeline_model_parallel_size", DEGREES},
    {"num_virtual_stages_per_pipeline_rank", DEGREES},
    {"expert_model_parallel_size", DEGREES},
};
enum { N_TAKEN = sizeof taken / sizeof *taken };

/* ---- the file ---- */

static const char *existing(nxc_arena *arena, const char *folder, const char *name) {
  const char *path = nxc_arena_printf(arena, "%s/%s", folder, name);
  return access(path, R_OK) == 0 ? path : NULL;
}

/* What has the arguments in a checkpoint's folder: of torch_dist, or of the first rank. */
static const char *file_in(nxc_arena *arena, const char *folder) {
  static const char *const names[] = {"common.pt", "mp_rank_00/model_optim_rng.pt",
                                      "mp_rank_00_000/model_optim_rng.pt",
                                      "mp_rank_00_000_000/model_optim_rng.pt"};
  const char *path = NULL;
  for (size_t i = 0; path == NULL && i < sizeof names / sizeof *names; i++)
    path = existing(arena, folder, names[i]);
  return path;
}

/* A run's folder has one for each step, and a file that names the newest ("release": of no step). */
static const char *find_file(nxc_arena *arena, const char *folder, const nxc_value *step) {
  enum { WORD_BYTES_MAX = 64 };
  const char *path = file_in(arena, folder),
             *newest = existing(arena, folder, "latest_checkpointed_iteration.txt");
  const nxc_source *word =
      path == NULL && newest ? nxc_source_read_file(arena, newest, WORD_BYTES_MAX) : NULL;
  if (word == NULL) return path;
  long long number = strtoll(word->text, NULL, 10);
  if (step != NULL && step->kind == NXC_INT && step->integer > 0) number = step->integer;
  const char *name = number > 0 ? nxc_arena_printf(arena, "iter_%07lld", number) : "release";
  return file_in(arena, nxc_arena_printf(arena, "%s/%s", folder, name));
}

/* ---- values ---- */

/* False: None, or something that is no plain value. */
static bool value_of(nxc_arena *arena, const nx_object *object, nxc_value *value) {
  switch (object->kind) {
  case NX_OBJECT_BOOL: *value = (nxc_value){.kind = NXC_BOOL, .boolean = object->integer != 0}; return true;
  case NX_OBJECT_INT: *value = (nxc_value){.kind = NXC_INT, .integer = object->integer}; return true;
  case NX_OBJECT_FLOAT: *value = (nxc_value){.kind = NXC_FLOAT, .number = object->number}; return true;
  case NX_OBJECT_TEXT:
    *value = nxc_string_value(nxc_arena_strdup(arena, object->text), strlen(object->text));
    return true;
  case NX_OBJECT_LIST: {
    nxc_value *items = nxc_arena_array(arena, object->n_items + 1, sizeof *items);
    for (size_t i = 0; i < object->n_items; i++)
      if (object->items[i]->kind == NX_OBJECT_LIST || !value_of(arena, object->items[i], &items[i]))
        return false;
    *value = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = object->n_items};
    return true;
  }
  default: return false;
  }
}

typedef struct taker {
  nxc_binding *binding;
  const char *path;
  const nx_object *args;
  bool degrees;
  nxc_value values[N_TAKEN]; /* NXC_NULL: the checkpoint has none */
  const nxc_source *shown;   /* the arguments that say the model, a line each */
} taker;

static void read_values(taker *t) {
  nxc_arena *arena = t->binding->arena;
  const char *text = "";
  for (size_t i = 0; i < N_TAKEN; i++) {
    const nx_object *object = nx_object_get(t->args, taken[i].name);
    nxc_value *value = &t->values[i];
    if (object == NULL || !value_of(arena, object, value)) *value = (nxc_value){.kind = NXC_NULL};
    text = nxc_arena_printf(arena, "%s%s: %s\n", text, taken[i].name, nxc_value_show(arena, value));
  }
  t->shown = nxc_source_new(arena, t->path, text, strlen(text));
}

/* ---- options ---- */

static void report_differing(const taker *t, const nxc_bound *bound, const nxc_value *value) {
  bool differs = bound->given && bound->value != NULL && !nxc_value_equal(bound->value, value);
  if (!differs) return;
  nxc_report(t->binding->sink, "NX1323", NXC_SEVERITY_NOTE, bound->at, "leave it out",
             "%s is %s in %s, which counts", bound->row->name, nxc_value_show(t->binding->arena, value),
             t->path);
}

/* What is as it is where nothing is given counts as not given. */
static void give(const taker *t, nxc_bound *bound, size_t index, const nxc_value *value) {
  const nxc_value *initial = nxc_option_default(bound->row, t->binding->version);
  const nxc_span at = {t->shown, (uint32_t)index + 1, 1, (uint32_t)strlen(taken[index].name)};
  nxc_node *node = nxc_node_new(t->binding->arena, NXC_NODE_SCALAR, at);
  node->raw = nxc_value_show(t->binding->arena, value);
  node->raw_bytes = (uint32_t)strlen(node->raw);
  node->value = *value;
  report_differing(t, bound, value);
  bound->given = initial == NULL || !nxc_value_equal(initial, value);
  bound->lacks = false;
  bound->at = at;
  bound->node = node;
  bound->value = value;
  bound->kind = NXC_FROM_MODEL_CONFIG;
}

static void take(const taker *t, size_t index) {
  nxc_binding *binding = t->binding;
  bool opposite;
  const char *option = nxc_megatron_option_of(binding->arena, taken[index].name, &opposite);
  const nxc_bound *found = nxc_binding_find(binding, option);
  if (found == NULL || t->values[index].kind == NXC_NULL) return;
  bool has = found->value != NULL && found->value->kind != NXC_NULL;
  if ((has && taken[index].when == WHERE_NONE) || (taken[index].when == DEGREES && !t->degrees)) return;
  nxc_value *value = nxc_arena_alloc(binding->arena, sizeof *value);
  *value = t->values[index];
  if (opposite && value->kind == NXC_BOOL) value->boolean = !value->boolean;
  nxc_verdict verdict = nxc_domain_judge(binding->arena, &found->row->domain, value, true);
  if (verdict.misfit != NXC_FITS && value->kind == NXC_LIST) { /* a pattern is text here */
    const char *text = nxc_value_show(binding->arena, value);
    *value = nxc_string_value(text, strlen(text));
    verdict = nxc_domain_judge(binding->arena, &found->row->domain, value, true);
  }
  if (verdict.misfit == NXC_FITS) give(t, &binding->options[found - binding->options], index, verdict.value);
  else
    nxc_report(binding->sink, "NX1323", NXC_SEVERITY_WARNING, found->at, "give the option here",
               "%s of %s is left alone: it %s", taken[index].name, t->path, verdict.problem);
}

static const nxc_value *value_of_option(const nxc_binding *binding, const char *name) {
  const nxc_bound *bound = nxc_binding_find(binding, name);
  return bound != NULL && bound->value != NULL && bound->value->kind != NXC_NULL ? bound->value : NULL;
}

static bool is_on(const nxc_binding *binding, const char *name) {
  const nxc_value *value = value_of_option(binding, name);
  return value != NULL && nxc_value_is_true(value);
}

static const char asks_for_degrees[] = "use-mp-args-from-checkpoint-args";

/* Before the switch that asks for degrees came, they were always taken. */
static bool takes_degrees(const nxc_binding *binding) {
  const nxc_option_row *row = nxc_option_find(binding->dialect, asks_for_degrees);
  bool there = binding->version == NULL || nxc_in_version(row->versions, row->n_versions, binding->version);
  return !there || is_on(binding, asks_for_degrees);
}

static bool take_all(nxc_binding *binding, const char *path, const uint8_t *bytes, size_t n_bytes,
                     nx_fault *fault) {
  nx_torch_file file;
  if (!nx_torch_open(path, bytes, n_bytes, &file, fault)) return false;
  taker t = {.binding = binding, .path = path, .args = nx_object_get(file.pickle.root, "args")};
  bool good = t.args != NULL && nx_object_get(t.args, "num_layers") != NULL;
  if (good) {
    t.degrees = takes_degrees(binding);
    read_values(&t);
    for (size_t i = 0; i < N_TAKEN; i++) take(&t, i);
  } else snprintf(fault->text, sizeof fault->text, "%s has no arguments of a training", path);
  nx_torch_close(&file);
  return good;
}

static bool read_file(nxc_binding *binding, const char *path, nx_fault *fault) {
  struct stat status;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool good = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  void *bytes = good ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  if (file >= 0) close(file);
  snprintf(fault->text, sizeof fault->text, "%s cannot be read", path);
  if (bytes == MAP_FAILED) return false;
  good = take_all(binding, path, bytes, (size_t)status.st_size, fault);
  munmap(bytes, (size_t)status.st_size);
  return good;
}

/* The checkpoint of Megatron itself that load names, or pretrained-checkpoint; NULL: none is here. */
static const char *find_checkpoint(const nxc_binding *binding) {
  const nxc_value *folder = value_of_option(binding, "load");
  if (folder == NULL) folder = value_of_option(binding, "pretrained-checkpoint");
  if (folder == NULL || folder->kind != NXC_STRING) return NULL;
  return find_file(binding->arena, folder->text, value_of_option(binding, "ckpt-step"));
}

void nxc_megatron_take_args(nxc_binding *binding) {
  if (!is_on(binding, "use-checkpoint-args")) return;
  const nxc_bound *asks = nxc_binding_find(binding, "use-checkpoint-args"),
                  *degrees = nxc_binding_find(binding, asks_for_degrees);
  const char *path = find_checkpoint(binding);
  nx_fault fault = {""};
  binding->model_taken = path != NULL && read_file(binding, path, &fault);
  if (path != NULL && !binding->model_taken)
    nxc_report(binding->sink, "NX1323", NXC_SEVERITY_WARNING, asks->at,
               "give the options of the model here, which count where the checkpoint has none",
               "the model of this checkpoint is not known: %s", fault.text);
  if (!binding->model_taken && is_on(binding, asks_for_degrees))
    nxc_report(
        binding->sink, "NX1401", binding->for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_NOTE, degrees->at,
        "give the degrees",
        "nxrun cannot execute %s: the plan needs the degrees before it runs, and there is no checkpoint "
        "of Megatron that nxcfg can read",
        asks_for_degrees);
}
