/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the systems that files are written for, against numbers made by hand, and against Megatron-LM's
 * own report. The model: 24 layers, width 2048, 16 heads, network 8192, 50304 words, tied: 24 * (12 * 2048^2
 * + 2 * 2048)
 * + 50304 * 2048 + 2048 = 1311082496 parameters. */
#include "compiler/estimate/assume.h"
#include "compiler/estimate/memory.h"
#include "compiler/machine/machine.h"
#include "compiler/machine/names.h"
#include "tests/unit/estimate_case.h"

#include <jansson.h>
#include <math.h>

static const double parameters = 1311082496, gib = 1 << 30;

static nxc_own_memory first_stage(const estimate *e) {
  return nxc_own_memory_of_stage(e->system, &e->sizes, &e->training, 0, e->c.arena);
}

static void near_to(const char *what, double found, double wanted, double share) {
  if (fabs(found - wanted) > share * wanted)
    fail_msg("%s: %.4f GiB, wanted %.4f GiB within %.2g", what, found / gib, wanted / gib, share);
}

/* ---- each system by hand ---- */

typedef struct state_case {
  const char *system, *changes;
  double parameters, gradients, optimizer; /* bytes of a parameter of the model */
} state_case;

/* Eight data-parallel ranks. */
static const state_case states[] = {
    /* bf16 parameters, fp32 main gradients; fp32 parameters and two moments */
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=0", 2, 4, 12},
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=1", 2, 4, 12.0 / 8},
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=1 optimizer.name=lion", 2, 4, 8.0 / 8},
    /* rules that other settings choose have states of their own */
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.amsgrad=true", 2, 2 + 4, 16},
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.name=sgd", 2, 4, 4},
    {"megatron", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.name=sgd optimizer.momentum=0.9", 2, 4,
     8},
    {"megatron", MODEL "mesh.world=8 mesh.tensor=8 optimizer.zero_stage=0", 2.0 / 8, 4.0 / 8, 12.0 / 8},
    /* DeepSpeed: bf16 gradients of a micro-batch beside the fp32 sum; of ZeRO the share's fp32 gradients
     * too */
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=0", 2, 2 + 4, 12},
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=1", 2, 2 + 4, 16.0 / 8},
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=2", 2, 6.0 / 8, 16.0 / 8},
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=3", 2.0 / 8, 6.0 / 8, 16.0 / 8},
    {"neox", MODEL "mesh.world=8 optimizer.zero_stage=0 optimizer.name=onebitadam", 2, 2 + 4, 16},
    /* NxDT: master weights and moments divided, and the share's gradients in fp32 */
    {"nxdt", MODEL "mesh.world=8 optimizer.zero_stage=0", 2, 4, 12},
    {"nxdt", MODEL "mesh.world=8 optimizer.zero_stage=1", 2, 4 + 4.0 / 8, 12.0 / 8},
    /* nx: what the stage of ZeRO says is divided */
    {"nx", MODEL "mesh.world=8 optimizer.zero_stage=1", 2, 4, 12.0 / 8},
    /* the update reads gradients in fp32, whatever they are summed in */
    {"nx", MODEL "mesh.world=8 optimizer.zero_stage=1 precision.grad_accumulation=bf16", 2, 2, 16.0 / 8},
    {"neox",
     MODEL "mesh.world=8 optimizer.zero_stage=1 alignment.strategy=dpo alignment.reference_model=true", 2 + 2,
     2 + 4, 16.0 / 8},
    /* nx: what answers are compared with is found out before the training, without a second model */
    {"nx", MODEL "mesh.world=8 optimizer.zero_stage=1 alignment.strategy=dpo alignment.reference_model=true",
     2, 4, 12.0 / 8},
};

static void test_state(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    estimate e = estimate_of(states[i].system, states[i].changes);
    nxc_own_memory m = first_stage(&e);
    char what[400];
    snprintf(what, sizeof what, "%s %s", states[i].system, strstr(states[i].changes, "mesh.world"));
    near_to(what, m.parts[NXC_PART_PARAMETERS], states[i].parameters * parameters, 1e-3);
    near_to(what, m.parts[NXC_PART_GRADIENTS], states[i].gradients * parameters, 1e-3);
    near_to(what, m.parts[NXC_PART_OPTIMIZER], states[i].optimizer * parameters, 1e-3);
    program_end(&e.c);
  }
}

