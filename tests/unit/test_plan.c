/* SPDX-License-Identifier: Apache-2.0 */
/* A plan that was touched is refused: every single bit, every truncation, every kind of wrong record.
 *
 * Runs on the plan named by NX_TEST_PLAN, a small one that the build compiles. */
#include "tests/plan_edit.h"

#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct file {
  uint8_t *bytes;
  uint64_t n_bytes;
} file;

static file original;

static int read_plan(void **state) {
  (void)state;
  original.bytes = plan_read(getenv("NX_TEST_PLAN"), &original.n_bytes);
  return original.bytes ? 0 : -1;
}

static int free_plan(void **state) {
  (void)state;
  free(original.bytes);
  return 0;
}

static bool accepts(const uint8_t *bytes, uint64_t n_bytes, nx_fault *fault) {
  nx_plan plan;
  return nx_plan_check(bytes, n_bytes, &plan, fault) && nx_plan_prove(&plan, fault);
}

static void test_original_is_accepted(void **state) {
  (void)state;
  nx_fault fault = {""};
  if (!accepts(original.bytes, original.n_bytes, &fault)) fail_msg("refused: %s", fault.text);
}

static void test_every_flipped_bit_is_refused(void **state) {
  (void)state;
  nx_fault fault;
  for (uint64_t bit = 0; bit < original.n_bytes * 8; bit++) {
    original.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    bool accepted = accepts(original.bytes, original.n_bytes, &fault);
    original.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    if (accepted) fail_msg("bit %llu was flipped and nobody noticed", (unsigned long long)bit);
  }
}

static void test_every_truncation_is_refused(void **state) {
  (void)state;
  nx_fault fault;
  for (uint64_t n_bytes = 0; n_bytes < original.n_bytes; n_bytes++)
    if (accepts(original.bytes, n_bytes, &fault))
      fail_msg("cut to %llu bytes and nobody noticed", (unsigned long long)n_bytes);
}

static void test_appended_bytes_are_refused(void **state) {
  (void)state;
  nx_fault fault;
  file longer = {calloc(1, original.n_bytes + 64), original.n_bytes + 64};
  memcpy(longer.bytes, original.bytes, original.n_bytes);
  assert_false(accepts(longer.bytes, longer.n_bytes, &fault));
  free(longer.bytes);
}

/* From here on: plans whose hashes are right, and which are wrong all the same. */

static uint8_t *copy_plan(void) {
  uint8_t *bytes = aligned_alloc(64, (original.n_bytes + 63) / 64 * 64);
  memcpy(bytes, original.bytes, original.n_bytes);
  return bytes;
}

static nx_run *run_of(uint8_t *bytes) {
  return plan_record(bytes, NX_SECTION_RUN, 0);
}
static nx_operator *add_of(uint8_t *bytes) {
  return plan_operator(bytes, NX_OP_add);
}
/* What an operator reads first. */
static nx_value *source_of(uint8_t *bytes, nx_op op) {
  return plan_record(bytes, NX_SECTION_VALUES, *plan_argument(bytes, plan_operator(bytes, op), 0));
}
static nx_piece *piece_of(uint8_t *bytes) {
  return plan_record(bytes, NX_SECTION_PIECES, 0);
}
static nx_range *range_of(uint8_t *bytes) {
  return plan_record(bytes, NX_SECTION_RANGES, 0);
}
static nx_parameter_group *parameter_group_of(uint8_t *bytes) {
  return plan_record(bytes, NX_SECTION_PARAMETER_GROUPS, 0);
}
static nx_chunk *chunk_of(uint8_t *bytes) {
  return plan_record(bytes, NX_SECTION_CHUNKS, 0);
}
static nx_item *item_of(uint8_t *bytes) {
  return plan_record(bytes, NX_SECTION_ITEMS, 0);
}

