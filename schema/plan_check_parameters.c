/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check_record.h"

#include <math.h>
#include <string.h>

/* Whether a range of frozen parameters, or of codes for them, is one that a piece of this form can be of. */
static bool fits_form(const nx_plan *plan, const nx_piece *piece) {
  const nx_range *range = &plan->ranges[piece->range];
  uint16_t dtype = plan->values[range->param].dtype;
  bool bounded = piece->logical_columns <= INT64_C(1) << 40, frozen = range->grad == NX_NONE;
  if (piece->form == NX_FORM_PLAIN) return nx_dtype_is_real(dtype);
  const nx_form_row *row = nx_form_find(piece->form);
  int64_t block = row->block;
  return bounded && frozen && dtype == row->dtype && piece->columns % block == 0 &&
         piece->logical_columns % block == 0 && (int64_t)piece->range_offset % block == 0 &&
         (int64_t)range->n_shard % block == 0 &&
         nx_constant_is_multiple(plan, piece->column_start, (uint64_t)block) &&
         nx_constant_is_multiple(plan, range->shard_start, (uint64_t)block);
}

/* Whether a value is a vector as long as a shard, or as the range where it may be. */
static bool has_length(const nx_plan *plan, const nx_range *range, uint32_t index, bool may_be_whole) {
  if (!nx_is_index(plan, index, NX_SECTION_VALUES) || plan->values[index].n_dims != 1) return false;
  bool codes = range->grad == NX_NONE && plan->values[index].dtype == NX_u8;
  if (!nx_dtype_is_real(plan->values[index].dtype) && !codes) return false;
  uint64_t n = (uint64_t)plan->values[index].dims[0];
  return n == range->n_shard || (may_be_whole && n == range->n_elements);
}

/* Whether it is a number of the step. */
static bool is_scalar(const nx_plan *plan, uint32_t index) {
  if (!nx_is_index(plan, index, NX_SECTION_VALUES)) return false;
  const nx_value *value = &plan->values[index];
  return value->dtype == NX_f64 && value->n_dims == 1 && value->dims[0] == 1 &&
         value->arena == NX_ARENA_scalar;
}

bool nx_check_parameter_group(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_parameter_group *group = &plan->parameter_groups[index];
  bool good = nx_is_string(plan, group->name) && nx_optimizer_of(group->optimizer) != NULL &&
              is_scalar(plan, group->lr) && is_scalar(plan, group->decay);
  good = good && isfinite(group->lr_factor) && group->lr_factor >= 0 && isfinite(group->weight_decay) &&
         group->weight_decay >= 0;
  if (!good) return nx_flaw(check, group, "parameter group %u is malformed", index);
  return true;
}

bool nx_check_range(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_range *range = &plan->ranges[index];
  if (!nx_is_string(plan, range->name) || !nx_is_index_or_none(plan, range->group, NX_SECTION_GROUPS) ||
      !nx_is_index_or_none(plan, range->shard_group, NX_SECTION_GROUPS) ||
      !nx_is_index_or_none(plan, range->parameter_group, NX_SECTION_PARAMETER_GROUPS) ||
      !nx_is_index(plan, range->shard_start, NX_SECTION_CONSTANTS))
    return nx_flaw(check, range, "range %u is malformed", index);
  bool divided = range->shard_group != NX_NONE, frozen = range->grad == NX_NONE;
  if (frozen != (range->parameter_group == NX_NONE) ||
      (frozen && (range->group != NX_NONE || range->master != NX_NONE)))
    return nx_flaw(check, range, "range %u is half frozen", index);
  if (divided && !frozen &&
      (range->group == NX_NONE || plan->groups[range->shard_group].atoms & ~plan->groups[range->group].atoms))
    return nx_flaw(check, range, "range %u is divided over ranks that do not sum its gradients", index);
  uint32_t n_shards = divided ? plan->groups[range->shard_group].size : 1;
  if (range->n_shard > range->n_elements || range->n_shard * n_shards != range->n_elements)
    return nx_flaw(check, range, "range %u is not a whole number of shards", index);
  bool good =
      has_length(plan, range, range->param, true) && (frozen || has_length(plan, range, range->grad, true));
  good = good && (range->master == NX_NONE || has_length(plan, range, range->master, false));
  uint32_t n_states = nx_optimizer_n_same(nx_range_rule(plan, range));
  for (uint32_t i = 0; i < NX_MAX_STATES; i++)
    good = good &&
           (i < n_states ? has_length(plan, range, range->states[i], false) : range->states[i] == NX_NONE);
  if (!good) return nx_flaw(check, range, "range %u has values of the wrong size", index);
  int64_t least, greatest;
  nx_constant_range(plan, range->shard_start, &least, &greatest);
  if (least < 0 || (uint64_t)greatest + range->n_shard > range->n_elements)
    return nx_flaw(check, range, "range %u has a shard outside itself", index);
  return true;
}

/* Elements of a piece and of those beside it that are boxes of the same tensor; 0: too many. */
static uint64_t elements_of_tensor(const nx_plan *plan, uint32_t index) {
  uint32_t name = plan->pieces[index].name, first = index;
  uint64_t sum = 0, n;
  while (first > 0 && plan->pieces[first - 1].name == name) first--;
  for (uint32_t i = first; i < plan->n[NX_SECTION_PIECES] && plan->pieces[i].name == name; i++)
    if (__builtin_mul_overflow((uint64_t)plan->pieces[i].rows, (uint64_t)plan->pieces[i].columns, &n) ||
        __builtin_add_overflow(sum, n, &sum))
      return 0;
  return sum;
}