/* FSDP2 holds fp32 shards, of eight ranks 16 bytes of a parameter in all: parameter, gradient and two
 * moments; beside them gradients of one layer, in bf16 and in the type of their reduction, before they are
 * divided. Without fp32 parameters the shards of parameters and gradients are in bf16. */
static void test_fsdp(void **unused) {
  (void)unused;
  static const char *const changes[] = {MODEL "mesh.world=8 optimizer.zero_stage=3",
                                        MODEL "mesh.world=8 optimizer.zero_stage=3 "
                                              "precision.master_weights=false"};
  for (int narrow = 0; narrow < 2; narrow++) {
    estimate e = estimate_of("xorl", changes[narrow]);
    nxc_own_memory m = first_stage(&e);
    double layer = 12.0 * 2048 * 2048 + 2 * 2048, shard = (narrow ? 2 : 4) * parameters / 8;
    near_to("parameters", m.parts[NXC_PART_PARAMETERS], shard, 1e-3);
    near_to("moments", m.parts[NXC_PART_OPTIMIZER], 8 * parameters / 8, 1e-3);
    near_to("gradients", m.parts[NXC_PART_GRADIENTS], shard + (2 + e.sizes.reduce_bytes) * layer, 1e-3);
    program_end(&e.c);
  }
}

/* Low-rank adapters: of a frozen layer h^2 * 12 there are gradients and moments of the adapters alone. */
static void test_adapters(void **unused) {
  (void)unused;
  estimate whole = estimate_of("xorl", MODEL "mesh.world=8 optimizer.zero_stage=3");
  estimate adapted = estimate_of("xorl", MODEL "mesh.world=8 optimizer.zero_stage=3 lora.rank=16");
  nxc_own_memory a = first_stage(&whole), b = first_stage(&adapted);
  assert_true(b.parts[NXC_PART_OPTIMIZER] < 0.02 * a.parts[NXC_PART_OPTIMIZER]);
  double adapters = b.parts[NXC_PART_OPTIMIZER] / 2; /* in fp32, which is half of two moments */
  near_to("frozen in bf16", b.parts[NXC_PART_PARAMETERS], a.parts[NXC_PART_PARAMETERS] / 2 + adapters, 1e-3);
  program_end(&whole.c);
  program_end(&adapted.c);
}

/* Of nf4 each weight takes half a byte, and 64 share a scale of 4 bytes; what the tables and norms hold
 * stays. */
static void test_quantized(void **unused) {
  (void)unused;
#define LORA MODEL "mesh.world=8 optimizer.zero_stage=0 lora.rank=16 "
  double layers = 24 * 12.0 * 2048 * 2048, tables = parameters - layers;
  estimate plain = estimate_of("nx", LORA), nf4 = estimate_of("nx", LORA "lora.base_type=nf4");
  nxc_own_memory a = first_stage(&plain), b = first_stage(&nf4);
  double adapters = a.parts[NXC_PART_PARAMETERS] - 2 * parameters;
  near_to("adapters", adapters, 4.0 * 24 * 16 * (4 + 2 + 5 + 5) * 2048, 0.01);
  near_to("nf4", b.parts[NXC_PART_PARAMETERS], 2 * tables + (0.5 + 4.0 / 64) * layers + adapters, 1e-3);
  program_end(&plain.c);
  program_end(&nf4.c);
}