static void break_rank_count(uint8_t *bytes) { run_of(bytes)->n_ranks = 3; }
static void break_threads(uint8_t *bytes) { run_of(bytes)->n_threads = 0; }
static void break_batch(uint8_t *bytes) { run_of(bytes)->global_batch += 1; }
static void break_token_value(uint8_t *bytes) { run_of(bytes)->tokens = NX_NONE - 1; }
static void break_slots(uint8_t *bytes) { run_of(bytes)->n_slots = 7; }
static void break_deadline(uint8_t *bytes) {
  nx_run_names *names = plan_record(bytes, NX_SECTION_RUN_NAMES, 0);
  names->deadline_s = 0;
}
static void break_operator_number(uint8_t *bytes) { add_of(bytes)->op = 9999; }
static void break_operator_arity(uint8_t *bytes) { add_of(bytes)->n_in = 3; }
static void break_operator_when(uint8_t *bytes) { add_of(bytes)->when = 0; }
static void break_operator_group(uint8_t *bytes) { add_of(bytes)->group = 0; }
static void break_argument(uint8_t *bytes) { *plan_argument(bytes, add_of(bytes), 0) = NX_NONE; }
static void break_shape(uint8_t *bytes) { source_of(bytes, NX_OP_matmul)->dims[0] *= 2; }
static void break_operands(uint8_t *bytes) {
  const nx_operator *op = plan_operator(bytes, NX_OP_matmul);
  *plan_argument(bytes, op, 1) = *plan_argument(bytes, op, 0);
}
static void break_type(uint8_t *bytes) { source_of(bytes, NX_OP_add)->dtype = 77; }
static void break_offset(uint8_t *bytes) { source_of(bytes, NX_OP_add)->offset = UINT64_MAX - 63; }
static void break_alignment(uint8_t *bytes) { source_of(bytes, NX_OP_add)->offset += 4; }
static void break_arena(uint8_t *bytes) {
  nx_arena_record *arena = plan_record(bytes, NX_SECTION_ARENAS, 0);
  arena->bytes = 64;
}
static void break_program(uint8_t *bytes) {
  nx_program *program = plan_record(bytes, NX_SECTION_PROGRAMS, 0);
  program->n_operators += 1000000;
}
static void break_chunk(uint8_t *bytes) { chunk_of(bytes)->forward = 12345; }
static void break_chunk_base(uint8_t *bytes) { chunk_of(bytes)->arena_base[0] = UINT64_MAX / 8; }
static void break_item(uint8_t *bytes) { item_of(bytes)->kind = NX_ITEM_SEND; }
static void break_item_order(uint8_t *bytes) { item_of(bytes)->kind = NX_ITEM_BACKWARD; }
static void break_piece(uint8_t *bytes) { piece_of(bytes)->row = 1 << 20; }
static void break_piece_range(uint8_t *bytes) { piece_of(bytes)->range_offset = UINT64_MAX; }
static void break_range(uint8_t *bytes) { range_of(bytes)->n_shard -= 1; }
static void break_shard(uint8_t *bytes) { range_of(bytes)->n_shard += UINT64_C(1) << 63; }
static void break_setting(uint8_t *bytes) {
  nx_setting_record *setting = plan_record(bytes, NX_SECTION_SETTINGS, 0);
  setting->path = NX_NONE;
}
static void break_string_end(uint8_t *bytes) {
  nx_section *section = plan_section(bytes, NX_SECTION_STRINGS);
  bytes[section->offset + section->bytes - 1] = 'x';
}
/* Sixteen million ranks, on which a term that was within bounds overflows. */
static void break_term(uint8_t *bytes) {
  nx_atom *atom = plan_record(bytes, NX_SECTION_ATOMS, 0);
  const uint32_t larger = NX_MAX_RANKS / run_of(bytes)->n_ranks;
  while (atom->size == 1) atom++;
  uint32_t index = (uint32_t)(atom - (nx_atom *)plan_record(bytes, NX_SECTION_ATOMS, 0));
  atom->size *= larger, run_of(bytes)->n_ranks *= larger;
  for (uint32_t i = index + 1; (atom = plan_record(bytes, NX_SECTION_ATOMS, i)) != NULL; i++)
    atom->stride *= larger;
  nx_group *group;
  for (uint32_t i = 0; (group = plan_record(bytes, NX_SECTION_GROUPS, i)) != NULL; i++)
    if (group->atoms & 1u << index) group->size *= larger;
  nx_term *term;
  for (uint32_t i = 0; (term = plan_record(bytes, NX_SECTION_TERMS, i)) != NULL; i++)
    if (term->atoms == 1u << index && term->kind == NX_TERM_STRIDE) term->stride = INT64_C(1) << 40;
}
/* Twice as many ranks as there may be: all that hangs on the first atom grows with it. */
static void break_rank_bound(uint8_t *bytes) {
  nx_atom *atom = plan_record(bytes, NX_SECTION_ATOMS, 0);
  atom->size *= NX_MAX_RANKS, run_of(bytes)->n_ranks *= NX_MAX_RANKS;
  for (uint32_t i = 1; (atom = plan_record(bytes, NX_SECTION_ATOMS, i)) != NULL; i++)
    atom->stride *= NX_MAX_RANKS;
  nx_group *group;
  for (uint32_t i = 0; (group = plan_record(bytes, NX_SECTION_GROUPS, i)) != NULL; i++)
    if (group->atoms & 1) group->size *= NX_MAX_RANKS;
}
static void break_thread_bound(uint8_t *bytes) { run_of(bytes)->n_threads = NX_MAX_THREADS + 1; }
static void break_tokens_per_step(uint8_t *bytes) { run_of(bytes)->tokens_per_step += 1; }
static void break_deadline_bound(uint8_t *bytes) {
  nx_run_names *names = plan_record(bytes, NX_SECTION_RUN_NAMES, 0);
  names->deadline_s = INFINITY;
}
static void break_value_arena(uint8_t *bytes) { source_of(bytes, NX_OP_add)->arena = NX_N_ARENAS; }
static void break_item_port(uint8_t *bytes) {
  item_of(bytes)->kind = NX_ITEM_SEND;
  item_of(bytes)->when = 0;
  item_of(bytes)->port = NX_N_PORTS;
}
static void break_piece_size(uint8_t *bytes) { piece_of(bytes)->logical_rows = INT64_C(1) << 40; }
/* An integer where the rule reads and writes floats: the lengths stay right. */
static void break_range_type(uint8_t *bytes) {
  nx_value *master = plan_record(bytes, NX_SECTION_VALUES, range_of(bytes)->states[0]);
  master->dtype = NX_i32;
}
/* A ZeRO shard that begins in the middle of an element. */
static void break_shift(uint8_t *bytes) {
  nx_value *value;
  for (uint32_t i = 0; (value = plan_record(bytes, NX_SECTION_VALUES, i)) != NULL; i++) {
    if (value->view_of == NX_NONE || value->offset_shift == NX_NONE) continue;
    nx_constant *constant = plan_record(bytes, NX_SECTION_CONSTANTS, value->offset_shift);
    nx_term *term = plan_record(bytes, NX_SECTION_TERMS, constant->first_term);
    term->stride -= 1;
    return;
  }
}
static void break_format(uint8_t *bytes) {
  nx_header *header = (void *)bytes;
  header->major = 1, header->minor = 0;
}
static void break_section_flags(uint8_t *bytes) { plan_section(bytes, NX_SECTION_OPERATORS)->flags = 0; }
static void break_section_size(uint8_t *bytes) {
  plan_section(bytes, NX_SECTION_OPERATORS)->n_records = UINT32_MAX;
}
static void break_section_offset(uint8_t *bytes) { plan_section(bytes, NX_SECTION_OPERATORS)->offset += 64; }

