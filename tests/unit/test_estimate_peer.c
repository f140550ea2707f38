/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as Megatron-LM's own report states it, of lists by hand and of real ones.
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
#include "compiler/estimate/assume.h"
#include "tests/unit/estimate_case.h"

#include <jansson.h>

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_peer),
      cmocka_unit_test(test_peer_of_mixtures),
      cmocka_unit_test(test_corpora),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
