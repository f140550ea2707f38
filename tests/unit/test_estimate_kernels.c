/* SPDX-License-Identifier: Apache-2.0 */
/* What a step takes by whose kernels compute it, and on what they run. */
#include "compiler/estimate/time.h"
#include "compiler/machine/names.h"
#include "tests/unit/estimate_case.h"

#include <math.h>

static nxc_own_time time_of(const char *system, const char *machine, const char *changes) {
  estimate e = estimate_of(system, changes);
  const nxc_machine *m = nxc_machine_read(e.c.arena, machine, e.c.sink);
  assert_non_null(m);
  nxc_own_time t = nxc_own_time_of(e.system, &e.sizes, &e.training, m, e.c.arena);
  program_end(&e.c);
  return t;
}

static double spent(const char *system, const char *machine, const char *changes, nxc_spent part) {
  return time_of(system, machine, changes).parts[part];
}

/* GPT-NeoX's attention has an A100's instructions, which reach less on an H100; Megatron's has its own. */
static void test_generations(void **unused) {
  (void)unused;
#define FLASH MODEL "mesh.world=1 model.sequence=16384 "
  double before = spent("neox", "h100", FLASH, NXC_SPENT_ATTENTION);
  double own = spent("megatron", "h100", FLASH, NXC_SPENT_ATTENTION);
  double forward = 1 / 0.39, backward = 2.5 / 0.32, forward_own = 1 / 0.42, backward_own = 2.5 / 0.36;
  double wanted = (forward + backward) / (forward_own + backward_own) / 0.6;
  assert_true(fabs(before / own / wanted - 1) < 0.01);
  before = spent("neox", "a100", FLASH, NXC_SPENT_ATTENTION);
  own = spent("megatron", "a100", FLASH, NXC_SPENT_ATTENTION);
  assert_true(fabs(before / own - 1 / 0.6) < 1e-6);
}

/* With ZeRO-3 a training of nx has PyTorch's kernels, but not where a compiler makes one program of it. */
static void test_compiled(void **unused) {
  (void)unused;
#define ZERO3 MODEL "mesh.world=8 optimizer.zero_stage=3 batch.global=8 "
  const nxc_spent parts[] = {NXC_SPENT_ATTENTION, NXC_SPENT_POINTWISE};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    double compiled = spent("nx", "tpu-v5p", ZERO3, parts[i]), own = spent("nxdt", "tpu-v5p", ZERO3, parts[i]);
    assert_true(own > 0 && fabs(compiled / own - 1) < 1e-6);
    assert_true(spent("nx", "a100", ZERO3, parts[i]) > 1.2 * spent("nxdt", "a100", ZERO3, parts[i]));
  }
#define AGAIN ZERO3 "recompute.granularity=full"
  double compiled = spent("nx", "tpu-v5p", AGAIN, NXC_SPENT_PRODUCTS);
  assert_true(compiled == spent("nxdt", "tpu-v5p", AGAIN, NXC_SPENT_PRODUCTS));
  assert_true(compiled < 0.97 * spent("megatron", "tpu-v5p", AGAIN, NXC_SPENT_PRODUCTS));
}

/* A gate with a limit has operators of its own in Megatron's experts: of their width 18 elements are moved. */
static void test_limits(void **unused) {
  (void)unused;
#define GATES                                                                                                \
  MODEL "model.activation=swiglu moe.experts=8 moe.top_k=2 moe.ffn_hidden=1024 mesh.world=1 "
  double free = spent("megatron", "h100", GATES, NXC_SPENT_POINTWISE);
  double limited = spent("megatron", "h100", GATES "model.gate_limit=7.0", NXC_SPENT_POINTWISE);
  double moved = 18 * 2 / 2.95e12 * 24 * 64 * 2048 * 2 * 1024;
  assert_true(fabs((limited - free) / moved - 1) < 0.01);
#define JOINED GATES "kernels.joined=[experts] "
  free = spent("megatron", "h100", JOINED, NXC_SPENT_POINTWISE);
  limited = spent("megatron", "h100", JOINED "model.gate_limit=7.0", NXC_SPENT_POINTWISE);
  assert_true(free == limited);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_generations),
      cmocka_unit_test(test_compiled),
      cmocka_unit_test(test_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
