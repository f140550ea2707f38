/* SPDX-License-Identifier: Apache-2.0 */
/* What each option of DeepSpeed's ZeRO does to a GPT-NeoX file's memory, to the byte, and to its time. */
#include "compiler/estimate/time.h"
#include "tests/unit/compile_text.h"
#include "tests/unit/estimate_case.h"

/* 2 layers of width 1024 and their ends, on 8 ranks. */
static const char file[] =
    "{\"num_layers\": 2, \"hidden_size\": 1024, \"num_attention_heads\": 8, \"seq_length\": 1024,\n"
    "\"max_position_embeddings\": 1024, \"pos_emb\": \"rotary\", \"norm\": \"rmsnorm\", \"train_iters\": "
    "10,\n"
    "\"pipe_parallel_size\": %d, \"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": "
    "%d,\n"
    "\"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 0.001}}, %s, \"make_vocab_size_divisible_by\": "
    "1,\n"
    "\"no_weight_tying\": true, \"tokenizer_type\": \"GPT2BPETokenizer\", \"vocab_file\": \"v\",\n"
    "\"data_path\": \"d\", \"attention_config\": [[[\"flash\"], 2]], \"lr_decay_iters\": 10,\n"
    "\"zero_optimization\": {\"stage\": %d%s}}";

#define FP16 "\"fp16\": {\"enabled\": true}"
#define BF16 "\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"fp32\"}"
#define BUCKET ", \"reduce_bucket_size\": 10000000"

typedef struct sized {
  nxc_own_memory memory;
  double parameters, step_s, host_s, data_s;
} sized;

static sized sized_of(const char *text) {
  trial t;
  trial_begin(&t, text);
  t.request.dialect = "neox";
  t.request.world_size = "8";
  t.request.judges_only = true;
  const nxc_assumption vocab = {NX_SETTING_MODEL_VOCAB, "50000", "so"};
  t.request.assumptions = &vocab;
  t.request.n_assumptions = 1;
  trial_run(&t);
  nxc_training training;
  if (!t.out.settings || !nxc_training_read_sizes(t.out.settings, t.sink, &training))
    fail_msg("%s: %s", text, nxc_sink_finding(t.sink, 0)->message);
  const nxc_system *system = nxc_system_open(t.arena, "neox");
  nxc_sizes sizes = nxc_sizes_read(&training, t.out.settings), stage;
  nxc_sizes_of_stage(&sizes, &training, 0, &stage);
  const nxc_machine *machine = nxc_machine_read(t.arena, "a100", t.sink);
  nxc_own_time time = nxc_own_time_of(system, &sizes, &training, machine, t.arena);
  sized s = {nxc_own_memory_of(system, &sizes, &training, t.arena), stage.parameters, time.step_s,
             time.parts[NXC_SPENT_HOST], time.parts[NXC_SPENT_DATA]};
  trial_end(&t);
  return s;
}

static sized of_options(int stage, int pipeline, int micro_batches, const char *precision, const char *more) {
  char text[2048];
  snprintf(text, sizeof text, file, pipeline, micro_batches, precision, stage, more);
  return sized_of(text);
}

static sized with(int stage, const char *more) {
  return of_options(stage, 0, 1, FP16, more);
}

enum { SUMMED = 20000000 }; /* bytes of a bucket of 10 million in fp16 */

