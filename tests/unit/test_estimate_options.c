/* SPDX-License-Identifier: Apache-2.0 */
/* What one option alone does to memory and to the time of a step: each has a sign, and what is computed or
 * moved more takes longer. */
#include "compiler/estimate/time.h"
#include "tests/unit/estimate_case.h"

typedef struct outcome {
  nxc_own_memory memory;
  nxc_own_time time;
  double least_s; /* no forecast is below it */
} outcome;

static outcome outcome_of(const char *system, const char *machine, const char *changes) {
  estimate e = estimate_of(system, changes);
  const nxc_machine *m = nxc_machine_read(e.c.arena, machine, e.c.sink);
  assert_non_null(m);
  outcome o = {first_stage(&e),
               nxc_own_time_of(e.system, &e.sizes, &e.training, m, e.c.arena),
               nxc_own_time_least(&e.sizes, &e.training.layout, m)};
  o.memory.lines = NULL; /* of the arena that ends here */
  program_end(&e.c);
  return o;
}

static void saves_and_costs(const char *what, const outcome *with, const outcome *without) {
  if (with->memory.total >= without->memory.total) fail_msg("%s saves no memory", what);
  if (with->time.step_s <= without->time.step_s) fail_msg("%s costs no time", what);
}

/* What selective recomputation names is not kept, and takes time, in every system whose options name it. */
static void test_modules(void **unused) {
  (void)unused;
  static const struct {
    const char *system, *module, *model;
  } cases[] = {
      {"xorl", "attention", ""},
      {"xorl", "mlp", ""},
      {"nx", "attention", ""},
      {"nx", "moe_act", ""},
      {"nx", "layer", ""},
      {"nxdt", "moe_act", ""},
      {"nxdt", "layer", ""},
      {"nxdt", "layernorm", ""},
      {"megatron", "mla_up_proj",
       "model.latent_query_rank=768 model.latent_rank=512 model.latent_rope_dim=64 model.head_dim=192 "
       "model.value_dim=128 "},
      {"megatron", "moe", "moe.experts=8 moe.top_k=2 moe.ffn_hidden=4096 "},
      {"megatron", "moe_act", "moe.experts=8 moe.top_k=2 moe.ffn_hidden=4096 "},
      {"megatron", "shared_experts",
       "moe.experts=8 moe.top_k=2 moe.ffn_hidden=4096 moe.shared_ffn_hidden=4096 "}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char plain[1024], again[1280];
    snprintf(plain, sizeof plain, MODEL "mesh.world=8 optimizer.zero_stage=1 %s", cases[i].model);
    snprintf(again, sizeof again, "%srecompute.granularity=selective recompute.modules=[%s] ", plain,
             cases[i].module);
    outcome a = outcome_of(cases[i].system, "h100", plain), b = outcome_of(cases[i].system, "h100", again);
    saves_and_costs(cases[i].module, &b, &a);
  }
}

/* Gradients of weights fill what would be a bubble, and cost no work. */
static void test_orders(void **unused) {
  (void)unused;
  static const char *const orders[] = {"1f1b", "zero_bubble", "zbv", "dualpipev"};
  outcome o[4];
  for (size_t i = 0; i < 4; i++) {
    char changes[1024];
    snprintf(changes, sizeof changes,
             MODEL "mesh.world=16 mesh.pipeline=4 mesh.virtual_pipeline=2 pipeline.schedule=%s", orders[i]);
    o[i] = outcome_of("xorl", "h100", changes);
    assert_true(o[i].least_s <= o[i].time.step_s);
    near_to("products", o[i].time.parts[NXC_SPENT_PRODUCTS], o[0].time.parts[NXC_SPENT_PRODUCTS], 1e-12);
    if (i > 0 && o[i].time.parts[NXC_SPENT_BUBBLE] > 0.75 * o[0].time.parts[NXC_SPENT_BUBBLE])
      fail_msg("%s: a bubble of %g s, 1f1b's is %g s", orders[i], o[i].time.parts[NXC_SPENT_BUBBLE],
               o[0].time.parts[NXC_SPENT_BUBBLE]);
  }
}

