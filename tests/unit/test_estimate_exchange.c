/* SPDX-License-Identifier: Apache-2.0 */
/* What exchanges take on a torus, what of them hides, and what ranks hold and compute that others do too. */
#include "compiler/estimate/exchange.h"
#include "compiler/estimate/product.h"
#include "compiler/estimate/time.h"
#include "tests/unit/estimate_case.h"

#include <math.h>

/* Seconds of one part of a step. */
static double spent(const char *system, const char *machine, const char *changes, nxc_spent part) {
  estimate e = estimate_of(system, changes);
  const nxc_machine *m = nxc_machine_read(e.c.arena, machine, e.c.sink);
  assert_non_null(m);
  nxc_own_time t = nxc_own_time_of(e.system, &e.sizes, &e.training, m, e.c.arena);
  double seconds = t.parts[part];
  program_end(&e.c);
  return seconds;
}

/* What the bytes take, without steps. */
static double gather_s(const nxc_machine *machine, double size, double stride) {
  nxc_ranks group = {size, stride};
  return (nxc_gather_s(machine, group, 2e9) - nxc_gather_s(machine, group, 1e9));
}

/* A ring over 16 ranks of two hosts has 15 steps, one of them between hosts; one along both axes of a torus
 * of 256 has 15 along each. */
static void test_steps(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  const nxc_machine *hosts = nxc_machine_read(arena, "h100", nxc_sink_new(arena));
  double one = nxc_gather_s(hosts, (nxc_ranks){8, 1}, 1e-3);
  double two = nxc_gather_s(hosts, (nxc_ranks){16, 1}, 1e-3);
  double apart = nxc_gather_s(hosts, (nxc_ranks){2, 8}, 1e-3);
  assert_true(fabs(one - (8.4e-6 + 7 * 3.4e-6)) < 1e-9);
  assert_true(fabs(two - (8.4e-6 + 14 * 3.4e-6 + 1.4e-5)) < 1e-9);
  assert_true(fabs(apart - (8.4e-6 + 1.4e-5)) < 1e-9);
  const nxc_machine *torus = nxc_machine_read(arena, "tpu-v5e", nxc_sink_new(arena));
  assert_true(fabs(nxc_gather_s(torus, (nxc_ranks){256, 1}, 1e-3) - 30e-6) < 1e-9);
  nxc_arena_free(arena);
}

/* Of 32 ranks on four hosts of eight, each with 8 copies of a row: they go to other hosts each for itself, or
 * once to a host. */
static void test_copies(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  const nxc_machine *hosts = nxc_machine_read(arena, "h100", nxc_sink_new(arena));
  const nxc_ranks group = {32, 1};
  double each = nxc_all_to_all_s(hosts, group, 2e9, 1) - nxc_all_to_all_s(hosts, group, 1e9, 1);
  double once = nxc_all_to_all_s(hosts, group, 2e9, 8) - nxc_all_to_all_s(hosts, group, 1e9, 8);
  double near = 1e9 * 7 / 8 / 3.51e11, ranks = 32 * (1 - pow(31.0 / 32, 8)) / 8;
  double far = 1e9 * 3 / 4 / 4.25e10, domains = 4 * (1 - pow(3.0 / 4, 8)) / 8;
  assert_true(fabs(each - (near + far)) < 1e-9);
  assert_true(fabs(once - (ranks * near + domains * far)) < 1e-9);
  nxc_arena_free(arena);
}

/* Megatron adds the biases of experts by operators of their own, unless one kernel does all. */
static void test_biased_experts(void **unused) {
  (void)unused;
#define JOINED BIASED "kernels.joined=[experts] "
#define BIASED MODEL "moe.experts=8 moe.top_k=2 moe.ffn_hidden=1024 model.activation=swiglu "
  double without = spent("megatron", "h100", BIASED, NXC_SPENT_POINTWISE);
  double with = spent("megatron", "h100", BIASED "model.bias=true", NXC_SPENT_POINTWISE);
  estimate e = estimate_of("megatron", BIASED);
  double rows = e.sizes.tokens * e.sizes.top_k * e.sizes.layers * e.sizes.micro_batches;
  double wanted = 14 * 2 * 2.7 / 2.95e12 * rows * e.sizes.hidden;
  program_end(&e.c);
  assert_true(fabs((with - without) / wanted - 1) < 1e-6);
  double joined = spent("megatron", "h100", JOINED, NXC_SPENT_POINTWISE);
  double both = spent("megatron", "h100", JOINED "model.bias=true", NXC_SPENT_POINTWISE);
  assert_true(joined > 0 && joined == both);
}

