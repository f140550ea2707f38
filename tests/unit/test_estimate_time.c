/* SPDX-License-Identifier: Apache-2.0 */
/* What a step's time consists of: what hides beneath what, and how often. Each test changes one thing. */
#include "compiler/estimate/memory.h"
#include "compiler/estimate/product.h"
#include "compiler/machine/names.h"
#include "compiler/program/forecast/cost.h"
#include "tests/unit/timed_case.h"

#include <math.h>

/* FSDP2 gathers for each micro-batch, but beneath a pipeline once for all of them. */
static void test_gathers(void **unused) {
  (void)unused;
#define FSDP MODEL "optimizer.zero_stage=3 mesh.world=16 mesh.nodes=2 "
  double one = spent("xorl", "h100", FSDP "mesh.pipeline=2 batch.global=8", NXC_SPENT_DATA);
  double four = spent("xorl", "h100", FSDP "mesh.pipeline=2 batch.global=32", NXC_SPENT_DATA);
  assert_true(one > 0 && fabs(four - one) < 1e-6);
  one = spent("xorl", "h100", FSDP "batch.global=16", NXC_SPENT_DATA);
  four = spent("xorl", "h100", FSDP "batch.global=64", NXC_SPENT_DATA);
  assert_true(fabs(four - 4 * one) < 1e-6);
}

/* Copies of what ZeRO-3 divides sum their gradients over the network; without ZeRO experts sum theirs too. */
static void test_copies(void **unused) {
  (void)unused;
#define HYBRID MODEL "optimizer.zero_stage=3 mesh.world=32 mesh.nodes=4 mesh.replicate=4 batch.global=32 "
  timed made = time_of("xorl", "h100", HYBRID);
#define SHARDED MODEL "optimizer.zero_stage=3 mesh.world=8 batch.global=8"
  double one = spent("xorl", "h100", SHARDED, NXC_SPENT_DATA);
  double bytes = made.e.sizes.reduce_bytes * 1311e6 / 8; /* the model's parameters over eight ranks */
  double sums = 2 * (bytes * 3 / 4 / 4.25e10 + 8.4e-6 + 3 * 1.4e-5);
  double left = made.t.parts[NXC_SPENT_DATA] - one;
  assert_true(left > 0.05 * sums && left < 1.01 * sums);
  program_end(&made.e.c);
#define MIXTURE                                                                                              \
  MODEL "moe.experts=8 moe.top_k=2 moe.ffn_hidden=8192 mesh.world=8 mesh.expert=2 mesh.expert_tensor=1 "
  double none = spent("megatron", "h100", MIXTURE "optimizer.zero_stage=0", NXC_SPENT_DATA);
  double first = spent("megatron", "h100", MIXTURE "optimizer.zero_stage=1", NXC_SPENT_DATA);
  assert_true(none > first); /* an all-reduce, where parameters are half as wide as what is scattered */
}

/* What operators move that one kernel would not takes the time of moving it, forward and, 1.7 times, back. */
static void test_separate(void **unused) {
  (void)unused;
  timed fused = time_of("megatron", "h100", MODEL);
  const nxc_sizes z = fused.e.sizes;
  double moved = 2.7 * 2 / 2.95e12 * z.tokens * z.layers * z.micro_batches;
  double rope = spent("megatron", "h100", MODEL "kernels.separate=[rope]", NXC_SPENT_POINTWISE);
  double norm = spent("xorl", "h100", MODEL "kernels.separate=[norm]", NXC_SPENT_POINTWISE);
  double least = spent("xorl", "h100", MODEL, NXC_SPENT_POINTWISE);
  double wanted = moved * 8 * (z.heads + z.kv_heads) * z.head_dim;
  assert_true(fabs((rope - fused.t.parts[NXC_SPENT_POINTWISE]) / wanted - 1) < 1e-6);
  assert_true(fabs((norm - least) / (moved * 32 * z.hidden) - 1) < 1e-6);
#define SCORES MODEL "attention.flash=false "
  double scores = spent("neox", "a100", SCORES, NXC_SPENT_ATTENTION);
  assert_true(spent("neox", "a100", SCORES "kernels.separate=[softmax]", NXC_SPENT_ATTENTION) > scores);
  program_end(&fused.e.c);
}

/* Products that DTensor divides sum the gradient of their input each for itself, and what it gathers along
 * the sequence is put together by a copy; XLA's go on beneath the products, and lie where they are read. */