/* What is in the host's memory is not in the device's; of layers two are on their way. */
static void test_offload(void **unused) {
  (void)unused;
#define SHARDS MODEL "mesh.world=8 optimizer.zero_stage=3 "
  estimate here = estimate_of("neox", SHARDS), half = estimate_of("neox", SHARDS "offload.optimizer=0.5");
  estimate all = estimate_of("neox", SHARDS "offload.optimizer=1 offload.parameters=true");
  nxc_own_memory a = first_stage(&here), b = first_stage(&half), c = first_stage(&all);
  near_to("half of the state", b.parts[NXC_PART_OPTIMIZER], a.parts[NXC_PART_OPTIMIZER] / 2, 1e-6);
  near_to("half of the gradients", b.parts[NXC_PART_GRADIENTS], a.parts[NXC_PART_GRADIENTS] / 2, 1e-6);
  assert_true(c.parts[NXC_PART_OPTIMIZER] + c.parts[NXC_PART_GRADIENTS] + c.parts[NXC_PART_PARAMETERS] == 0);
  program_end(&here.c);
  program_end(&half.c);
  program_end(&all.c);
#define KEPT MODEL "mesh.world=8 optimizer.zero_stage=1 attention.flash=true "
  double token = 2048.0 * 2048 * 2, layers = 24 * token; /* a tensor of the stream, and of all layers */
  estimate kept = estimate_of("megatron", KEPT),
           moved = estimate_of("megatron", KEPT "offload.activations=1");
  estimate named =
      estimate_of("megatron", KEPT "offload.activations=1 offload.modules=[attn_norm,core_attn]");
  a = first_stage(&kept), b = first_stage(&moved), c = first_stage(&named);
  double of_layers = layers * (2 + 3 + 1 + 2 + 8) + 24 * 4.0 * 2048 * 16;
  near_to("layers", a.parts[NXC_PART_ACTIVATIONS] - b.parts[NXC_PART_ACTIVATIONS], of_layers, 1e-3);
  near_to("two on their way", b.parts[NXC_PART_BUFFERS] - a.parts[NXC_PART_BUFFERS], of_layers / 12, 1e-3);
  near_to("named", a.parts[NXC_PART_ACTIVATIONS] - c.parts[NXC_PART_ACTIVATIONS], 4 * layers, 1e-3);
  program_end(&kept.c);
  program_end(&moved.c);
  program_end(&named.c);
}

/* Logits of one piece of the tokens are there at a time. */
static void test_chunks(void **unused) {
  (void)unused;
  estimate whole = estimate_of("xorl", MODEL "optimizer.zero_stage=3"),
           pieces = estimate_of("xorl", MODEL "optimizer.zero_stage=3 loss.chunks=8");
  double less =
      first_stage(&whole).parts[NXC_PART_ACTIVATIONS] - first_stage(&pieces).parts[NXC_PART_ACTIVATIONS];
  near_to("logits", less, 7.0 / 8 * 2048 * 50304 * (2 + 8), 1e-6);
  program_end(&whole.c);
  program_end(&pieces.c);
}

/* DeepSeek-V2's attention, of its paper (arXiv:2405.04434): hidden 5120, 128 heads of 128 + 64, values 128,
 * ranks 1536 and 512. Down 5120 * (1536 + 512 + 64), up 1536 * 128 * 192 and 512 * 128 * 256, out 128 * 128 *
 * 5120. */
static void test_latent(void **unused) {
  (void)unused;
  estimate e =
      estimate_of("megatron", "model.hidden=5120 model.heads=128 model.kv_heads=128 model.head_dim=192 "
                              "model.value_dim=128 model.latent_rank=512 model.latent_query_rank=1536 "
                              "model.latent_rope_dim=64");
  double wanted = 5120.0 * (1536 + 512 + 64) + 1536.0 * 128 * 192 + 512.0 * 128 * 256 + 128.0 * 128 * 5120;
  assert_true(e.sizes.attention == wanted);
  program_end(&e.c);
}