/* Rows of operands that begin at no multiples of 16 bytes are slow to read; how many of them a sum goes over,
 * as of the gradient of an expert's weights, is all the same. */
static void test_odd_sums(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  const nxc_device *device = nxc_machine_read(arena, "b200", nxc_sink_new(arena))->device;
  double even = nxc_product_s(device, &(nxc_product){3072, 5120, 1232, 20, 8, false, true});
  double odd = nxc_product_s(device, &(nxc_product){3072, 5120, 1229, 20, 8, false, true});
  double narrow = nxc_product_s(device, &(nxc_product){3073, 5120, 1232, 20, 8, false, true});
  double columns = nxc_product_s(device, &(nxc_product){3072, 5120, 1229, 20, 8, false, false});
  assert_true(odd <= even && odd > 0.99 * even && narrow > 2 * even && columns > 2 * even);
  nxc_arena_free(arena);
}

/* One axis of two has half of the links; a mesh that is not closed to a torus half of the speed. */
static void test_torus(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  const nxc_machine *whole = nxc_machine_read(arena, "tpu-v5e", nxc_sink_new(arena));
  double all = gather_s(whole, 256, 1), one = gather_s(whole, 16, 1), other = gather_s(whole, 16, 16);
  assert_true(fabs(all - 1e9 * 255 / 256 / 1.6e11) < 1e-9);
  assert_true(fabs(one - 1e9 * 15 / 16 / 0.8e11) < 1e-9 && fabs(one - other) < 1e-12);
  nxc_device device = *whole->device;
  nxc_machine part = *whole;
  device.domain = 64;
  part.device = &device;
  assert_true(fabs(gather_s(&part, 64, 1) - 1e9 * 63 / 64 / 0.8e11) < 1e-9);
  assert_true(fabs(gather_s(&part, 8, 1) - 1e9 * 7 / 8 / 0.4e11) < 1e-9);
  const nxc_machine *cube = nxc_machine_read(arena, "tpu-v5p", nxc_sink_new(arena));
  device = *cube->device;
  device.domain = 512;
  part = *cube;
  part.device = &device;
  assert_true(fabs(gather_s(&part, 8, 1) / gather_s(&part, 64, 8) - 2 * (7 / 8.0) / (63 / 64.0)) < 1e-9);
  nxc_arena_free(arena);
}

/* On a board without a switch two of four devices have a third of the links of each, three two thirds. */
static void test_pairs(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  const nxc_machine *board = nxc_machine_read(arena, "h200-4", nxc_sink_new(arena));
  const nxc_machine *hosts = nxc_machine_read(arena, "h200", nxc_sink_new(arena));
  for (int n = 2; n <= 4; n++)
    assert_true(fabs(gather_s(board, n, 1) / gather_s(hosts, n, 1) - 3.0 / (n - 1)) < 1e-9);
  assert_true(fabs(gather_s(board, 8, 1) - 1e9 / 2 / (4 * 4.25e10)) < 1e-9);
  const nxc_ranks two = {2, 1};
  double send = nxc_send_s(board, two, 2e9) - nxc_send_s(board, two, 1e9);
  double exchange = nxc_all_to_all_s(board, two, 2e9, 1) - nxc_all_to_all_s(board, two, 1e9, 1);
  assert_true(fabs(send - 3 * 1e9 / 3.51e11) < 1e-9 && fabs(exchange - send / 2) < 1e-9);
  nxc_arena_free(arena);
}