/* The first layers of each chunk: three of its three are all of them, and of one chunk half. */
static void test_recomputed_chunks(void **unused) {
  (void)unused;
#define CHUNKS(n, which)                                                                                     \
  MODEL "mesh.world=16 mesh.pipeline=4 batch.global=64 recompute.granularity=full mesh.virtual_pipeline=" n  \
        " recompute.method=" which
  outcome all = outcome_of("megatron", "h100", CHUNKS("2", "uniform recompute.layers=1")),
          block = outcome_of("megatron", "h100", CHUNKS("2", "block recompute.layers=3")),
          whole = outcome_of("megatron", "h100", CHUNKS("1", "block recompute.layers=3"));
  near_to("kept", block.memory.parts[NXC_PART_ACTIVATIONS], all.memory.parts[NXC_PART_ACTIVATIONS], 1e-12);
  near_to("time", block.time.step_s, all.time.step_s, 1e-12);
  assert_true(whole.memory.parts[NXC_PART_ACTIVATIONS] > 1.5 * block.memory.parts[NXC_PART_ACTIVATIONS]);
}

#define AGAIN MODEL "mesh.world=8 optimizer.zero_stage=1 recompute.granularity=selective recompute.modules="

/* A module within another that is named too is computed again once, and kept as little. */
static void test_nested_modules(void **unused) {
  (void)unused;
  outcome outer = outcome_of("nx", "h100", AGAIN "[attention]"),
          both = outcome_of("nx", "h100", AGAIN "[core_attn,attention]"),
          stored = outcome_of("nx", "h100", AGAIN "[attention] attention.flash=false");
  near_to("time of both", both.time.step_s, outer.time.step_s, 1e-12);
  near_to("memory of both", both.memory.total, outer.memory.total, 1e-12);
  near_to("scores that are computed again", stored.memory.total, outer.memory.total, 1e-2);
}

#define ADAPTED MODEL "mesh.world=8 optimizer.zero_stage=3 lora.rank="

/* Adapters compute more the wider they are; frozen weights need no gradients, which no forecast of the peak
 * counts. */
static void test_adapters(void **unused) {
  (void)unused;
  outcome whole = outcome_of("xorl", "a100", MODEL "mesh.world=8 optimizer.zero_stage=3"),
          narrow = outcome_of("xorl", "a100", ADAPTED "16"), wide = outcome_of("xorl", "a100", ADAPTED "512");
  assert_true(narrow.time.parts[NXC_SPENT_PRODUCTS] < whole.time.parts[NXC_SPENT_PRODUCTS]);
  assert_true(wide.time.parts[NXC_SPENT_PRODUCTS] > 1.05 * narrow.time.parts[NXC_SPENT_PRODUCTS]);
  assert_true(wide.memory.total > narrow.memory.total);
  near_to("frozen share of the work", narrow.time.model_flops, whole.time.model_flops * 2 / 3, 0.05);
  assert_true(narrow.least_s < narrow.time.step_s && narrow.least_s < whole.least_s * 0.75);
  assert_true(narrow.time.utilisation < whole.time.utilisation);
}

/* Quantized weights are written out for each pass; what is excluded is neither quantized nor adapted. */
static void test_quantized(void **unused) {
  (void)unused;
  outcome plain = outcome_of("xorl", "h100", ADAPTED "16"),
          nf4 = outcome_of("xorl", "h100", ADAPTED "16 lora.base_type=nf4"),
          less = outcome_of("xorl", "h100", ADAPTED "16 lora.base_type=nf4 lora.exclude_modules=[down_proj]");
  saves_and_costs("nf4", &nf4, &plain);
  assert_true(less.memory.parts[NXC_PART_PARAMETERS] > nf4.memory.parts[NXC_PART_PARAMETERS]);
  assert_true(less.memory.parts[NXC_PART_OPTIMIZER] < nf4.memory.parts[NXC_PART_OPTIMIZER]);
  assert_true(less.time.step_s < nf4.time.step_s);
}

#define WIDE MODEL "mesh.world=8 optimizer.zero_stage=1 precision.param=fp32 precision.compute=fp32 "

/* Products in fp32 are at the device's own rate, at half of that in bf16 where they are rounded to TF32, and
 * as in bf16 where a device has no other. */