/* ---- Megatron-LM's report ----
 *
 * megatron/training/theoretical_memory_usage.py states, with sequence parallelism and selective
 * recomputation: weights and optimizer: (layers / pipeline + one layer for each further token that is
 * predicted + embedding [twice when untied and pipeline = 1]) / tensor, experts over their own ranks, norms
 * and routers on each, all of them 18 bytes, or 6 + 12 / data with the distributed optimizer; activations
 * of the first stage, over tensor: s b h (18 + 4 f / h) layers, for each micro-batch in flight 8 s b and s
 * b h; interleaved times 1 + (p - 1) / (p v); with one stage 4 s b (h + V) more. It counts biases, and
 * assumes dropout, as many key heads as query heads, an ungated network. Where we deviate: logits take 2
 * bytes more in bf16, which are there while their softmax is made (LOGITS); a gated network's first product
 * is twice as wide: 2 s b f more a layer (GATED); with fewer key heads keys and values are smaller: 4 s b d
 * (heads - key heads) less a layer (GROUPED). */
typedef struct peer {
  double state, activations;
} peer;

static double peer_attention(const nxc_sizes *z) {
  double plain = z->head_dim - z->rope_dim, queries = z->heads * z->head_dim;
  if (z->kv_rank == 0) return 2 * z->hidden * (queries + z->kv_heads * z->head_dim);
  double from = z->query_rank > 0 ? z->query_rank * (z->hidden + queries) : z->hidden * queries;
  return from + z->kv_rank * (z->hidden + z->heads * (plain + z->value_dim)) + z->hidden * z->rope_dim +
         z->heads * z->value_dim * z->hidden;
}

/* Bytes of weights, gradients and optimizer; `each` and `each_expert` of a parameter. */
static double peer_state(const nxc_sizes *z, bool untied, double each, double each_expert) {
  double of_width = z->hidden * (2 + z->gates), mixtures = z->mixtures, layers = z->layers;
  double further = z->predicts, further_mixtures = mixtures > 0 ? z->predicts : 0;
  double dense = (layers - mixtures) / z->pipeline + further - further_mixtures;
  mixtures = mixtures / z->pipeline + further_mixtures;
  double divided = (dense + mixtures) * peer_attention(z) + dense * of_width * z->ffn +
                   mixtures * of_width * z->shared_ffn;
  divided += z->hidden * z->vocab * (untied && z->pipeline == 1 ? 2 : 1);
  double whole = 2 * z->hidden * (dense + mixtures) + z->hidden * z->experts * mixtures;
  double experts = mixtures * of_width * z->expert_ffn * z->experts / (z->expert * z->expert_tensor);
  return (divided / z->tensor + whole) * each + experts * each_expert;
}

static peer peer_of(const nxc_sizes *z, bool untied) {
  double state = peer_state(z, untied, z->shard > 1 ? 6 + 12 / z->shard : 18,
                            z->shard > 1 ? 6 + 12 / z->expert_shard : 18);
  double sb = z->sequence * z->micro_batch;
  double activations = sb * z->hidden * (18 + 4 * z->ffn / z->hidden) * z->layers;
  activations += sb * (z->gates * 2 * z->ffn - 4 * z->head_dim * (z->heads - z->kv_heads)) * z->layers;
  activations += (8 * sb + sb * z->hidden) * z->pipeline;
  if (z->chunks > 1) activations *= 1 + (z->pipeline - 1) / (z->pipeline * z->chunks);
  else activations *= fmin(1, z->micro_batches / z->pipeline);
  if (z->pipeline == 1) activations += sb * (4 * (z->hidden + z->vocab) + 2 * z->vocab);
  return (peer){state, activations / z->tensor};
}

#define PEER                                                                                                 \
  MODEL "sequence_parallel=true recompute.granularity=selective attention.flash=false "                      \
        "model.hidden_dropout=0.1 "                                                                          \
        "model.attention_dropout=0.1 "