/* All cores of a trn1 have two rings, those of a row of chips one; each core is a step of either. */
static void test_rings(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  const nxc_machine *chips = nxc_machine_read(arena, "trn1", nxc_sink_new(arena));
  assert_true(fabs(gather_s(chips, 8, 1) - 1e9 * 7 / 8 / 5.28e10) < 1e-9);
  assert_true(fabs(gather_s(chips, 32, 1) - 1e9 * 31 / 32 / 1.056e11) < 1e-9);
  assert_true(fabs(nxc_gather_s(chips, (nxc_ranks){32, 1}, 1e-3) - (2.5e-5 + 31 * 3.9e-6)) < 1e-9);
  nxc_arena_free(arena);
}

/* Copies of what ZeRO-3 divides are slices of a torus, whatever a pod could have; what is summed over them
 * and over a slice is not hidden where the machine hides no sums. */
static void test_slices(void **unused) {
  (void)unused;
#define SLICES                                                                                               \
  MODEL "optimizer.zero_stage=3 mesh.world=128 batch.global=128 reduce.overlap=true gather.overlap=true "
  double bytes = 4 * 1311.1e6 / 64; /* of a rank's share, in fp32 */
  double sum = 2 * (bytes / 2 / 5e9 + 2e-5);
  double two = spent("nxdt", "tpu-v4", SLICES "mesh.replicate=2", NXC_SPENT_DATA);
  double one = spent("nxdt", "tpu-v4", SLICES, NXC_SPENT_DATA);
  assert_true(fabs(two - one - sum) < 0.1 * sum);
  two = spent("nxdt", "tpu-v6e", SLICES "mesh.replicate=2", NXC_SPENT_DATA);
  one = spent("nxdt", "tpu-v6e", SLICES, NXC_SPENT_DATA);
  assert_true(fabs(two - one) < 0.1 * sum);
}

/* Four ranks hold each of two key and value heads twice: they take as long, and as much memory, as four. */
static void test_copied_heads(void **unused) {
  (void)unused;
#define FOUR MODEL "mesh.world=4 mesh.tensor=4 "
  const nxc_spent parts[] = {NXC_SPENT_PRODUCTS, NXC_SPENT_POINTWISE};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    double two = spent("nxdt", "trn1", FOUR "model.kv_heads=2 mesh.kv_replicator=2", parts[i]);
    double four = spent("nxdt", "trn1", FOUR "model.kv_heads=4", parts[i]);
    assert_true(two == four);
  }
  estimate few = estimate_of("nxdt", FOUR "model.kv_heads=2 mesh.kv_replicator=2"),
           each = estimate_of("nxdt", FOUR "model.kv_heads=4");
  assert_true(first_stage(&few).total == first_stage(&each).total);
  assert_true(few.sizes.attention < each.sizes.attention); /* of the model: a copy is no weight more */
  program_end(&few.c);
  program_end(&each.c);
}

/* A norm reads and writes each query and key; of operators it moves 18 bytes of each more, forward. */
static void test_normalized_heads(void **unused) {
  (void)unused;
#define ONE(changes) spent("xorl", "h100", MODEL "mesh.world=1 " changes, NXC_SPENT_POINTWISE)
  double plain = ONE(""), one = ONE("model.qk_norm=head") - plain;
  double separate = ONE("model.qk_norm=head kernels.separate=[norm]") - ONE("kernels.separate=[norm]");
  assert_true(one > 0);
  assert_true(fabs(separate / one - (2 * 1.25 + 16) / (2 * 1.25)) < 1e-6);
}