static void test_fp32(void **unused) {
  (void)unused;
  static const struct {
    const char *system, *machine;
    double rate, wide; /* bf16, and fp32: TFLOP/s */
  } cases[] = {{"xorl", "a100", 312, 19.5},
               {"megatron", "a100", 312, 156},
               {"xorl", "mi300x", 1307.4, 163.4},
               {"nxdt", "trn1", 95, 23.75},
               {"nx", "tpu-v4", 275, 275}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    outcome narrow =
                outcome_of(cases[i].system, cases[i].machine, MODEL "mesh.world=8 optimizer.zero_stage=1"),
            wide = outcome_of(cases[i].system, cases[i].machine, WIDE);
    double times = wide.time.parts[NXC_SPENT_PRODUCTS] / narrow.time.parts[NXC_SPENT_PRODUCTS];
    near_to(cases[i].machine, times, cases[i].rate / cases[i].wide, 0.1);
    near_to("share of its peak", wide.time.utilisation,
            wide.time.model_flops / wide.time.step_s / cases[i].wide / 1e12, 1e-3);
    assert_true(wide.least_s < wide.time.step_s);
  }
}

#define SHARDED MODEL "mesh.world=8 optimizer.zero_stage=1 "

/* Each type that an optimizer keeps counts for itself. */
static void test_kept_bits(void **unused) {
  (void)unused;
  double parameters = outcome_of("megatron", "h100", SHARDED).memory.parts[NXC_PART_OPTIMIZER] / 12;
  static const struct {
    const char *bits;
    double bytes;
  } cases[] = {{"[16,32,32]", 10}, {"[32,16,32]", 10}, {"[32,32,8]", 9}, {"[16,8,16]", 5}, {"[]", 12}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char changes[1024];
    snprintf(changes, sizeof changes, SHARDED "precision.kept_bits=%s", cases[i].bits);
    outcome o = outcome_of("megatron", "h100", changes);
    near_to(cases[i].bits, o.memory.parts[NXC_PART_OPTIMIZER], cases[i].bytes * parameters, 1e-9);
  }
}

/* Parameters that are kept in fp8 are gathered in it. */
static void test_fp8_gathers(void **unused) {
  (void)unused;
#define NARROW MODEL "mesh.world=64 mesh.nodes=8 optimizer.zero_stage=1 precision.products=fp8 "
  double wide = outcome_of("megatron", "h100", NARROW).time.parts[NXC_SPENT_DATA];
  double narrow =
      outcome_of("megatron", "h100", NARROW "precision.fp8_parameters=true").time.parts[NXC_SPENT_DATA];
  near_to("4 and 1 bytes for 4 and 2", narrow, wide * 5 / 6, 0.02);
}

#define PATTERN MODEL "mesh.world=8 optimizer.zero_stage=1 attention.flash=true attention.flash_pattern="

/* Of a pattern of kernels each layer has its own scores and time. */
static void test_flash_pattern(void **unused) {
  (void)unused;
  outcome all = outcome_of("neox", "a100", PATTERN "[flash]"),
          none = outcome_of("neox", "a100", PATTERN "[global]"),
          half = outcome_of("neox", "a100", PATTERN "[flash,global]"),
          third = outcome_of("neox", "a100", PATTERN "[flash,flash,global]");
  near_to("half", half.memory.total, (all.memory.total + none.memory.total) / 2, 1e-9);
  near_to("half", half.time.step_s, (all.time.step_s + none.time.step_s) / 2, 1e-9);
  near_to("third", third.memory.total, (2 * all.memory.total + none.memory.total) / 3, 1e-9);
  near_to("third", third.time.step_s, (2 * all.time.step_s + none.time.step_s) / 3, 1e-9);
  const double scores = 2 * 2048. * 2048 * 16, sums = 4 * 2048. * 16;
  near_to("scores", none.memory.total - all.memory.total, 24 * (scores - sums), 1e-9);
  assert_true(none.time.step_s > all.time.step_s);
}

#define AT_WORK " recompute.granularity=full"
#define SIX(kind) kind "," kind "," kind "," kind "," kind "," kind