static const char *const peer_cases[] = {
    PEER "mesh.world=2 mesh.tensor=2 optimizer.zero_stage=0",
    PEER "mesh.world=16 mesh.tensor=2 optimizer.zero_stage=1",
    PEER "mesh.world=8 mesh.tensor=8 optimizer.zero_stage=1",
    PEER "mesh.world=16 mesh.tensor=4 mesh.pipeline=4 optimizer.zero_stage=0",
    PEER "mesh.world=32 mesh.tensor=2 mesh.pipeline=4 optimizer.zero_stage=1",
    PEER "mesh.world=16 mesh.tensor=2 mesh.pipeline=8 batch.global=2 optimizer.zero_stage=0",
    PEER "mesh.world=8 mesh.tensor=2 mesh.pipeline=4 mesh.virtual_pipeline=3 optimizer.zero_stage=0",
    PEER "mesh.world=16 mesh.tensor=2 mesh.pipeline=4 mesh.virtual_pipeline=2 optimizer.zero_stage=1",
    PEER "mesh.world=4 mesh.tensor=4 batch.micro=4 optimizer.zero_stage=0",
    PEER "mesh.world=4 mesh.tensor=4 model.activation=swiglu model.ffn_hidden=5504 optimizer.zero_stage=0",
    PEER "mesh.world=4 mesh.tensor=4 model.kv_heads=4 optimizer.zero_stage=0",
    PEER "mesh.world=4 mesh.tensor=4 model.tied_embeddings=false optimizer.zero_stage=0",
    PEER "mesh.world=8 mesh.tensor=4 mesh.pipeline=2 model.tied_embeddings=false optimizer.zero_stage=0",
    PEER "mesh.world=4 mesh.tensor=4 model.head_dim=128 model.sequence=8192 optimizer.zero_stage=0",
};

static void test_peer(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof peer_cases / sizeof *peer_cases; i++) {
    estimate e = estimate_of("megatron", peer_cases[i]);
    nxc_own_memory m = first_stage(&e);
    peer wanted = peer_of(&e.sizes, !e.training.model.tied);
    const char *what = strstr(peer_cases[i], "mesh.world");
    double state = m.parts[NXC_PART_PARAMETERS] + m.parts[NXC_PART_GRADIENTS] + m.parts[NXC_PART_OPTIMIZER];
    near_to(what, state, wanted.state, 0.01);
    near_to(what, m.parts[NXC_PART_ACTIVATIONS], wanted.activations, 0.05);
    program_end(&e.c);
  }
}

/* Mixtures with shared experts, some dense layers and experts over ranks of their own, latent attention, and
 * further tokens. Of their activations the report says nothing. It does not count what joins the stream and
 * the embedding of a further token, and divides the products to latents over tensor-parallel ranks. */
static void test_peer_of_mixtures(void **unused) {
  (void)unused;
  static const char *const cases[] = {
      PEER "moe.experts=8 moe.top_k=2 moe.ffn_hidden=8192 mesh.world=4 mesh.tensor=4 optimizer.zero_stage=0",
      PEER "moe.experts=8 moe.top_k=2 moe.ffn_hidden=8192 mesh.world=8 mesh.tensor=2 mesh.pipeline=2 "
           "optimizer.zero_stage=1",
      PEER "moe.experts=16 moe.top_k=1 moe.ffn_hidden=5504 model.activation=swiglu mesh.world=8 "
           "optimizer.zero_stage=1",
      PEER "moe.experts=16 moe.top_k=2 moe.ffn_hidden=2048 moe.shared_ffn_hidden=2048 moe.frequency=2 "
           "mesh.expert_tensor=1 mesh.world=16 mesh.tensor=2 mesh.expert=8 optimizer.zero_stage=1",
      PEER "moe.experts=32 moe.top_k=4 moe.ffn_hidden=1408 model.activation=swiglu mesh.expert_tensor=1 "
           "mesh.world=32 mesh.pipeline=4 mesh.virtual_pipeline=2 mesh.expert=8 optimizer.zero_stage=1",
      PEER "moe.experts=1 model.latent_rank=512 model.latent_query_rank=1536 model.latent_rope_dim=64 "
           "model.head_dim=192 model.value_dim=128 mesh.world=8 optimizer.zero_stage=1",
      PEER "moe.experts=16 moe.top_k=2 moe.ffn_hidden=2048 model.predict_depth=1 mesh.world=8 mesh.expert=8 "
           "mesh.expert_tensor=1 optimizer.zero_stage=1",
      PEER "moe.experts=1 model.predict_depth=1 mesh.world=8 mesh.tensor=2 optimizer.zero_stage=1",
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    estimate e = estimate_of("megatron", cases[i]);
    nxc_own_memory m = first_stage(&e);
    double state = m.parts[NXC_PART_PARAMETERS] + m.parts[NXC_PART_GRADIENTS] + m.parts[NXC_PART_OPTIMIZER];
    near_to(strstr(cases[i], "moe.experts"), state, peer_of(&e.sizes, !e.training.model.tied).state, 0.01);
    program_end(&e.c);
  }
}