/* What PyTorch and XLA compute again ends before the last product, whose result no gradient reads. */
static void test_early_stop(void **unused) {
  (void)unused;
#define AGAIN MODEL "mesh.world=1 "
#define PRODUCTS(system, changes) spent(system, "h100", AGAIN changes, NXC_SPENT_PRODUCTS)
#define FULL "recompute.granularity=full"
  double once = PRODUCTS("xorl", ""), whole = PRODUCTS("megatron", FULL) - PRODUCTS("megatron", "");
  double again = PRODUCTS("xorl", FULL) - once;
  /* 4 hidden^2 of attention and 4 of the first product, of 12 */
  assert_true(fabs(again / whole - 8.0 / 12) < 0.03);
  assert_true(fabs(PRODUCTS("nxdt", FULL) - PRODUCTS("xorl", FULL)) < 1e-9);
#define SECOND "model.activation=swiglu recompute.granularity=selective recompute.modules=[second_products]"
#define GATED "model.activation=swiglu "
  once = PRODUCTS("xorl", GATED), whole = PRODUCTS("megatron", GATED FULL) - PRODUCTS("megatron", GATED);
  /* key, output and one of the network's three, of 16 hidden^2 */
  assert_true(fabs((PRODUCTS("xorl", SECOND) - once) / whole - 6.0 / 16) < 0.03);
#define MIXED "moe.experts=8 moe.top_k=2 moe.ffn_hidden=4096 "
  once = PRODUCTS("xorl", MIXED GATED),
  whole = PRODUCTS("megatron", MIXED GATED FULL) - PRODUCTS("megatron", MIXED GATED);
  /* key, output and two of the three of two experts of 2 hidden, of 4 + 12 hidden^2 */
  assert_true(fabs((PRODUCTS("xorl", MIXED SECOND) - once) / whole - 10.0 / 16) < 0.03);
#define MODULE(name) "recompute.granularity=selective recompute.modules=[" name "]"
#define MORE(system, name) (PRODUCTS(system, MODULE(name)) - PRODUCTS(system, ""))
  assert_true(fabs(MORE("xorl", "mlp") / MORE("megatron", "mlp") - 4.0 / 8) < 0.03); /* a module's alike */
  assert_true(fabs(MORE("nxdt", "attention") / MORE("megatron", "attention") - 3.0 / 4) < 0.03);
}

/* Without sequence parallelism NxDT sums inputs' gradients beneath products of weights; with it, it gathers
 * inputs again for these, unless they have just been computed again. */
static void test_backward(void **unused) {
  (void)unused;
#define EIGHT MODEL "mesh.world=8 mesh.tensor=8 "
#define TENSOR(changes) spent("nxdt", "trn1", EIGHT changes, NXC_SPENT_TENSOR)
  double forward = 24 * 64 * 4 * (2 * 2048.0 * 2048 * 7 / 8 / 5.28e10 + 2.5e-5 + 7 * 3.9e-6);
  assert_true(fabs(TENSOR("sequence_parallel=true") / forward - 2.5) < 1e-6);
  assert_true(fabs(TENSOR("sequence_parallel=true " FULL) / forward - (2 + 0.75)) < 1e-6);
  double whole = TENSOR("");
  assert_true(whole >= forward && whole < 2 * forward);
}

/* Products that read the same gather it each for itself: three and two where one and one would do, beside two
 * sums; logits that are gathered go over the links too, and their loss is made four times. */
static void test_undivided(void **unused) {
  (void)unused;
#define SHARED MODEL "mesh.world=4 mesh.tensor=4 sequence_parallel=true model.activation=swiglu "
  double least = spent("xorl", "h100", SHARED, NXC_SPENT_TENSOR);
  double each = spent("xorl", "h100", SHARED "tensor.undivided=[inputs]", NXC_SPENT_TENSOR);
  assert_true(fabs(each / least - 7.0 / 4) < 1e-9);
  double whole = spent("xorl", "h100", SHARED "tensor.undivided=[logits]", NXC_SPENT_TENSOR);
  double logits = 2048.0 * 50304, gather = 2 * logits * 3 / 4 / 3.51e11 + 8.4e-6 + 3 * 3.4e-6;
  near_to("gathered logits", whole - least, 64 * gather, 1e-6);
  double moved = spent("xorl", "h100", SHARED "tensor.undivided=[logits]", NXC_SPENT_POINTWISE) -
                 spent("xorl", "h100", SHARED, NXC_SPENT_POINTWISE);
  near_to("their loss", moved, 64 * 14 * logits * 3 / 4 / 2.95e12, 1e-6);
  /* of a whole output layer each has all logits already */
  double layer = spent("xorl", "h100", SHARED "tensor.undivided=[logits,output]", NXC_SPENT_TENSOR);
  near_to("a whole output layer", layer, least, 1e-9);
#define WHOLE SHARED "model.tied_embeddings=false tensor.undivided=[logits,output]"
  double divided = spent("xorl", "h100", SHARED, NXC_SPENT_PRODUCTS);
  double undivided = spent("xorl", "h100", WHOLE, NXC_SPENT_PRODUCTS);
  near_to("its products", undivided - divided, 64 * 3 * 2 * logits * 2048 * 3 / 4 / (0.68 * 989.4e12), 0.2);
  estimate e = estimate_of("xorl", WHOLE);
  nxc_sizes stage;
  nxc_sizes_of_stage(&e.sizes, &e.training, 0, &stage);
  near_to("its parameters", stage.tables, (1 + 1 / 4.0) * 50304 * 2048, 1e-9);
  program_end(&e.c);
}