/* The layer at work is one that stores scores, if there is one; a stage has the kinds of its own layers. */
static void test_flash_of_stages(void **unused) {
  (void)unused;
  outcome none = outcome_of("neox", "a100", PATTERN "[global]" AT_WORK),
          half = outcome_of("neox", "a100", PATTERN "[flash,global]" AT_WORK),
          all = outcome_of("neox", "a100", PATTERN "[flash]" AT_WORK);
  near_to("layer at work", half.memory.total, none.memory.total, 1e-3);
  near_to("scores of one layer", none.memory.total - all.memory.total, 2 * 2048. * 2048 * 16, 0.01);
  const char *const stages = PATTERN "[" SIX("global") "," SIX("global") "," SIX("flash") "," SIX(
      "flash") "] mesh.pipeline=2";
  outcome apart = outcome_of("neox", "a100", stages),
          alike = outcome_of("neox", "a100", PATTERN "[global] mesh.pipeline=2");
  near_to("stage whose scores are stored", apart.memory.total, alike.memory.total, 1e-9);
}

#define SHARDS MODEL "mesh.world=8 optimizer.zero_stage=3 "
#define AWAY MODEL "mesh.world=8 optimizer.zero_stage=3 offload.activations=1 batch.micro=8 batch.global=64 "

/* xorl: a GiB of activations on its way out and one on its way in; so many more stay if that is asked for. */
static void test_activations_away(void **unused) {
  (void)unused;
  const double gib = 1024. * 1024 * 1024;
  outcome here = outcome_of("xorl", "a100", AWAY "offload.activations=0"),
          there = outcome_of("xorl", "a100", AWAY), some = outcome_of("xorl", "a100", AWAY "offload.kept=3"),
          all = outcome_of("xorl", "a100", AWAY "offload.kept=1000"),
          late = outcome_of("xorl", "a100", AWAY "offload.waits=true");
  assert_true(there.memory.total < here.memory.total - 10 * gib);
  near_to("GiB on their way", there.memory.parts[NXC_PART_BUFFERS] - here.memory.parts[NXC_PART_BUFFERS],
          2 * gib, 1e-9);
  near_to("GiB that stay", some.memory.total - there.memory.total, 3 * gib, 1e-9);
  near_to("all stay", all.memory.total, here.memory.total, 1e-9);
  near_to("all stay", all.time.step_s, here.time.step_s, 1e-9);
  assert_true(some.time.parts[NXC_SPENT_HOST] < there.time.parts[NXC_SPENT_HOST]);
  assert_true(late.time.parts[NXC_SPENT_HOST] > there.time.parts[NXC_SPENT_HOST]);
  near_to("late", late.memory.total, there.memory.total, 1e-9);
}

/* What is not divided again after the forward pass stays, whole. */
static void test_resharding(void **unused) {
  (void)unused;
  static const struct {
    const char *system;
    double more; /* parameters, than of two layers and what stays in any case */
  } cases[] = {{"xorl", 22 * 50.34e6}, {"nx", 22 * 50.34e6 + 103e6}, {"megatron", 22 * 50.34e6 + 103e6}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    outcome again = outcome_of(cases[i].system, "a100", SHARDS),
            whole = outcome_of(cases[i].system, "a100", SHARDS "optimizer.reshard_after_forward=false");
    double more = whole.memory.parts[NXC_PART_BUFFERS] - again.memory.parts[NXC_PART_BUFFERS];
    near_to("whole parameters", more, 2 * cases[i].more, 1e-3);
    assert_true(whole.time.step_s < again.time.step_s);
  }
}

/* xorl's moments come for the update, which the device makes, and go back. */
static void test_state_between_steps(void **unused) {
  (void)unused;
  outcome here = outcome_of("xorl", "a100", SHARDS),
          there = outcome_of("xorl", "a100", SHARDS "offload.optimizer=1");
  near_to("moments", here.memory.total - there.memory.total, here.memory.parts[NXC_PART_OPTIMIZER], 1e-9);
  near_to("update", there.time.parts[NXC_SPENT_UPDATE], here.time.parts[NXC_SPENT_UPDATE], 1e-9);
  near_to("there and back", there.time.parts[NXC_SPENT_HOST] * 2.5e10,
          2 * here.memory.parts[NXC_PART_OPTIMIZER], 1e-9);
}

#define EXPERTS SHARDED "mesh.expert=8 moe.experts=64 moe.top_k=6 moe.ffn_hidden=1408 "
#define NARROW_EXPERTS EXPERTS "precision.products=fp8 batch.micro=4 "