/* Where a box may start; and that all ranks together can hold the whole tensor. */
static bool check_piece_tensor(const nx_checker *check, const nx_piece *piece, uint32_t index) {
  const nx_plan *plan = check->plan;
  const uint32_t starts[] = {piece->row_start, piece->column_start};
  for (size_t dim = 0; dim < sizeof starts / sizeof *starts; dim++) {
    int64_t least, greatest;
    nx_constant_range(plan, starts[dim], &least, &greatest);
    if (least < 0) return nx_flaw(check, piece, "piece %u has no box", index);
  }
  uint64_t held = elements_of_tensor(plan, index), n;
  if (__builtin_mul_overflow(held, (uint64_t)plan->run->n_ranks, &held) ||
      __builtin_mul_overflow((uint64_t)piece->logical_rows, (uint64_t)piece->logical_columns, &n) || n > held)
    return nx_flaw(check, piece, "piece %u is of a larger tensor than all ranks hold", index);
  if (piece->n_dims == 1 && (piece->logical_rows != 1 || piece->flags & NX_PIECE_TRANSPOSED))
    return nx_flaw(check, piece, "piece %u is no vector", index);
  return true;
}

/* A piece's chunk holds its parameter, and all that its range consists of. */
static bool check_piece_chunk(const nx_checker *check, const nx_piece *piece, uint32_t index) {
  const nx_plan *plan = check->plan;
  int64_t rows = piece->flags & NX_PIECE_TRANSPOSED ? piece->logical_columns : piece->logical_rows;
  bool sliced = piece->slices == 0 || (piece->n_dims == 2 && rows % piece->slices == 0);
  if (!nx_is_index(plan, piece->chunk, NX_SECTION_CHUNKS) || !sliced || piece->reserved != 0 ||
      piece->form >= NX_N_FORMS || !fits_form(plan, piece))
    return nx_flaw(check, piece, "piece %u is malformed", index);
  const nx_range *range = &plan->ranges[piece->range];
  uint32_t values[4 + NX_MAX_STATES] = {piece->value, range->param, range->master, range->grad};
  memcpy(values + 4, range->states, sizeof range->states);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    bool inside = true;
    if (values[i] != NX_NONE && !nx_check_in_chunk(check, &plan->chunks[piece->chunk], values[i], &inside))
      return false;
    if (!inside) return nx_flaw(check, piece, "piece %u lies outside its chunk", index);
  }
  return true;
}

bool nx_check_piece(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_piece *piece = &plan->pieces[index];
  if (!nx_is_string(plan, piece->name) || !nx_is_index(plan, piece->value, NX_SECTION_VALUES) ||
      !nx_is_index(plan, piece->range, NX_SECTION_RANGES) ||
      piece->flags > (NX_PIECE_TRANSPOSED | NX_PIECE_ADAPTER | NX_PIECE_ALIAS | NX_PIECE_MEMORY) ||
      piece->init >= NX_N_INITS ||
      !isfinite(piece->init_std) || piece->n_dims < 1 || piece->n_dims > 2 ||
      !nx_is_index(plan, piece->row_start, NX_SECTION_CONSTANTS) ||
      !nx_is_index(plan, piece->column_start, NX_SECTION_CONSTANTS) ||
      !nx_is_index(plan, piece->owner, NX_SECTION_CONSTANTS) ||
      !nx_is_index(plan, piece->tensor_id, NX_SECTION_CONSTANTS))
    return nx_flaw(check, piece, "piece %u is malformed", index);
  const nx_value *value = &plan->values[piece->value];
  if (value->n_dims < 1) return nx_flaw(check, piece, "piece %u has no box", index);
  int64_t columns = value->dims[value->n_dims - 1], rows = 1;
  for (int dim = 0; dim + 1 < value->n_dims; dim++) rows *= value->dims[dim];
  if (piece->rows < 1 || piece->columns < 1 || piece->row < 0 || piece->logical_rows < 1 ||
      piece->logical_columns < 1)
    return nx_flaw(check, piece, "piece %u has no box", index);
  if (!check_piece_tensor(check, piece, index)) return false;
  bool part_of_vector = value->n_dims == 1 && piece->rows == 1 && piece->row <= columns - piece->columns;
  bool rows_of_matrix = piece->columns == columns && piece->row <= rows - piece->rows;
  if (!part_of_vector && !rows_of_matrix)
    return nx_flaw(check, piece, "piece %u lies outside its parameter", index);
  uint64_t n_elements = (uint64_t)piece->rows * (uint64_t)piece->columns;
  uint64_t room = plan->ranges[piece->range].n_elements;
  if (piece->range_offset > room || n_elements > room - piece->range_offset)
    return nx_flaw(check, piece, "piece %u lies outside its range", index);
  const nx_value *base = value->view_of == NX_NONE ? value : &plan->values[value->view_of];
  uint64_t start = (value->offset - base->offset) / (nx_dtype_bits(value->dtype) / 8);
  if (start + (uint64_t)(piece->row * (value->n_dims == 1 ? 1 : piece->columns)) != piece->range_offset)
    return nx_flaw(check, piece, "piece %u stands elsewhere in its range than in its parameter", index);
  return check_piece_chunk(check, piece, index);
}