/* DeepSpeed's stages send a part from each tensor-parallel rank, and gather it: the input, and backward
 * the gradient and the output of which they had kept a part. */
static void test_sends(void **unused) {
  (void)unused;
#define STAGES MODEL "mesh.world=8 mesh.tensor=4 mesh.pipeline=2 "
#define SENT(system) spent(system, "a100", STAGES, NXC_SPENT_STAGES)
  double bytes = 2 * 2048.0 * 2048, n = 64;
  double step = 3.4e-6, once = 8.4e-6 + step;
  double send = bytes / 4 / 2.34e11 + once, gather = bytes * 3 / 4 / 2.34e11 + once + 2 * step;
  assert_true(fabs(SENT("neox") / (n * (2 * send + 3 * gather)) - 1) < 1e-6);
  assert_true(fabs(SENT("megatron") / (n * 0.5 * 2 * (bytes / 2.34e11 + once)) - 1) < 1e-6);
  estimate kept = estimate_of("neox", STAGES), whole = estimate_of("nx", STAGES);
  nxc_own_memory parts = first_stage(&kept), all = first_stage(&whole);
  double more = all.parts[NXC_PART_ACTIVATIONS] - parts.parts[NXC_PART_ACTIVATIONS];
  near_to("output of a stage", more, 2 * bytes * 3 / 4, 1e-6); /* of the micro-batches in flight */
  program_end(&kept.c);
  program_end(&whole.c);
}

/* Autograd adds a micro-batch's gradients to those before it; DeepSpeed's optimizer for bf16 adds them to
 * sums in fp32, each a cast before, the first one too. */
static void test_summed(void **unused) {
  (void)unused;
#define BATCHES(n) MODEL "mesh.world=1 precision.grad_accumulation=bf16 batch.global=" #n
#define MOVED(changes) spent("neox", "a100", changes, NXC_SPENT_POINTWISE)
  double one = MOVED(BATCHES(1)), four = MOVED(BATCHES(4));
  double sum = (24 * 12 * 2048.0 * 2048 + 50304 * 2048.0) / 1.79e12;
  near_to("three sums of four", four - 4 * one, 3 * 6 * sum, 1e-6);
  double wide = MOVED(MODEL "mesh.world=1 batch.global=1");
  near_to("in fp32", wide - one, 18 * sum, 1e-6);
}

/* A loss that no kernel joins moves each logit as often as Megatron's operators do: 38 bytes, and 14 back. */
static void test_separate_loss(void **unused) {
  (void)unused;
#define LOSS(changes) spent("megatron", "h100", MODEL "mesh.world=1 " changes, NXC_SPENT_POINTWISE)
  double logits = 64 * 2048.0 * 50304, more = LOSS("kernels.separate=[loss]") - LOSS("");
  near_to("operators of the loss", more, (38 + 14 - 8 - 6) * logits / 2.95e12, 1e-6);
  double neox = spent("neox", "h100", MODEL "mesh.world=1 kernels.separate=[loss]", NXC_SPENT_POINTWISE) -
                spent("neox", "h100", MODEL "mesh.world=1", NXC_SPENT_POINTWISE);
  near_to("of GPT-NeoX", neox, more, 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_torus),
      cmocka_unit_test(test_slices),
      cmocka_unit_test(test_copied_heads),
      cmocka_unit_test(test_early_stop),
      cmocka_unit_test(test_normalized_heads),
      cmocka_unit_test(test_backward),
      cmocka_unit_test(test_undivided),
      cmocka_unit_test(test_sends),
      cmocka_unit_test(test_summed),
      cmocka_unit_test(test_biased_experts),
      cmocka_unit_test(test_odd_sums),
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_rings),
      cmocka_unit_test(test_separate_loss),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