/* The report knows no fp8. */
static double fp8_copies(const nxc_own_memory *m) {
  for (size_t i = 0; i < m->n_lines; i++)
    if (strcmp(m->lines[i].row->name, "fp8 copies") == 0) return m->lines[i].bytes;
  return 0;
}

/* Real lists of arguments, of $NX_SHARED/corpora: state wherever there are no experts, latents or windows,
 * and activations wherever the report tells them. The report takes all for bf16; with fp16, or in fp32, sums
 * of gradients and copies have other types (TYPES): those are compared in bytes of the type that they have.
 * It counts dropout. */
static bool compare_arguments(const char *name, const json_t *entry, nxc_arena *arena) {
  const json_t *argv = json_object_get(entry, "argv");
  size_t n = json_array_size(argv);
  const char **words = nxc_arena_array(arena, n + 1, sizeof *words);
  for (size_t i = 0; i < n; i++) words[i] = json_string_value(json_array_get(argv, i));
  long long world = json_integer_value(json_object_get(entry, "world_size"));
  const nxc_request request = {.arguments = words,
                               .n_arguments = n,
                               .dialect = "megatron@0.10",
                               .world_size = nxc_arena_printf(arena, "%lld", world)};
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_compiled compiled;
  nxc_assumed assumed = {0};
  nxc_training t;
  nxc_assume_compile(arena, &request, NULL, 0, sink, &compiled, &assumed);
  if (compiled.settings == NULL || !nxc_training_read(compiled.settings, sink, &t)) return false;
  nxc_sizes z = nxc_sizes_read(&t, compiled.settings);
  if (z.layers == 0 || z.hidden == 0 || (z.kv_rank > 0 && z.tensor > 1)) return false;
  nxc_sizes first;
  nxc_sizes_of_stage(&z, &t, 0, &first);
  bool even = first.stage_layers * z.pipeline == z.layers + z.predicts * (z.pipeline == 1) &&
              first.stage_mixtures * z.pipeline == z.mixtures + z.predicts * (z.mixtures > 0);
  if (!even || (z.predicts > 0 && z.pipeline > 1)) return false; /* the report divides layers evenly */
  nxc_own_memory m = nxc_own_memory_of_stage(nxc_system_open(arena, "megatron"), &z, &t, 0, arena);
  double state = m.parts[NXC_PART_PARAMETERS] + m.parts[NXC_PART_GRADIENTS] + m.parts[NXC_PART_OPTIMIZER];
  double fixed = z.param_bytes + z.grad_bytes, divided = z.master * 4 + z.states * z.state_bytes;
  peer wanted = peer_of(&z, !t.model.tied);
  wanted.state = peer_state(&z, !t.model.tied, fixed + divided / z.shard, fixed + divided / z.expert_shard);
  near_to(name, state - fp8_copies(&m), wanted.state, 0.01);
  bool applies = z.experts == 0 && z.sequence_split > 1 && nxc_computes_again(&t, "core_attn") &&
                 z.hidden_dropout && z.param_bytes == 2;
  if (applies) near_to(name, m.parts[NXC_PART_ACTIVATIONS], wanted.activations, 0.05);
  return true;
}