typedef void break_plan(uint8_t *bytes);

/* Each, with its hashes made right. */
static void refuses_all(break_plan *const *breaks, size_t n, void (*seal)(uint8_t *)) {
  for (size_t i = 0; i < n; i++) {
    uint8_t *bytes = copy_plan();
    nx_fault fault;
    breaks[i](bytes);
    seal(bytes);
    if (accepts(bytes, original.n_bytes, &fault)) fail_msg("broken plan %zu was accepted", i);
    free(bytes);
  }
}

static void test_wrong_records_are_refused(void **state) {
  (void)state;
  static break_plan *const breaks[] = {
      break_rank_count, break_threads, break_batch, break_token_value, break_slots, break_deadline,
      break_operator_number, break_operator_arity, break_operator_when, break_operator_group, break_argument,
      break_shape, break_operands, break_type, break_offset, break_alignment, break_arena, break_program,
      break_chunk, break_chunk_base, break_item, break_item_order, break_piece, break_piece_range,
      break_range, break_shard, break_setting, break_string_end};
  refuses_all(breaks, sizeof breaks / sizeof *breaks, plan_seal);
}

static void test_wrong_sections_are_refused(void **state) {
  (void)state;
  static break_plan *const breaks[] = {break_section_flags, break_section_size, break_section_offset};
  refuses_all(breaks, sizeof breaks / sizeof *breaks, plan_seal_header);
}