static void test_tensor(void **unused) {
  (void)unused;
#define DIVIDED MODEL "mesh.world=2 mesh.tensor=2 batch.global=4 model.activation=swiglu "
  double divided = spent("xorl", "h100", DIVIDED "sequence_parallel=true", NXC_SPENT_TENSOR);
  double whole = spent("xorl", "h100", DIVIDED, NXC_SPENT_TENSOR);
  double bytes = 2 * 2048 * 2048, gather = bytes / 2 / 3.51e11 + 1.18e-5, copy = 2 * bytes / 2.95e12;
  assert_true(divided > 0 && fabs(whole / divided - (2 + 5) / 4.0 * gather / (gather + copy)) < 1e-6);
#define IN_PARTS DIVIDED "sequence_parallel=true "
  double open = spent("nxdt", "h100", IN_PARTS, NXC_SPENT_TENSOR);
  double hidden = spent("nxdt", "h100", IN_PARTS "tensor.overlap=true", NXC_SPENT_TENSOR);
  assert_true(open > 0 && fabs(hidden / open - 0.35) < 1e-6);
#define BENEATH SHARDED " reduce.overlap=true gather.overlap=true"
  assert_true(spent("nxdt", "h100", BENEATH, NXC_SPENT_DATA) <
              0.9 * spent("xorl", "h100", BENEATH, NXC_SPENT_DATA));
}

/* The host updates what it keeps; activations go there beneath the passes where the link is fast enough. */
static void test_offload(void **unused) {
  (void)unused;
#define KEPT MODEL "mesh.world=8 optimizer.zero_stage=1 batch.global=8 "
  double host = spent("megatron", "h100", KEPT "offload.optimizer=1", NXC_SPENT_HOST);
  double moved = (4 + 2 + 30 + 8 * 2) * 1311.1e6 / 8; /* gradients there, parameters back, the update */
  assert_true(fabs(host / (moved / 5e10) - 1) < 0.01);
  assert_true(spent("megatron", "h100", KEPT "offload.optimizer=1", NXC_SPENT_UPDATE) <= 1.01e-3);
  assert_true(spent("megatron", "h100", KEPT, NXC_SPENT_HOST) == 0);
  double slow = spent("megatron", "v100", KEPT "offload.activations=1", NXC_SPENT_HOST);
  double fast = spent("megatron", "gb200", KEPT "offload.activations=1", NXC_SPENT_HOST);
  assert_true(slow > 4 * fast && fast >= 0);
}

/* PyTorch's FSDP casts weights in every pass, and reads each tensor once more; experts' rows are copied to
 * where their counts are multiples of 16 by Transformer Engine alone. */
static void test_casts(void **unused) {
  (void)unused;
  const char *dense = MODEL "mesh.world=8 optimizer.zero_stage=3 precision.products=fp8";
  assert_true(spent("xorl", "h100", dense, NXC_SPENT_POINTWISE) >
              1.3 * spent("megatron", "h100", dense, NXC_SPENT_POINTWISE));
  double plain = spent("megatron", "h100", EXPERTS, NXC_SPENT_POINTWISE);
  double padded = spent("megatron", "h100", EXPERTS "precision.products=fp8", NXC_SPENT_POINTWISE);
  /* of 24 layers and 2 micro-batches of 4 x 2048 tokens, 8 experts each: four copies, and 1.7 times them
   * back */
  double copies = 24.0 * 2 * 4 * 2048 * 8 * 2048 * 4 * 2.7 * 1.25 * 2 / 2.95e12;
  assert_true(padded - plain > copies);
}

/* Half as wide heads, twice as many, take twice as long in a systolic array, and little longer elsewhere.
 * Blocks on the diagonal and at the end of a window are whole: of 2048 keys on a TPU7x, of 512 on a v5p. */
static void test_attention(void **unused) {
  (void)unused;
#define HEADS(n, dim) MODEL "model.heads=" #n " model.kv_heads=" #n " model.head_dim=" #dim " mesh.world=1 "
  double wide = spent("nx", "tpu7x", HEADS(16, 128), NXC_SPENT_ATTENTION);
  double narrow = spent("nx", "tpu7x", HEADS(32, 64), NXC_SPENT_ATTENTION);
  assert_true(fabs(narrow / wide - 2) < 0.05);
  wide = spent("nx", "h100", HEADS(16, 128), NXC_SPENT_ATTENTION);
  narrow = spent("nx", "h100", HEADS(32, 64), NXC_SPENT_ATTENTION);
  assert_true(narrow < 1.3 * wide);
#define WINDOW MODEL "mesh.world=1 model.sequence=32768 batch.micro=1 "
  double all = spent("nx", "tpu7x", WINDOW, NXC_SPENT_ATTENTION);
  double some = spent("nx", "tpu7x", WINDOW "model.sliding_window=512", NXC_SPENT_ATTENTION);
  double keys = 4096 - 4096.0 * 4096 / 65536;
  assert_true(fabs(some / all / (keys / (16384 + 1024)) - 1) < 0.02);
  all = spent("nx", "tpu-v5p", WINDOW, NXC_SPENT_ATTENTION);
  some = spent("nx", "tpu-v5p", WINDOW "model.sliding_window=512", NXC_SPENT_ATTENTION);
  keys = 1024 - 1024.0 * 1024 / 65536;
  assert_true(fabs(some / all / (keys / (16384 + 256)) - 1) < 0.02);
}