static void test_corpora(void **unused) {
  (void)unused;
  const char *shared = getenv("NX_SHARED");
  if (shared == NULL) {
    skip_test(__func__, "NX_SHARED names no folder with corpora");
    return;
  }
  char path[512];
  snprintf(path, sizeof path, "%s/corpora/megatron/expected.json", shared);
  json_t *all = json_load_file(path, 0, NULL), *entry;
  assert_non_null(all);
  const char *name;
  int n_compared = 0;
  json_object_foreach(all, name, entry) {
    nxc_arena *arena = nxc_arena_new();
    if (strncmp(name, "gpt/", 4) == 0) n_compared += compare_arguments(name, entry, arena);
    nxc_arena_free(arena);
  }
  json_decref(all);
  print_message("%d lists of arguments compared\n", n_compared);
  assert_true(n_compared >= 30);
}

/* ---- models that are known by their names ---- */

static nxc_sizes sizes_of_model(nxc_arena *arena, const char *name) {
  const char *text = nxc_arena_printf(arena,
                                      "model: {model_path: %s}\n"
                                      "data: {datasets: [{path: dummy}], sample_packing_sequence_len: 8192}\n"
                                      "train: {output_dir: out, max_steps: 1, lr: 1e-5}\n",
                                      name);
  const nxc_request request = {.file = "run.yaml",
                               .text = nxc_source_new(arena, "run.yaml", text, strlen(text)),
                               .dialect = "xorl",
                               .world_size = "8"};
  nxc_compiled compiled;
  nxc_assumed assumed;
  nxc_training training;
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_assume_compile(arena, &request, NULL, 0, sink, &compiled, &assumed);
  assert_non_null(compiled.settings);
  assert_true(nxc_training_read(compiled.settings, sink, &training));
  return nxc_sizes_read(&training, compiled.settings);
}

/* Windows in every second layer of gpt-oss and of Gemma 2, in none of Qwen3; the first layer of GLM-4.5 Air
 * dense. */
static void test_known(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  nxc_sizes oss = sizes_of_model(arena, "openai/gpt-oss-20b"),
            gemma = sizes_of_model(arena, "google/gemma-2-9b");
  assert_true(oss.window == 128 && oss.windowed == 0.5);
  assert_true(gemma.window == 4096 && gemma.windowed == 0.5);
  assert_true(sizes_of_model(arena, "Qwen/Qwen3-8B").windowed == 0);
  nxc_sizes glm = sizes_of_model(arena, "zai-org/GLM-4.5-Air");
  assert_true(glm.layers == 46 && glm.mixtures == 45 && glm.shared_ffn == 1408);
  nxc_arena_free(arena);
}

/* ---- machines ---- */

static void test_names(void **unused) {
  (void)unused;
  static const char *const same[][2] = {{"H100", "h100"},           {"h100-80GB", "h100"},
                                        {"A100 40GB", "a100-40gb"}, {"TPU v5p", "tpu-v5p"},
                                        {"v5p", "tpu-v5p"},         {"ironwood", "tpu7x"}};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    const nxc_machine_text *known = nxc_machine_named(same[i][0]);
    assert_non_null(known);
    assert_string_equal(known->name, same[i][1]);
  }
  assert_null(nxc_machine_named("h1"));
  assert_null(nxc_machine_named(""));
  assert_null(nxc_machine_named("a100-80gb, a100-80"));
}

/* Every description reads without a finding. */
static void test_machines(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  for (size_t i = 0; i < nxc_machine_texts_n; i++) {
    const nxc_machine *m = nxc_machine_read(arena, nxc_machine_texts[i].name, sink);
    assert_non_null(m);
    assert_true(m->memory_bytes > 0 && m->ranks_per_host > 0 && m->inside.bandwidth.n_points > 0);
    assert_true(m->between.bandwidth.n_points > 0);
  }
  assert_int_equal(nxc_sink_n_findings(sink), 0);
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_state),
      cmocka_unit_test(test_fsdp),
      cmocka_unit_test(test_adapters),
      cmocka_unit_test(test_quantized),
      cmocka_unit_test(test_chunks),
      cmocka_unit_test(test_offload),
      cmocka_unit_test(test_latent),
      cmocka_unit_test(test_peer),
      cmocka_unit_test(test_peer_of_mixtures),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_machines),
      cmocka_unit_test(test_known),
      cmocka_unit_test(test_corpora),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