static void break_group_rule(uint8_t *bytes) { parameter_group_of(bytes)->optimizer = NX_OP_matmul; }
static void break_group_lr(uint8_t *bytes) { parameter_group_of(bytes)->lr = run_of(bytes)->step; }
static void break_group_factor(uint8_t *bytes) { parameter_group_of(bytes)->lr_factor = -1; }
static void break_range_group(uint8_t *bytes) { range_of(bytes)->parameter_group = 1000; }

static nx_dataset *dataset_of(uint8_t *bytes) {
  return plan_record(bytes, NX_SECTION_DATASETS, 0);
}
static nx_source *source_record_of(uint8_t *bytes) {
  return plan_record(bytes, NX_SECTION_SOURCES, 0);
}
static void break_dataset_name(uint8_t *bytes) { dataset_of(bytes)->name = NX_NONE; }
static void break_dataset_role(uint8_t *bytes) { dataset_of(bytes)->role = NX_DATASET_TEST + 1; }
static void break_dataset_sampler(uint8_t *bytes) { dataset_of(bytes)->sampler = 0; }
static void break_dataset_blend(uint8_t *bytes) { dataset_of(bytes)->blend = NX_BLEND_EPOCHS + 1; }
static void break_dataset_shuffle(uint8_t *bytes) { dataset_of(bytes)->shuffle = 2; }
static void break_dataset_alpha(uint8_t *bytes) { dataset_of(bytes)->blend_alpha = 1; }
static void break_dataset_packing(uint8_t *bytes) { dataset_of(bytes)->packing = NX_PACKING_IN_ORDER; }
static void break_dataset_packed(uint8_t *bytes) { dataset_of(bytes)->sampler = NX_SAMPLER_PACKED; }
static void break_dataset_group(uint8_t *bytes) { dataset_of(bytes)->packing_group = 1; }
static void break_loss_mean(uint8_t *bytes) { run_of(bytes)->loss_mean = NX_MEAN_STEP; }
static void break_document_ends(uint8_t *bytes) { run_of(bytes)->documents = NX_DOCUMENTS_LOSS; }
static void break_dataset_more_alpha(uint8_t *bytes) {
  dataset_of(bytes)->blend = NX_BLEND_DOCUMENTS, dataset_of(bytes)->blend_alpha = NAN;
}
static void break_dataset_sources(uint8_t *bytes) { dataset_of(bytes)->n_sources = 2; }
static void break_dataset_first(uint8_t *bytes) { dataset_of(bytes)->first_source = 1; }
static void break_dataset_none(uint8_t *bytes) { dataset_of(bytes)->n_sources = 0; }
static void break_dataset_order(uint8_t *bytes) { dataset_of(bytes)->order = 0; }
static void break_source_prefix(uint8_t *bytes) { source_record_of(bytes)->prefix = NX_NONE; }
static void break_source_part(uint8_t *bytes) { source_record_of(bytes)->part = NX_PARTS; }
static void break_source_split(uint8_t *bytes) { source_record_of(bytes)->split = NX_SPLIT_LAST + 1; }
static void break_source_last(uint8_t *bytes) { source_record_of(bytes)->n_last = 1; }
static void break_source_weight(uint8_t *bytes) { source_record_of(bytes)->weight = 0.5; }
static void break_source_share(uint8_t *bytes) { source_record_of(bytes)->shares[1] = 0.5; }
static void break_source_shares(uint8_t *bytes) {
  source_record_of(bytes)->shares[0] = 2, source_record_of(bytes)->shares[1] = -1;
}
static void break_source_nan(uint8_t *bytes) { source_record_of(bytes)->shares[2] = NAN; }