/* Rows of 216 bytes begin at no multiples of 16, and batched products of such heads go as fast as in fp32. */
static void test_odd_heads(void **unused) {
  (void)unused;
#define STORED(dim) MODEL "mesh.world=1 attention.flash=false model.head_dim=" #dim
  double even = spent("neox", "a100", STORED(112), NXC_SPENT_ATTENTION);
  double odd = spent("neox", "a100", STORED(108), NXC_SPENT_ATTENTION);
  assert_true(odd > 4 * even && odd < 16 * even);
  even = spent("nx", "tpu-v5p", STORED(112), NXC_SPENT_ATTENTION);
  odd = spent("nx", "tpu-v5p", STORED(108), NXC_SPENT_ATTENTION);
  assert_true(odd < 1.05 * even);
}

static double memory_of_first(const estimate *e) {
  return nxc_own_memory_of_stage(e->system, &e->sizes, &e->training, 0, e->c.arena).total;
}

/* Blocks that a layout leaves out take neither time nor memory; layers without a layout are as they were. */
static void test_sparse(void **unused) {
  (void)unused;
#define SPARSE MODEL "mesh.world=1 attention.flash=false model.sparse_window_blocks=8 "
  timed whole = time_of("neox", "a100", SPARSE),
        half = time_of("neox", "a100", SPARSE "model.attention_pattern=[local,global]"),
        local = time_of("neox", "a100", SPARSE "model.attention_pattern=[local]");
  assert_true(whole.e.sizes.scores == 2048 && whole.e.sizes.sparse == 0);
  assert_true(local.e.sizes.sparse == 1);
  assert_true(local.e.sizes.sparse_keys < 128 && local.e.sizes.sparse_keys > 60);
  assert_true(fabs(half.e.sizes.scores - (2048 + local.e.sizes.scores) / 2) < 1);
  double saved = whole.t.parts[NXC_SPENT_ATTENTION] - local.t.parts[NXC_SPENT_ATTENTION];
  assert_true(saved > 0.9 * whole.t.parts[NXC_SPENT_ATTENTION]);
  assert_true(fabs(whole.t.step_s - half.t.step_s - saved / 2) < 1e-6 * whole.t.step_s);
  /* a layout of a long sequence is followed from shorter ones: a window stays what it is */
  estimate longer = estimate_of("neox", SPARSE "model.attention_pattern=[local] model.sequence=131072");
  assert_true(fabs(longer.sizes.sparse_keys - local.e.sizes.sparse_keys) < 5);
  program_end(&longer.c);
  double less = 24 * 2048 * 16 * 2 * (2048 - local.e.sizes.sparse_keys);
  assert_true(fabs(memory_of_first(&whole.e) - memory_of_first(&local.e) - less) < 1);
  program_end(&whole.e.c);
  program_end(&half.e.c);
  program_end(&local.e.c);
}

/* A further token that is predicted is a layer and an output more, on the last stage alone. */
static void test_predictions(void **unused) {
  (void)unused;
#define STAGES MODEL "mesh.world=2 mesh.pipeline=2 attention.flash=true "
  timed plain = time_of("megatron", "h100", STAGES),
        further = time_of("megatron", "h100", STAGES "model.predict_depth=1");
  assert_true(memory_of_first(&plain.e) == memory_of_first(&further.e));
  nxc_sizes last, longer;
  nxc_sizes_of_stage(&plain.e.sizes, &plain.e.training, 1, &last);
  nxc_sizes_of_stage(&further.e.sizes, &further.e.training, 1, &longer);
  double layer = 12 * 2048.0 * 2048, join = 2 * 2048.0 * 2048; /* tied: the stage has the table already */
  assert_true(longer.stage_layers == last.stage_layers + 1);
  assert_true(fabs(longer.parameters - last.parameters - layer - join) < 0.001 * layer);
  double scores = 16 * 1024 * 2 * 128.0, output = 50304 * 2048.0;
  double flops = 6 * 64 * 2048.0 / 2 * (layer + scores + join + output);
  assert_true(fabs(further.t.model_flops - plain.t.model_flops - flops) < 0.001 * flops);
  assert_true(further.t.step_s > 1.05 * plain.t.step_s);
  program_end(&plain.e.c);
  program_end(&further.e.c);
}

