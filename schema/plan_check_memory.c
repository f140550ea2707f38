/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check_record.h"

bool nx_check_arena(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_arena_record *arena = &plan->arenas[index];
  if (arena->kind >= NX_N_ARENAS || (index > 0 && arena[-1].kind >= arena->kind) ||
      arena->flags > NX_ARENA_SHARED || arena->bytes % NX_VALUE_ALIGNMENT != 0 ||
      arena->bytes > UINT64_MAX / 4)
    return nx_flaw(check, arena, "arena %u is malformed", index);
  if (arena->kind == NX_ARENA_slot ? arena->slot_bytes == 0 || arena->slot_bytes > arena->bytes
                                   : arena->slot_bytes != 0)
    return nx_flaw(check, arena, "arena %s has slots of the wrong size", nx_arena_name(arena->kind));
  return true;
}

static bool value_bytes(const nx_value *value, uint64_t *bytes) {
  uint64_t n_elements = 1;
  for (int dim = 0; dim < NX_MAX_DIMS; dim++) {
    if (value->dims[dim] < 1 || (dim >= value->n_dims && value->dims[dim] != 1)) return false;
    if (__builtin_mul_overflow(n_elements, (uint64_t)value->dims[dim], &n_elements)) return false;
  }
  return !__builtin_mul_overflow(n_elements, nx_dtype_bits(value->dtype), bytes) &&
         (*bytes = (*bytes + 7) / 8, true);
}

/* The bytes that a value may cover on any rank, before the chunk's base. */
static bool value_extent(const nx_checker *check, const nx_value *value, uint64_t *first, uint64_t *end) {
  int64_t least = 0, greatest = 0;
  *first = *end = 0;
  if (value->offset_shift != NX_NONE) nx_constant_range(check->plan, value->offset_shift, &least, &greatest);
  if (least < 0 || value->bytes > UINT64_MAX / 4 || value->offset > UINT64_MAX / 4 ||
      greatest > INT64_MAX / 4)
    return nx_flaw(check, value, "a value lies outside any arena");
  *first = value->offset + (uint64_t)least;
  *end = value->offset + (uint64_t)greatest + value->bytes;
  return true;
}

bool nx_check_in_chunk(const nx_checker *check, const nx_chunk *chunk, uint32_t index, bool *inside) {
  const nx_value *value = &check->plan->values[index];
  uint64_t first, end;
  if (!value_extent(check, value, &first, &end)) return false;
  *inside = end <= chunk->arena_bytes[value->arena];
  return true;
}

bool nx_check_value(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_value *value = &plan->values[index];
  const nx_arena_record *arena = nx_plan_arena(plan, value->arena);
  uint64_t bytes, first, end, element = nx_dtype_bits(value->dtype) / 8;
  if (!nx_is_string(plan, value->name) || value->n_dims > NX_MAX_DIMS || !value_bytes(value, &bytes) ||
      element == 0 || value->bytes != bytes ||
      !nx_is_index_or_none(plan, value->offset_shift, NX_SECTION_CONSTANTS) || arena == NULL)
    return nx_flaw(check, value, "value %u is malformed", index);
  if (!value_extent(check, value, &first, &end)) return false;
  if (end > (arena->slot_bytes ? arena->slot_bytes : arena->bytes))
    return nx_flaw(check, value, "value %u (%s) lies outside arena %s", index,
                   nx_plan_string(plan, value->name), nx_arena_name(arena->kind));
  if (value->view_of == NX_NONE) {
    if (value->offset % NX_VALUE_ALIGNMENT != 0 || value->offset_shift != NX_NONE)
      return nx_flaw(check, value, "value %u is not aligned", index);
    return true;
  }
  bool aligned =
      value->offset % element == 0 &&
      (value->offset_shift == NX_NONE || nx_constant_is_multiple(plan, value->offset_shift, element));
  if (value->view_of >= index || !aligned)
    return nx_flaw(check, value, "value %u is a view of no value", index);
  const nx_value *base = &plan->values[value->view_of];
  if (base->view_of != NX_NONE || base->arena != value->arena || first < base->offset ||
      end > base->offset + base->bytes)
    return nx_flaw(check, value, "value %u lies outside the value that it is a view of", index);
  return true;
}

bool nx_check_fixed_value(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_fixed_value *fixed = &plan->fixed_values[index];
  if (!nx_is_index(plan, fixed->value, NX_SECTION_VALUES))
    return nx_flaw(check, fixed, "fixed value %u names no value", index);
  const nx_value *value = &plan->values[fixed->value];
  if (value->arena != NX_ARENA_input || value->view_of != NX_NONE ||
      (value->dtype != NX_i64 && value->dtype != NX_f64))
    return nx_flaw(check, fixed, "fixed value %u is no input of numbers of 8 bytes", index);
  if (fixed->table + value->bytes / 8 > plan->n[NX_SECTION_TABLE])
    return nx_flaw(check, fixed, "fixed value %u reads past the table", index);
  return true;
}