/* Why a plan with this change is refused: the words of the check that it is there for, and of no other. */
static void test_each_bound_has_its_own_refusal(void **state) {
  (void)state;
  static const struct {
    break_plan *change;
    const char *why;
  } cases[] = {
      {break_rank_bound, "the run is malformed"},
      {break_thread_bound, "the run is malformed"},
      {break_tokens_per_step, "another number of tokens than its sequences"},
      {break_deadline_bound, "the run's names are malformed"},
      {break_value_arena, "value "},
      {break_item_port, "item 0 is malformed"},
      {break_piece_size, "of a larger tensor than all ranks hold"},
      {break_range_type, "has values of the wrong size"},
      {break_shift, "is a view of no value"},
      {break_group_rule, "parameter group 0 is malformed"},
      {break_group_lr, "parameter group 0 is malformed"},
      {break_group_factor, "parameter group 0 is malformed"},
      {break_range_group, "range 0 is malformed"},
      {break_dataset_name, "dataset 0 is malformed"},
      {break_dataset_role, "dataset 0 is malformed"},
      {break_dataset_sampler, "dataset 0 is malformed"},
      {break_dataset_blend, "dataset 0 is malformed"},
      {break_dataset_shuffle, "dataset 0 is malformed"},
      {break_dataset_order, "dataset 0 is malformed"},
      {break_dataset_alpha, "dataset 0 is malformed"},
      {break_dataset_packing, "dataset 0 is malformed"},
      {break_dataset_packed, "dataset 0 is malformed"},
      {break_dataset_group, "dataset 0 is malformed"},
      {break_loss_mean, "the run's documents are malformed"},
      {break_document_ends, "the run's documents are malformed"},
      {break_dataset_more_alpha, "dataset 0 is malformed"},
      {break_dataset_sources, "dataset 0 has not the sources that follow"},
      {break_dataset_first, "dataset 0 has not the sources that follow"},
      {break_dataset_none, "dataset 0 has not the sources that follow"},
      {break_source_prefix, "source 0 is malformed"},
      {break_source_part, "source 0 is malformed"},
      {break_source_split, "source 0 is malformed"},
      {break_source_last, "source 0 is malformed"},
      {break_source_weight, "weights are not 1 together"},
      {break_source_share, "source 0 is malformed"},
      {break_source_shares, "source 0 has a share below 0"},
      {break_source_nan, "source 0 has a share below 0"},
      {break_format, "format 1.0 and this program reads 12.0: compile it again"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t *bytes = copy_plan();
    nx_fault fault = {""};
    cases[i].change(bytes);
    plan_seal(bytes);
    bool accepted = accepts(bytes, original.n_bytes, &fault);
    if (accepted || strstr(fault.text, cases[i].why) == NULL)
      fail_msg("case %zu (%s): %s", i, cases[i].why, accepted ? "accepted" : fault.text);
    free(bytes);
  }
}

static void test_terms_do_not_overflow(void **state) {
  (void)state;
  uint8_t *bytes = copy_plan();
  nx_fault fault;
  break_term(bytes);
  plan_seal(bytes);
  assert_false(accepts(bytes, original.n_bytes, &fault));
  if (strstr(fault.text, "out of bounds") == NULL) fail_msg("refused, but: %s", fault.text);
  free(bytes);
}

/* The proof: an operator that reads what is not there yet. */
static void test_reading_before_writing_is_refused(void **state) {
  (void)state;
  uint8_t *bytes = copy_plan();
  nx_fault fault;
  nx_program *forward = plan_record(bytes, NX_SECTION_PROGRAMS, 0);
  nx_operator *first = plan_record(bytes, NX_SECTION_OPERATORS, forward->first_operator);
  nx_operator *last = first + forward->n_operators - 1, moved = *last;
  memmove(first + 1, first, (forward->n_operators - 1) * sizeof *first);
  *first = moved;
  plan_seal(bytes);
  assert_false(accepts(bytes, original.n_bytes, &fault));
  assert_non_null(strstr(fault.text, "never written"));
  free(bytes);
}

int main(int argc, char **argv) {
  const struct CMUnitTest fast[] = {
      cmocka_unit_test(test_original_is_accepted),
      cmocka_unit_test(test_every_truncation_is_refused),
      cmocka_unit_test(test_appended_bytes_are_refused),
      cmocka_unit_test(test_wrong_records_are_refused),
      cmocka_unit_test(test_wrong_sections_are_refused),
      cmocka_unit_test(test_each_bound_has_its_own_refusal),
      cmocka_unit_test(test_terms_do_not_overflow),
      cmocka_unit_test(test_reading_before_writing_is_refused),
  };
  const struct CMUnitTest sweep[] = {cmocka_unit_test(test_every_flipped_bit_is_refused)};
  bool all_bits = argc > 1 && strcmp(argv[1], "--all-bits") == 0;
  return all_bits ? cmocka_run_group_tests(sweep, read_plan, free_plan)
                  : cmocka_run_group_tests(fast, read_plan, free_plan);
}