/* Buffers are allocated whole, and what is summed is copied once more. */
static void test_buckets(void **unused) {
  (void)unused;
  static const struct {
    int stage;
    const char *more;
    double buckets;
  } cases[] = {{1, BUCKET, 2},
               {2, BUCKET, 2},
               {1, BUCKET ", \"contiguous_gradients\": false", 1},
               {2, BUCKET ", \"overlap_comm\": true", 3},
               {2, BUCKET ", \"overlap_comm\": true, \"contiguous_gradients\": false", 1},
               {2, BUCKET ", \"reduce_scatter\": false", 1},
               {2, BUCKET ", \"allgather_bucket_size\": 1000", 2},
               {2, BUCKET ", \"allgather_bucket_size\": 5000000000", 2},
               {2, BUCKET ", \"round_robin_gradients\": true", 2},
               {3, BUCKET, 2},
               {3, BUCKET ", \"overlap_comm\": true", 2},
               {3, BUCKET ", \"contiguous_gradients\": false", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sized s = with(cases[i].stage, cases[i].more);
    double gathered = cases[i].stage == 3 ? 2 * s.parameters : 0;
    near_to(cases[i].more, s.memory.parts[NXC_PART_BUFFERS] - gathered, cases[i].buckets * SUMMED, 1e-9);
  }
  sized piped = of_options(1, 1, 1, FP16, BUCKET ", \"overlap_comm\": true");
  near_to("a pipeline's module", piped.memory.parts[NXC_PART_BUFFERS], 2 * SUMMED, 1e-9);
  sized larger = with(1, "");
  near_to("of 500 million", larger.memory.parts[NXC_PART_BUFFERS], 2 * (5e8 + larger.parameters), 1e-9);
}

/* The optimizer for bf16 keeps whole sums in fp32, which are copied to be summed and which it reads. */
static void test_bf16(void **unused) {
  (void)unused;
  sized s = of_options(1, 0, 1, BF16, BUCKET);
  near_to("state", s.memory.parts[NXC_PART_OPTIMIZER], 12 * s.parameters / 8, 1e-9);
  near_to("gradients", s.memory.parts[NXC_PART_GRADIENTS], 6 * s.parameters, 1e-9);
  near_to("copies", s.memory.parts[NXC_PART_BUFFERS], 4 * s.parameters, 1e-9);
}

/* A loss in fp16 keeps half of what one in fp32 does. */
static void test_loss(void **unused) {
  (void)unused;
  sized wide = with(1, BUCKET),
        narrow = of_options(1, 0, 1, FP16 ", \"fp16_lm_cross_entropy\": true", BUCKET);
  double less = wide.memory.parts[NXC_PART_ACTIVATIONS] - narrow.memory.parts[NXC_PART_ACTIVATIONS];
  near_to("loss", less, 2 * 1024.0 * 50000, 1e-9);
}

/* Norms made of operators keep what they cast and what they scale, in fp32, of each of two layers. */
static void test_norms(void **unused) {
  (void)unused;
  sized apart = with(1, BUCKET), fused = of_options(1, 0, 1, FP16 ", \"rmsnorm_fusion\": true", BUCKET);
  double more = apart.memory.parts[NXC_PART_ACTIVATIONS] - fused.memory.parts[NXC_PART_ACTIVATIONS];
  near_to("norms", more, 2 * 2 * (8 - 2) * 1024.0 * 1024, 1e-9);
  double moved = 2 * 36 * 2.7 * 2 * 1024.0 * 1024;
  near_to("time", apart.step_s - fused.step_s, moved / 1.79e12, 1e-6);
}

/* Stage 3 updates so many parameters at a time, and lets so many stay gathered. */
static void test_stage_3(void **unused) {
  (void)unused;
  sized all = with(3, BUCKET), part = with(3, BUCKET ", \"sub_group_size\": 1000000"),
        few = with(3, BUCKET ", \"stage3_max_live_parameters\": 10000000"),
        near =
            with(3, BUCKET ", \"stage3_max_reuse_distance\": 10000000, \"stage3_prefetch_bucket_size\": 0");
  double share = all.parameters / 8;
  near_to("sub_group_size", all.memory.parts[NXC_PART_OPTIMIZER] - part.memory.parts[NXC_PART_OPTIMIZER],
          4 * (share - 1e6), 1e-9);
  assert_true(few.memory.total < all.memory.total);
  assert_true(near.memory.total < all.memory.total);
}

#define CPU ", \"offload_optimizer\": {\"device\": \"cpu\"}"
#define HALF ", \"offload_optimizer\": {\"device\": \"nvme\", \"ratio\": 0.5}"

/* What is in the host's memory is not in the device's, and takes the time of its way. */
static void test_offload(void **unused) {
  (void)unused;
  for (int stage = 1; stage <= 3; stage++) {
    sized here = with(stage, BUCKET), there = with(stage, BUCKET CPU);
    near_to("state", there.memory.parts[NXC_PART_OPTIMIZER] + 1, 1, 1e-9);
    double gradients = there.memory.parts[NXC_PART_GRADIENTS];
    near_to("gradients", gradients + 1, (stage == 1 ? 2 * here.parameters : 0) + 1, 1e-9);
    assert_true(here.host_s == 0 && there.host_s > 0 && there.step_s > here.step_s);
  }
  sized here = with(3, BUCKET), half = with(3, BUCKET HALF), there = with(3, BUCKET CPU);
  near_to("half", half.memory.parts[NXC_PART_OPTIMIZER], here.memory.parts[NXC_PART_OPTIMIZER] / 2, 1e-9);
  near_to("half", half.host_s, there.host_s / 2, 1e-9);
  sized apart = with(3, BUCKET ", \"offload_param\": {\"device\": \"nvme\"}");
  near_to("parameters", apart.memory.parts[NXC_PART_PARAMETERS] + 1, 1, 1e-9);
  assert_true(apart.step_s >= here.step_s);
}

/* Ranks copy gradients to the host one after another, but where each bucket has some of all ranks; and those
 * of each micro-batch go there and back. */
static void test_turns(void **unused) {
  (void)unused;
  sized turns = with(2, BUCKET CPU), together = with(2, BUCKET CPU ", \"round_robin_gradients\": true");
  sized more = of_options(2, 0, 4, FP16, BUCKET CPU),
        less = of_options(2, 0, 4, FP16, BUCKET CPU ", \"round_robin_gradients\": true");
  double copy =
      (turns.host_s - together.host_s) / (4 * 7); /* of a byte for each parameter that 8 ranks share */
  near_to("micro-batches", more.host_s - turns.host_s, 3 * 4 * 8 * copy, 1e-6);
  near_to("micro-batches", less.host_s - together.host_s, 3 * 4 * copy, 1e-6);
}

/* A sum that each rank gets whole moves twice what its parts do, and beneath work it takes less; stage 2 sums
 * the gradients of each micro-batch. */
static void test_sums(void **unused) {
  (void)unused;
  sized whole = with(2, BUCKET), parts = with(2, BUCKET ", \"use_multi_rank_bucket_allreduce\": false"),
        beneath = with(2, BUCKET ", \"overlap_comm\": true"), often = of_options(2, 0, 4, FP16, BUCKET),
        once = of_options(1, 0, 4, FP16, BUCKET), piped = of_options(1, 1, 4, FP16, BUCKET),
        ahead = of_options(1, 1, 4, FP16, BUCKET ", \"overlap_comm\": true");
  near_to("3 parts for 2", whole.data_s, parts.data_s * 3 / 2, 1e-9);
  near_to("4 times 2 parts, and one", often.data_s, once.data_s * 3, 1e-9);
  assert_true(beneath.data_s < whole.data_s && beneath.data_s > 0);
  near_to("a pipeline's module", ahead.step_s, piped.step_s, 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_buckets), cmocka_unit_test(test_bf16),    cmocka_unit_test(test_stage_3),
      cmocka_unit_test(test_loss),    cmocka_unit_test(test_offload), cmocka_unit_test(test_turns),
      cmocka_unit_test(test_sums),    cmocka_unit_test(test_norms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