/* The router's padding goes to the experts as other rows do, and spares the copies. */
static void test_padding(void **unused) {
  (void)unused;
  outcome wide = outcome_of("megatron", "h100", EXPERTS "moe.padding=router"),
          plain = outcome_of("megatron", "h100", EXPERTS),
          copies = outcome_of("megatron", "h100", NARROW_EXPERTS),
          sent = outcome_of("megatron", "h100", NARROW_EXPERTS "moe.padding=router"),
          gaps = outcome_of("megatron", "h100", NARROW_EXPERTS "kernels.joined=[sorting]"),
          large = outcome_of("megatron", "h100",
                             NARROW_EXPERTS "moe.padding=router precision.fp8_recipe=mxfp8");
  near_to("bf16 is not padded", wide.time.step_s, plain.time.step_s, 1e-12);
  assert_true(copies.time.parts[NXC_SPENT_POINTWISE] > sent.time.parts[NXC_SPENT_POINTWISE]);
  assert_true(sent.time.parts[NXC_SPENT_EXPERT] > copies.time.parts[NXC_SPENT_EXPERT]);
  assert_true(gaps.time.step_s < sent.time.step_s && gaps.time.step_s < copies.time.step_s);
  /* rows of 16 and of 32: on average 7.5 and 15.5 are added of each expert, in 24 layers */
  const double of_row = 2 * (3 * 2048. + 2 * 1408), rows = 24 * 64;
  near_to("rows of 16", sent.memory.parts[NXC_PART_ACTIVATIONS] - copies.memory.parts[NXC_PART_ACTIVATIONS],
          rows * 7.5 * of_row, 1e-9);
  near_to("rows of 32", large.memory.parts[NXC_PART_ACTIVATIONS] - copies.memory.parts[NXC_PART_ACTIVATIONS],
          rows * 15.5 * of_row, 1e-9);
}

/* What is not fused moves more; a gradient that is added stands in memory before. */
static void test_unfused(void **unused) {
  (void)unused;
  outcome plain = outcome_of("megatron", "h100", EXPERTS),
          sorts = outcome_of("megatron", "h100", EXPERTS "kernels.separate=[sorting]"),
          fused = outcome_of("megatron", "h100", SHARDED),
          sums = outcome_of("megatron", "h100", SHARDED "kernels.separate=[sums]"),
          alike = outcome_of("megatron", "h100", SHARDED "kernels.separate=[sorting]");
  assert_true(sorts.time.parts[NXC_SPENT_POINTWISE] > plain.time.parts[NXC_SPENT_POINTWISE]);
  near_to("without experts", alike.time.step_s, fused.time.step_s, 1e-12);
  assert_true(sums.time.parts[NXC_SPENT_POINTWISE] > fused.time.parts[NXC_SPENT_POINTWISE]);
  near_to("a matrix", sums.memory.total - fused.memory.total, 2 * 50304. * 2048, 1e-9);
}

#define TINY "model.hidden=256 model.ffn_hidden=1024 model.heads=4 model.kv_heads=4 model.sequence=256 "

/* A graph is one launch. */
static void test_graphs(void **unused) {
  (void)unused;
  static const char *const graphs[] = {"", "router", "attention", "attention,network", "layer"};
  double launches = HUGE_VAL;
  for (size_t i = 0; i < 5; i++) {
    char changes[1024];
    snprintf(changes, sizeof changes, SHARDED TINY "kernels.graphs=[%s]", graphs[i]);
    double s = outcome_of("megatron", "h100", changes).time.parts[NXC_SPENT_LAUNCH];
    if (i == 1 || i == 4) near_to(graphs[i], s, launches, 1e-12);
    else if (s >= launches) fail_msg("[%s]: launches take %g s, not less than %g s", graphs[i], s, launches);
    launches = s;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_orders),
      cmocka_unit_test(test_recomputed_chunks),
      cmocka_unit_test(test_modules),
      cmocka_unit_test(test_nested_modules),
      cmocka_unit_test(test_adapters),
      cmocka_unit_test(test_quantized),
      cmocka_unit_test(test_fp32),
      cmocka_unit_test(test_kept_bits),
      cmocka_unit_test(test_fp8_gathers),
      cmocka_unit_test(test_flash_pattern),
      cmocka_unit_test(test_activations_away),
      cmocka_unit_test(test_state_between_steps),
      cmocka_unit_test(test_resharding),
      cmocka_unit_test(test_flash_of_stages),
      cmocka_unit_test(test_padding),
      cmocka_unit_test(test_unfused),
      cmocka_unit_test(test_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