/* Eight ranks on a host of four exchange over the network; racks of 72 do not care for hosts. */
static void test_hosts(void **unused) {
  (void)unused;
#define TENSOR MODEL "mesh.world=8 mesh.tensor=8 sequence_parallel=true optimizer.zero_stage=1 "
  double one = spent("megatron", "h200", TENSOR, NXC_SPENT_TENSOR);
  double two = spent("megatron", "h200", TENSOR "mesh.nodes=2", NXC_SPENT_TENSOR);
  assert_true(two > 1.15 * one);
  one = spent("megatron", "gb200", TENSOR, NXC_SPENT_TENSOR);
  two = spent("megatron", "gb200", TENSOR "mesh.nodes=2", NXC_SPENT_TENSOR);
  assert_true(one > 0 && two == one);
}

/* Nothing hides the exchange of heads; keys and values go round beneath the attention, and take units from
 * it. */
static void test_context(void **unused) {
  (void)unused;
#define CONTEXT MODEL "mesh.world=8 mesh.context=8 model.sequence=65536 optimizer.zero_stage=1 "
  timed ring = time_of("megatron", "h100", CONTEXT "attention.ring=true"),
        heads = time_of("megatron", "h100", CONTEXT "attention.ulysses=true");
  /* 24 layers, 64 micro-batches, both passes: of 8192 tokens queries, keys, values and what comes back of 16
   * heads */
  double bytes = 8192.0 * 4 * 2048 * 2, once = bytes * 7 / 8 / 3.51e11 + 1.18e-5;
  assert_true(fabs(heads.t.parts[NXC_SPENT_CONTEXT] - 24 * 64 * 2 * once) < 1e-6);
  /* seven of eight parts of keys and values forward, twice as much back, on a fifteenth of the units */
  double round = 7 * (8192.0 * 2 * 2048 * 2 / 3.51e11 + 1.18e-5);
  assert_true(fabs(ring.t.parts[NXC_SPENT_CONTEXT] - 24 * 64 * 3 * round * 20 / 132) < 1e-6);
  /* sums of eight blocks, most of which meet half of the queries */
  double added = 24 * 64 * 2.7 * 2 / 2.95e12 * 3 * 4.5 * 8192 * 2048;
  assert_true(fabs((ring.t.parts[NXC_SPENT_POINTWISE] - heads.t.parts[NXC_SPENT_POINTWISE]) / added - 1) <
              1e-6);
  program_end(&ring.e.c);
  program_end(&heads.e.c);
}

static double forecast_of(const nxc_machine *machine, const char *changes) {
  program_case c = program_good(changes);
  nx_plan plan;
  nx_fault fault;
  assert_true(nx_plan_check(c.out.bytes, c.out.n_bytes, &plan, &fault));
  double seconds = nxc_forecast_step(&plan, machine, c.arena).step_s;
  program_end(&c);
  return seconds;
}

/* 512 ranks are so many hosts as the machine says, 64 of 8, whether the file tells so or nothing: not one
 * host of 512. Half as many hosts have no more ranks each. */
static void test_host_shapes(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  for (size_t i = 0; i < nxc_machine_texts_n; i++) {
    const char *name = nxc_machine_texts[i].name;
    const nxc_machine *m = nxc_machine_read(arena, name, sink);
    const char *ranks = "mesh.world=512 batch.micro=1 batch.global=512 optimizer.zero_stage=1 ";
    const char *open = nxc_arena_printf(arena, "%s%s", m->device ? MODEL : "", ranks);
    const char *told = nxc_arena_printf(arena, "%smesh.nodes=%u", open, 512 / m->ranks_per_host);
    double without = m->device ? spent("megatron", name, open, NXC_SPENT_DATA) : forecast_of(m, open);
    double with = m->device ? spent("megatron", name, told, NXC_SPENT_DATA) : forecast_of(m, told);
    if (!(without > 0) || without != with) fail_msg("%s: %g s, with hosts told %g s", name, without, with);
  }
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gathers),   cmocka_unit_test(test_copies),  cmocka_unit_test(test_tensor),
      cmocka_unit_test(test_separate),  cmocka_unit_test(test_offload), cmocka_unit_test(test_casts),
      cmocka_unit_test(test_attention), cmocka_unit_test(test_sparse),  cmocka_unit_test(test_predictions),
      cmocka_unit_test(test_hosts),     cmocka_unit_test(test_context), cmocka_unit_test(test_host_shapes),
      cmocka_unit_test(test_odd_heads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
