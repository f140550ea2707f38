/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any bytes for a plan: it is refused with a reason and a place, or all that reads plans can read it.
 *
 * A plan's hashes guard its every byte, so an input is tried as it is and once more with its hashes made
 * right. What mutations change are fields of records: libFuzzer's in a search, and some thousands of every
 * seed in the normal run, always the same. Seeds are plans that the build has just compiled, so that all of
 * them are accepted. */
#include "schema/plan_dump.h"
#include "tests/fuzz/replay.h"
#include "tests/plan_edit.h"

#include <assert.h>
#include <string.h>

enum { N_MUTANTS = 4000, MOST_CHANGES = 4, N_RANKS_READ = 3 };

static uint64_t random_state = 1;

static uint64_t draw(uint64_t bound) {
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state % bound;
}

static const nx_section *section_at(const uint8_t *bytes, uint32_t index) {
  return (const nx_section *)(const void *)(bytes + sizeof(nx_header)) + index;
}

/* Whether the sections lie where hashes of them can be taken. */
static bool has_sections(const uint8_t *bytes, size_t n_bytes) {
  const nx_header *header = (const void *)bytes;
  if (n_bytes < sizeof *header || header->n_sections == 0 || header->n_sections >= NX_SECTION_END)
    return false;
  if (n_bytes - sizeof *header < header->n_sections * sizeof(nx_section)) return false;
  for (uint32_t i = 0; i < header->n_sections; i++)
    if (section_at(bytes, i)->offset > n_bytes ||
        section_at(bytes, i)->bytes > n_bytes - section_at(bytes, i)->offset)
      return false;
  return true;
}

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
  static nx_plan_dump *const dumps[] = {nx_plan_dump_summary,  nx_plan_dump_settings, nx_plan_dump_ops,
                                        nx_plan_dump_schedule, nx_plan_dump_memory,   nx_plan_dump_tensors};
  for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) dumps[i](plan, open_nowhere());
  read_mesh(plan);
}

static bool try_plan(const uint8_t *bytes, size_t n_bytes) {
  nx_plan plan;
  nx_fault fault = {""};
  bool checked = nx_plan_check(bytes, n_bytes, &plan, &fault);
  if (checked) read_plan(&plan);
  bool accepted = checked && nx_plan_prove(&plan, &fault);
  if (accepted) nx_plan_draw_svg(&plan, open_nowhere());
  assert(accepted || (fault.text[0] != '\0' && fault.offset <= n_bytes));
  return accepted;
}

static uint8_t *copy(const uint8_t *bytes, size_t n_bytes) {
  void *copied;
  if (posix_memalign(&copied, NX_PLAN_ALIGNMENT, n_bytes ? n_bytes : 1) != 0) abort();
  memcpy(copied, bytes, n_bytes);
  return copied;
}

/* ---- changing ---- */

/* One field of one record gets another number: a near one, an extreme one, or that of another record. */
static void change_field(uint8_t *bytes) {
  static const uint64_t extremes[] = {0, 1, UINT8_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX, UINT32_MAX - 1,
                                      UINT64_C(1) << 48, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
  const nx_section *section =
      section_at(bytes, (uint32_t)draw(((const nx_header *)(const void *)bytes)->n_sections));
  uint64_t width = UINT64_C(1) << draw(4), value = 0, other = 0;
  while (width > section->record_bytes) width /= 2;
  if (section->n_records == 0 || width == 0 || section->bytes < section->record_bytes) return;
  uint64_t n_records = section->bytes / section->record_bytes;
  uint64_t field = draw(section->record_bytes / width) * width;
  uint8_t *at = bytes + section->offset + draw(n_records) * section->record_bytes + field;
  memcpy(&value, at, width);
  memcpy(&other, bytes + section->offset + draw(n_records) * section->record_bytes + field, width);
  const uint64_t changed[] = {value + 1, value - 1, value * 2, value ^ UINT64_C(1) << draw(8 * width),
                              draw(64), other,
                              extremes[draw(sizeof extremes / sizeof *extremes)]};
  value = changed[draw(sizeof changed / sizeof *changed)];
  memcpy(at, &value, width);
}

/* A change may be one of the table of sections, where a section lies over it. */
static void change_fields(uint8_t *bytes, size_t n_bytes) {
  for (uint64_t n = 1 + draw(MOST_CHANGES); n > 0 && has_sections(bytes, n_bytes); n--) change_field(bytes);
}

#ifdef NX_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t n_room);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t n_room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t n_room, unsigned seed) {
  random_state = (seed + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
  uint8_t *changed = copy(bytes, n_bytes);
  bool known = has_sections(changed, n_bytes) && draw(16) != 0;
  if (known) {
    change_fields(changed, n_bytes);
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
    uint8_t *changed = copy(bytes, n_bytes);
    random_state = (i + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
    change_fields(changed, n_bytes);
    if (has_sections(changed, n_bytes)) plan_seal(changed);
    n_accepted += try_plan(changed, n_bytes);
    free(changed);
  }
  printf("%u of %d changed plans are plans too\n", n_accepted, N_MUTANTS);
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  uint8_t *copied = copy(bytes, n_bytes);
  try_plan(copied, n_bytes);
  if (has_sections(copied, n_bytes)) {
    plan_seal(copied);
    if (try_plan(copied, n_bytes)) try_mutants(copied, n_bytes);
  }
  free(copied);
  return 0;
}
