/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any bytes for a plan: it is refused with a reason and a place, or all that reads plans can read it.
 *
 * A plan's hashes guard its every byte, so an input is tried as it is and once more with its hashes made
 * right. What mutations change are fields of records: libFuzzer's in a search, and more than a thousand of
 * every seed in the normal run, always the same. Seeds are plans that the build has just compiled, so that
 * all of them are accepted. */
#include "compiler/show/plan_dump.h"
#include "tests/fuzz/plan_mutate.h"
#include "tests/fuzz/replay.h"
#include "tests/plan_edit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { N_MUTANTS = 1500, N_RANKS_READ = 3 };

/* ---- reading ---- */

static volatile int64_t seen;

static void read_mesh(const nx_plan *plan) {
  const uint32_t ranks[N_RANKS_READ] = {0, plan->run->n_ranks / 2, plan->run->n_ranks - 1};
  for (int i = 0; i < N_RANKS_READ; i++) {
    for (uint32_t constant = 0; constant < plan->n[NX_SECTION_CONSTANTS]; constant++)
      seen = nx_constant_value(plan, constant, ranks[i], plan->n[NX_SECTION_CHUNKS] - 1);
    for (uint32_t group = 0; group < plan->n[NX_SECTION_GROUPS]; group++) {
      uint32_t position = nx_group_position(plan, group, ranks[i]);
      assert(position < plan->groups[group].size);
      assert(nx_group_member(plan, group, ranks[i], position) == ranks[i]);
    }
  }
}

static FILE *open_nowhere(void) {
  static FILE *nowhere;
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  assert(nowhere != NULL);
  return nowhere;
}

static void read_plan(const nx_plan *plan) {
  static nxc_plan_dump *const dumps[] = {nxc_dump_summary,  nxc_dump_settings, nxc_dump_ops,
                                        nxc_dump_schedule, nxc_dump_memory,   nxc_dump_tensors};
  for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) dumps[i](plan, open_nowhere());
  read_mesh(plan);
}

static bool try_plan(const uint8_t *bytes, size_t n_bytes) {
  nx_plan plan;
  nx_fault fault = {""};
  bool checked = nx_plan_check(bytes, n_bytes, &plan, &fault);
  if (checked) read_plan(&plan);
  bool accepted = checked && nx_plan_prove(&plan, &fault);
  if (accepted) nxc_draw_svg(&plan, open_nowhere());
  assert(accepted || (fault.text[0] != '\0' && fault.offset <= n_bytes));
  return accepted;
}

#ifdef NX_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t n_room);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t n_room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t n_room, unsigned seed) {
  uint8_t *changed = plan_copy(bytes, n_bytes);
  bool known = plan_has_sections(changed, n_bytes) && seed % 16 != 0;
  if (known) {
    plan_mutate(changed, n_bytes, seed);
    memcpy(bytes, changed, n_bytes);
  }
  free(changed);
  return known ? n_bytes : LLVMFuzzerMutate(bytes, n_bytes, n_room);
}

static void try_mutants(const uint8_t *bytes, size_t n_bytes) {
  (void)bytes, (void)n_bytes;
}
#else
static void try_mutants(const uint8_t *bytes, size_t n_bytes) {
  uint32_t n_accepted = 0;
  for (uint32_t i = 0; i < N_MUTANTS; i++) {
    uint8_t *changed = plan_copy(bytes, n_bytes);
    plan_mutate(changed, n_bytes, i);
    if (plan_has_sections(changed, n_bytes)) plan_seal(changed);
    n_accepted += try_plan(changed, n_bytes);
    free(changed);
  }
  printf("%u of %d changed plans are plans too\n", n_accepted, N_MUTANTS);
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  uint8_t *copied = plan_copy(bytes, n_bytes);
  try_plan(copied, n_bytes);
  if (plan_has_sections(copied, n_bytes)) {
    plan_seal(copied);
    if (try_plan(copied, n_bytes)) try_mutants(copied, n_bytes);
  }
  free(copied);
  return 0;
}
