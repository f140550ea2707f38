/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The checks in the order in which they may rely on each other: a table that nx_plan_check walks. Each takes
 * one record of its section. */
typedef struct checker {
  nx_plan *plan;
  nx_fault *fault;
} checker;

typedef bool (*record_check)(const checker *check, uint32_t index);

static uint64_t record_offset(const nx_plan *plan, const void *record) {
  return (uint64_t)((const uint8_t *)record - plan->bytes);
}

#define FAIL(record, ...) return nx_fault_set(check->fault, record_offset(check->plan, record), __VA_ARGS__)

static bool is_index(const nx_plan *plan, uint32_t index, nx_section_type section) {
  return index < plan->n[section];
}

static bool is_index_or_none(const nx_plan *plan, uint32_t index, nx_section_type section) {
  return index == NX_NONE || is_index(plan, index, section);
}

static bool is_string(const nx_plan *plan, uint32_t string) {
  return is_index(plan, string, NX_SECTION_STRINGS);
}

static bool is_provenance_text(const nx_plan *plan, uint32_t string) {
  return is_index(plan, string, NX_SECTION_PROVENANCE_TEXT);
}

static bool check_texts(const checker *check) {
  const nx_plan *plan = check->plan;
  const char *texts[] = {plan->strings, plan->provenance_text};
  const uint32_t bytes[] = {plan->n[NX_SECTION_STRINGS], plan->n[NX_SECTION_PROVENANCE_TEXT]};
  for (int i = 0; i < 2; i++)
    if (texts[i][0] != '\0' || texts[i][bytes[i] - 1] != '\0')
      FAIL(texts[i], "a string table does not begin and end with NUL");
  return true;
}

static bool check_atom(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_atom *atom = &plan->atoms[index];
  uint64_t stride = index == 0 ? 1 : (uint64_t)atom[-1].stride * atom[-1].size;
  if (plan->n[NX_SECTION_ATOMS] > NX_MAX_ATOMS) FAIL(atom, "the mesh has more than %d atoms", NX_MAX_ATOMS);
  bool second = atom->flags == NX_ATOM_PIPELINE && nx_plan_pipeline_atom(plan) != index;
  if (!is_string(plan, atom->name) || atom->size == 0 || atom->stride != stride ||
      atom->flags > NX_ATOM_PIPELINE || second)
    FAIL(atom, "mesh atom %u is malformed", index);
  if (index + 1 == plan->n[NX_SECTION_ATOMS] && stride * atom->size != plan->run->n_ranks)
    FAIL(atom, "the mesh has %llu ranks and the run %u", (unsigned long long)(stride * atom->size),
         plan->run->n_ranks);
  return true;
}

static bool check_stages(const checker *check, const nx_group *group, uint64_t *size) {
  const nx_plan *plan = check->plan;
  uint32_t atom = nx_plan_pipeline_atom(plan);
  if (atom == NX_NONE || !(group->atoms & 1u << atom))
    FAIL(group, "a group of stages is not over the pipeline");
  if ((uint64_t)group->stages + group->n_stages > plan->n[NX_SECTION_TABLE])
    FAIL(group, "a group of stages reads past the table");
  for (uint32_t i = 0; i < group->n_stages; i++) {
    int64_t stage = plan->table[group->stages + i];
    if (stage < 0 || stage >= plan->atoms[atom].size || (i && stage <= plan->table[group->stages + i - 1]))
      FAIL(group, "a group of stages does not list them in order");
  }
  *size = *size / plan->atoms[atom].size * group->n_stages;
  return true;
}

static bool check_group(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_group *group = &plan->groups[index];
  if (!is_string(plan, group->name) || group->atoms >> plan->n[NX_SECTION_ATOMS] != 0)
    FAIL(group, "group %u is malformed", index);
  uint64_t size = nx_set_size(plan, group->atoms);
  if (group->n_stages && !check_stages(check, group, &size)) return false;
  if (group->size != size) FAIL(group, "group %u has the wrong size", index);
  return true;
}

/* Far above any offset in a plan, and small enough that sums of them do not overflow. */
static bool is_bounded(int64_t number) {
  return number >= -(INT64_C(1) << 48) && number <= INT64_C(1) << 48;
}

static bool check_term(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_term *term = &plan->terms[index];
  bool listed = term->kind == NX_TERM_ENTRY || term->kind == NX_TERM_CHOICE;
  if (term->atoms != NX_NONE && (term->atoms == 0 || term->atoms >> plan->n[NX_SECTION_ATOMS] != 0))
    FAIL(term, "term %u names no atoms", index);
  if (term->kind < NX_TERM_STRIDE || term->kind > NX_TERM_FIRST || term->reserved != 0 ||
      (term->kind != NX_TERM_STRIDE && term->stride != 0) || (!listed && term->table != 0))
    FAIL(term, "term %u is malformed", index);
  uint64_t n = nx_term_coordinates(plan, term);
  if (listed && term->table + n > plan->n[NX_SECTION_TABLE])
    FAIL(term, "term %u reads past the table", index);
  int64_t farthest;
  if (__builtin_mul_overflow(term->stride, (int64_t)n - 1, &farthest) ||
      !is_bounded(term->stride) || !is_bounded(farthest))
    FAIL(term, "term %u is out of bounds", index);
  for (uint64_t at = 0; listed && at < n; at++) {
    int64_t entry = plan->table[term->table + at];
    if (!is_bounded(entry) || (term->kind == NX_TERM_CHOICE && entry != 0 && entry != 1))
      FAIL(term, "term %u is out of bounds", index);
  }
  return true;
}

static bool check_constant(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_constant *constant = &plan->constants[index];
  if ((uint64_t)constant->first_term + constant->n_terms > plan->n[NX_SECTION_TERMS] ||
      constant->n_terms > 2 * NX_MAX_ATOMS + 2 || !is_bounded(constant->base))
    FAIL(constant, "constant %u is malformed", index);
  return true;
}

static bool check_arena(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_arena_record *arena = &plan->arenas[index];
  if (arena->kind >= NX_N_ARENAS || (index > 0 && arena[-1].kind >= arena->kind) ||
      arena->flags > NX_ARENA_SHARED || arena->bytes % NX_VALUE_ALIGNMENT != 0 ||
      arena->bytes > UINT64_MAX / 4)
    FAIL(arena, "arena %u is malformed", index);
  if (arena->kind == NX_ARENA_slot ? arena->slot_bytes == 0 || arena->slot_bytes > arena->bytes
                                   : arena->slot_bytes != 0)
    FAIL(arena, "arena %s has slots of the wrong size", nx_arena_name(arena->kind));
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
static bool value_extent(const checker *check, const nx_value *value, uint64_t *first, uint64_t *end) {
  int64_t least = 0, greatest = 0;
  *first = *end = 0;
  if (value->offset_shift != NX_NONE) nx_constant_range(check->plan, value->offset_shift, &least, &greatest);
  if (least < 0 || value->bytes > UINT64_MAX / 4 || value->offset > UINT64_MAX / 4 ||
      greatest > INT64_MAX / 4)
    FAIL(value, "a value lies outside any arena");
  *first = value->offset + (uint64_t)least;
  *end = value->offset + (uint64_t)greatest + value->bytes;
  return true;
}

static bool check_value(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_value *value = &plan->values[index];
  const nx_arena_record *arena = nx_plan_arena(plan, value->arena);
  uint64_t bytes, first, end, element = nx_dtype_bits(value->dtype) / 8;
  if (!is_string(plan, value->name) || value->n_dims > NX_MAX_DIMS || !value_bytes(value, &bytes) ||
      element == 0 || value->bytes != bytes ||
      !is_index_or_none(plan, value->offset_shift, NX_SECTION_CONSTANTS) || arena == NULL)
    FAIL(value, "value %u is malformed", index);
  if (!value_extent(check, value, &first, &end)) return false;
  if (end > (arena->slot_bytes ? arena->slot_bytes : arena->bytes))
    FAIL(value, "value %u (%s) lies outside arena %s", index, nx_plan_string(plan, value->name),
         nx_arena_name(arena->kind));
  if (value->view_of == NX_NONE) {
    if (value->offset % NX_VALUE_ALIGNMENT != 0 || value->offset_shift != NX_NONE)
      FAIL(value, "value %u is not aligned", index);
    return true;
  }
  bool aligned =
      value->offset % element == 0 &&
      (value->offset_shift == NX_NONE || nx_constant_is_multiple(plan, value->offset_shift, element));
  if (value->view_of >= index || !aligned) FAIL(value, "value %u is a view of no value", index);
  const nx_value *base = &plan->values[value->view_of];
  if (base->view_of != NX_NONE || base->arena != value->arena || first < base->offset ||
      end > base->offset + base->bytes)
    FAIL(value, "value %u lies outside the value that it is a view of", index);
  return true;
}

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
  if (!is_index(plan, index, NX_SECTION_VALUES) || plan->values[index].n_dims != 1) return false;
  bool codes = range->grad == NX_NONE && plan->values[index].dtype == NX_u8;
  if (!nx_dtype_is_real(plan->values[index].dtype) && !codes) return false;
  uint64_t n = (uint64_t)plan->values[index].dims[0];
  return n == range->n_shard || (may_be_whole && n == range->n_elements);
}

/* Whether it is a number of the step. */
static bool is_scalar(const nx_plan *plan, uint32_t index) {
  if (!is_index(plan, index, NX_SECTION_VALUES)) return false;
  const nx_value *value = &plan->values[index];
  return value->dtype == NX_f64 && value->n_dims == 1 && value->dims[0] == 1 &&
         value->arena == NX_ARENA_scalar;
}

static bool check_parameter_group(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_parameter_group *group = &plan->parameter_groups[index];
  bool good = is_string(plan, group->name) && nx_optimizer_of(group->optimizer) != NULL &&
              is_scalar(plan, group->lr) && is_scalar(plan, group->decay);
  good = good && isfinite(group->lr_factor) && group->lr_factor >= 0 && isfinite(group->weight_decay) &&
         group->weight_decay >= 0;
  if (!good) FAIL(group, "parameter group %u is malformed", index);
  return true;
}

static bool check_range(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_range *range = &plan->ranges[index];
  if (!is_string(plan, range->name) || !is_index_or_none(plan, range->group, NX_SECTION_GROUPS) ||
      !is_index_or_none(plan, range->shard_group, NX_SECTION_GROUPS) ||
      !is_index_or_none(plan, range->parameter_group, NX_SECTION_PARAMETER_GROUPS) ||
      !is_index(plan, range->shard_start, NX_SECTION_CONSTANTS))
    FAIL(range, "range %u is malformed", index);
  bool divided = range->shard_group != NX_NONE, frozen = range->grad == NX_NONE;
  if (frozen != (range->parameter_group == NX_NONE) ||
      (frozen && (range->group != NX_NONE || range->master != NX_NONE)))
    FAIL(range, "range %u is half frozen", index);
  if (divided && !frozen &&
      (range->group == NX_NONE || plan->groups[range->shard_group].atoms & ~plan->groups[range->group].atoms))
    FAIL(range, "range %u is divided over ranks that do not sum its gradients", index);
  uint32_t n_shards = divided ? plan->groups[range->shard_group].size : 1;
  if (range->n_shard > range->n_elements || range->n_shard * n_shards != range->n_elements)
    FAIL(range, "range %u is not a whole number of shards", index);
  bool good =
      has_length(plan, range, range->param, true) && (frozen || has_length(plan, range, range->grad, true));
  good = good && (range->master == NX_NONE || has_length(plan, range, range->master, false));
  uint32_t n_states = nx_optimizer_n_states(nx_range_rule(plan, range));
  for (uint32_t i = 0; i < NX_MAX_STATES; i++)
    good = good &&
           (i < n_states ? has_length(plan, range, range->states[i], false) : range->states[i] == NX_NONE);
  if (!good) FAIL(range, "range %u has values of the wrong size", index);
  int64_t least, greatest;
  nx_constant_range(plan, range->shard_start, &least, &greatest);
  if (least < 0 || (uint64_t)greatest + range->n_shard > range->n_elements)
    FAIL(range, "range %u has a shard outside itself", index);
  return true;
}

/* Whether a value stays within the part of its arena that a chunk has. */
static bool in_chunk(const checker *check, const nx_chunk *chunk, uint32_t index, bool *inside) {
  const nx_value *value = &check->plan->values[index];
  uint64_t first, end;
  if (!value_extent(check, value, &first, &end)) return false;
  *inside = end <= chunk->arena_bytes[value->arena];
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
static bool check_piece_tensor(const checker *check, const nx_piece *piece, uint32_t index) {
  const nx_plan *plan = check->plan;
  const uint32_t starts[] = {piece->row_start, piece->column_start};
  for (size_t dim = 0; dim < sizeof starts / sizeof *starts; dim++) {
    int64_t least, greatest;
    nx_constant_range(plan, starts[dim], &least, &greatest);
    if (least < 0) FAIL(piece, "piece %u has no box", index);
  }
  uint64_t held = elements_of_tensor(plan, index), n;
  if (__builtin_mul_overflow(held, (uint64_t)plan->run->n_ranks, &held) ||
      __builtin_mul_overflow((uint64_t)piece->logical_rows, (uint64_t)piece->logical_columns, &n) || n > held)
    FAIL(piece, "piece %u is of a larger tensor than all ranks hold", index);
  if (piece->n_dims == 1 && (piece->logical_rows != 1 || piece->flags & NX_PIECE_TRANSPOSED))
    FAIL(piece, "piece %u is no vector", index);
  return true;
}

/* A piece's chunk holds its parameter, and all that its range consists of. */
static bool check_piece_chunk(const checker *check, const nx_piece *piece, uint32_t index) {
  const nx_plan *plan = check->plan;
  int64_t rows = piece->flags & NX_PIECE_TRANSPOSED ? piece->logical_columns : piece->logical_rows;
  bool sliced = piece->slices == 0 || (piece->n_dims == 2 && rows % piece->slices == 0);
  if (!is_index(plan, piece->chunk, NX_SECTION_CHUNKS) || !sliced || piece->reserved != 0 ||
      piece->form >= NX_N_FORMS || !fits_form(plan, piece))
    FAIL(piece, "piece %u is malformed", index);
  const nx_range *range = &plan->ranges[piece->range];
  uint32_t values[4 + NX_MAX_STATES] = {piece->value, range->param, range->master, range->grad};
  memcpy(values + 4, range->states, sizeof range->states);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    bool inside = true;
    if (values[i] != NX_NONE && !in_chunk(check, &plan->chunks[piece->chunk], values[i], &inside))
      return false;
    if (!inside) FAIL(piece, "piece %u lies outside its chunk", index);
  }
  return true;
}

static bool check_piece(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_piece *piece = &plan->pieces[index];
  if (!is_string(plan, piece->name) || !is_index(plan, piece->value, NX_SECTION_VALUES) ||
      !is_index(plan, piece->range, NX_SECTION_RANGES) ||
      piece->flags > (NX_PIECE_TRANSPOSED | NX_PIECE_ADAPTER | NX_PIECE_ALIAS) || piece->init >= NX_N_INITS ||
      !isfinite(piece->init_std) || piece->n_dims < 1 || piece->n_dims > 2 ||
      !is_index(plan, piece->row_start, NX_SECTION_CONSTANTS) ||
      !is_index(plan, piece->column_start, NX_SECTION_CONSTANTS) ||
      !is_index(plan, piece->owner, NX_SECTION_CONSTANTS) ||
      !is_index(plan, piece->tensor_id, NX_SECTION_CONSTANTS))
    FAIL(piece, "piece %u is malformed", index);
  const nx_value *value = &plan->values[piece->value];
  if (value->n_dims < 1) FAIL(piece, "piece %u has no box", index);
  int64_t columns = value->dims[value->n_dims - 1], rows = 1;
  for (int dim = 0; dim + 1 < value->n_dims; dim++) rows *= value->dims[dim];
  if (piece->rows < 1 || piece->columns < 1 || piece->row < 0 || piece->logical_rows < 1 ||
      piece->logical_columns < 1)
    FAIL(piece, "piece %u has no box", index);
  if (!check_piece_tensor(check, piece, index)) return false;
  bool part_of_vector = value->n_dims == 1 && piece->rows == 1 && piece->row <= columns - piece->columns;
  bool rows_of_matrix = piece->columns == columns && piece->row <= rows - piece->rows;
  if (!part_of_vector && !rows_of_matrix) FAIL(piece, "piece %u lies outside its parameter", index);
  uint64_t n_elements = (uint64_t)piece->rows * (uint64_t)piece->columns;
  uint64_t room = plan->ranges[piece->range].n_elements;
  if (piece->range_offset > room || n_elements > room - piece->range_offset)
    FAIL(piece, "piece %u lies outside its range", index);
  const nx_value *base = value->view_of == NX_NONE ? value : &plan->values[value->view_of];
  uint64_t start = (value->offset - base->offset) / (nx_dtype_bits(value->dtype) / 8);
  if (start + (uint64_t)(piece->row * (value->n_dims == 1 ? 1 : piece->columns)) != piece->range_offset)
    FAIL(piece, "piece %u stands elsewhere in its range than in its parameter", index);
  return check_piece_chunk(check, piece, index);
}

static bool check_operator(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_operator *op = &plan->operators[index];
  const nx_op_row *row = nx_op_find(op->op);
  if (row == NULL) FAIL(op, "operator %u has number %u, which this program does not know", index, op->op);
  uint64_t n_args = (uint64_t)op->n_in + op->n_out;
  if (op->n_attrs != nx_op_n_attrs(row) || op->when == 0 || op->when > NX_WHEN_ANY || op->reserved != 0 ||
      op->first_argument + n_args > plan->n[NX_SECTION_ARGUMENTS] ||
      (uint64_t)op->first_attribute + op->n_attrs > plan->n[NX_SECTION_ATTRIBUTES] ||
      !is_string(plan, op->origin))
    FAIL(op, "operator %u (%s) is malformed", index, row->name);
  bool grouped = nx_op_is_collective(row) && op->op != NX_OP_wait;
  if (grouped ? !is_index(plan, op->group, NX_SECTION_GROUPS) : op->group != NX_NONE)
    FAIL(op, "operator %u (%s) has the wrong group", index, row->name);
  for (uint64_t i = 0; i < n_args; i++)
    if (!is_index(plan, plan->arguments[op->first_argument + i], NX_SECTION_VALUES))
      FAIL(op, "operator %u (%s) has no such value", index, row->name);
  char why[NX_OP_WHY];
  if (!nx_op_check(plan, op, why)) FAIL(op, "operator %u (%s): %s", index, row->name, why);
  return true;
}

static bool check_program(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_program *program = &plan->programs[index];
  if (!is_string(plan, program->name) || program->kind < NX_PROGRAM_FORWARD ||
      program->kind > NX_PROGRAM_STEP ||
      (uint64_t)program->first_operator + program->n_operators > plan->n[NX_SECTION_OPERATORS])
    FAIL(program, "program %u is malformed", index);
  return true;
}

static bool is_program(const nx_plan *plan, uint32_t program, nx_program_kind kind) {
  return program == NX_NONE ||
         (is_index(plan, program, NX_SECTION_PROGRAMS) && plan->programs[program].kind == kind);
}

/* Every operand of a program stays within the chunk's part of its arena. */
static bool check_chunk_program(const checker *check, const nx_chunk *chunk, uint32_t index) {
  const nx_plan *plan = check->plan;
  if (index == NX_NONE) return true;
  const nx_operator *op = &plan->operators[plan->programs[index].first_operator];
  for (const nx_operator *end = op + plan->programs[index].n_operators; op < end; op++) {
    for (uint32_t i = 0; i < (uint32_t)op->n_in + op->n_out; i++) {
      bool inside;
      uint32_t value = plan->arguments[op->first_argument + i];
      if (!in_chunk(check, chunk, value, &inside)) return false;
      if (!inside)
        FAIL(chunk, "a chunk reaches outside its part of arena %s", nx_arena_name(plan->values[value].arena));
    }
  }
  return true;
}

static bool check_chunk_arenas(const checker *check, const nx_chunk *chunk) {
  const nx_plan *plan = check->plan;
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    const nx_arena_record *arena = nx_plan_arena(plan, kind);
    uint64_t room = arena ? arena->bytes : 0, base = chunk->arena_base[kind],
             bytes = chunk->arena_bytes[kind];
    uint64_t n = kind == NX_ARENA_slot ? chunk->n_slots : 1;
    if (base > room || bytes > (room - base) / n || base % NX_VALUE_ALIGNMENT || bytes % NX_VALUE_ALIGNMENT ||
        (kind == NX_ARENA_slot && arena && bytes > arena->slot_bytes))
      FAIL(chunk, "a chunk reaches outside arena %s", nx_arena_name(kind));
  }
  return true;
}

/* A port is a value of a slot; what one chunk sends is what its neighbour receives. */
static bool check_chunk_ports(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_chunk *chunk = &plan->chunks[index];
  for (nx_port port = 0; port < NX_N_PORTS; port++) {
    uint32_t peer = nx_port_peer(index, port);
    bool inside;
    if (chunk->ports[port] == NX_NONE) continue;
    if (!is_index(plan, chunk->ports[port], NX_SECTION_VALUES) || !is_index(plan, peer, NX_SECTION_CHUNKS) ||
        plan->values[chunk->ports[port]].arena != NX_ARENA_slot || plan->chunks[peer].stage == chunk->stage)
      FAIL(chunk, "chunk %u has a malformed port", index);
    if (!in_chunk(check, chunk, chunk->ports[port], &inside)) return false;
    uint32_t other = plan->chunks[peer].ports[nx_port_opposite(port)];
    if (!inside || !is_index(plan, other, NX_SECTION_VALUES) ||
        plan->values[other].bytes != plan->values[chunk->ports[port]].bytes ||
        plan->values[other].dtype != plan->values[chunk->ports[port]].dtype)
      FAIL(chunk, "the %s of chunk %u does not fit its neighbour", nx_port_name(port), index);
  }
  return true;
}

static bool check_chunk(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_chunk *chunk = &plan->chunks[index];
  if (!is_program(plan, chunk->forward, NX_PROGRAM_FORWARD) ||
      !is_program(plan, chunk->backward, NX_PROGRAM_BACKWARD) ||
      !is_program(plan, chunk->evaluate, NX_PROGRAM_EVALUATE) ||
      !is_program(plan, chunk->step, NX_PROGRAM_STEP) || chunk->n_slots == 0 ||
      chunk->n_slots > plan->run->n_slots || chunk->stage >= nx_plan_n_stages(plan))
    FAIL(chunk, "chunk %u is malformed", index);
  const uint32_t programs[] = {chunk->forward, chunk->backward, chunk->evaluate, chunk->step};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    if (!check_chunk_program(check, chunk, programs[i])) return false;
  return check_chunk_arenas(check, chunk) && check_chunk_ports(check, index);
}

static bool check_item(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_item *item = &plan->items[index];
  bool step = item->kind == NX_ITEM_STEP;
  if (item->kind < NX_ITEM_FORWARD || item->kind > NX_ITEM_STEP || item->port >= NX_N_PORTS ||
      item->reserved != 0 || !is_index(plan, item->chunk, NX_SECTION_CHUNKS) ||
      item->slot >= plan->chunks[item->chunk].n_slots ||
      item->micro_batch >= (step ? 1 : plan->run->n_micro_batches) ||
      plan->chunks[item->chunk].stage != item->stage)
    FAIL(item, "schedule item %u is malformed", index);
  bool runs = item->kind <= NX_ITEM_EVALUATE || item->kind == NX_ITEM_STEP;
  if (runs && nx_item_program(plan, item) == NX_NONE)
    FAIL(item, "schedule item %u runs a program that its chunk lacks", index);
  uint8_t pass_when = runs ? nx_pass_when(item->micro_batch, plan->run->n_micro_batches) : 0;
  bool good_when = step ? item->when > 0 && item->when <= NX_WHEN_EVALUATED : item->when == pass_when;
  if ((runs && item->port != 0) || !good_when) FAIL(item, "schedule item %u is malformed", index);
  if (!runs && plan->chunks[item->chunk].ports[item->port] == NX_NONE)
    FAIL(item, "schedule item %u moves data through a port that its chunk lacks", index);
  bool sends = item->port == NX_PORT_OUTPUT || item->port == NX_PORT_INPUT_GRADIENT;
  if ((item->kind == NX_ITEM_SEND && !sends) || (item->kind == NX_ITEM_RECV && sends))
    FAIL(item, "schedule item %u moves data the wrong way", index);
  return true;
}

/* Schedules are of different kinds, the training's first, and together they are all items; a stage's
 * items stand together. */
static bool check_schedule(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_schedule *schedule = &plan->schedules[index];
  uint32_t first = index == 0 ? 0 : schedule[-1].first_item + schedule[-1].n_items;
  bool last = index + 1 == plan->n[NX_SECTION_SCHEDULES];
  if (!is_string(plan, schedule->name) || schedule->kind != NX_SCHEDULE_TRAIN + index ||
      schedule->kind > NX_SCHEDULE_EVALUATE || schedule->first_item != first || schedule->n_items == 0 ||
      schedule->n_items > plan->n[NX_SECTION_ITEMS] - first ||
      (last && first + schedule->n_items != plan->n[NX_SECTION_ITEMS]))
    FAIL(schedule, "schedule %u is malformed", index);
  for (uint32_t i = first + 1; i < first + schedule->n_items; i++)
    if (plan->items[i - 1].stage > plan->items[i].stage)
      FAIL(&plan->items[i], "schedule item %u is out of order", i);
  return true;
}

static bool check_evaluation(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_evaluation *evaluation = &plan->evaluations[index];
  bool counted =
      evaluation->batches > 0 ? evaluation->share == 0 : evaluation->share > 0 && evaluation->share <= 1;
  if (!is_provenance_text(plan, evaluation->name) || evaluation->flags > NX_EVALUATION_FLAGS ||
      evaluation->reserved != 0 || !is_index(plan, evaluation->dataset, NX_SECTION_DATASETS) || !counted ||
      evaluation->sanity_batches < -1 || evaluation->batches > NX_MAX_BATCHES ||
      !(evaluation->every_epochs >= 0 && evaluation->every_epochs <= DBL_MAX))
    FAIL(evaluation, "evaluation %u is malformed", index);
  if (nx_plan_schedule(plan, NX_SCHEDULE_EVALUATE) == NULL)
    FAIL(evaluation, "evaluation %u has no schedule", index);
  return true;
}

static bool check_extra_save(const checker *check, uint32_t index) {
  const uint64_t *step = &check->plan->extra_saves[index];
  if (index > 0 && step[-1] >= *step) FAIL(step, "the extra steps of checkpoints are out of order");
  return true;
}

static bool check_setting(const checker *check, uint32_t index) {
  const nx_setting_record *setting = &check->plan->settings[index];
  if (!is_provenance_text(check->plan, setting->path) || !is_provenance_text(check->plan, setting->value) ||
      setting->bound > 1)
    FAIL(setting, "setting %u is malformed", index);
  return true;
}

static bool check_provenance(const checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_provenance *from = &plan->provenances[index];
  if (!is_index(plan, from->setting, NX_SECTION_SETTINGS) || !is_provenance_text(plan, from->kind) ||
      !is_provenance_text(plan, from->file) || !is_provenance_text(plan, from->option))
    FAIL(from, "provenance %u is malformed", index);
  return true;
}

static bool check_run_counts(const checker *check) {
  const nx_plan *plan = check->plan;
  const nx_run *run = plan->run;
  if (plan->n[NX_SECTION_RUN] != 1 || plan->n[NX_SECTION_RUN_NAMES] != 1) FAIL(run, "a plan has one run");
  if (run->n_ranks == 0 || run->n_ranks > NX_MAX_RANKS || run->n_threads > NX_MAX_THREADS ||
      run->n_hosts == 0 || run->n_ranks % run->n_hosts != 0 || run->n_threads == 0 || run->n_slots == 0 ||
      run->n_slots > plan->n[NX_SECTION_ITEMS] || run->n_micro_batches == 0 || run->micro_batch == 0 ||
      run->sequence == 0 || run->sequence > INT32_MAX || run->data_size == 0 || run->n_steps == 0 ||
      run->target < NX_TARGET_CPU_AVX2 || run->target > NX_TARGET_CPU_AMX ||
      run->stochastic > 1 || !is_string(plan, run->init_from))
    FAIL(run, "the run is malformed");
  if (plan->n[NX_SECTION_ATOMS] == 0 && run->n_ranks != 1)
    FAIL(run, "the run has %u ranks and no mesh", run->n_ranks);
  if ((uint64_t)run->global_batch != (uint64_t)run->micro_batch * run->n_micro_batches * run->data_size)
    FAIL(run, "the run's batch sizes contradict each other");
  if (run->tokens_per_step != (uint64_t)run->global_batch * run->sequence)
    FAIL(run, "a step has another number of tokens than its sequences");
  const nx_run_names *names = plan->run_names;
  if (!is_provenance_text(plan, names->name) || !is_provenance_text(plan, names->directory) ||
      names->log_every == 0 || names->resume > 1 || !(names->deadline_s > 0) ||
      !isfinite(names->deadline_s) || !is_provenance_text(plan, names->tensorboard) ||
      names->tensorboard_every == 0 || names->tensorboard_shows > NX_SHOWS_ALL ||
      names->rules > (NX_RUN_BEST_IS_GREATEST | NX_RUN_ONLY_EVALUATES) || names->best < -1 ||
      !is_index_or_none(plan, names->best_evaluation, NX_SECTION_EVALUATIONS) ||
      !is_provenance_text(plan, names->load) || names->load_weights > 1 ||
      names->load_required > 1 || names->save_optimizer > 1 || !(names->stop_after_s >= 0) ||
      !isfinite(names->stop_after_s) || !is_provenance_text(plan, names->profile_ranks) ||
      names->profile_first > names->profile_last || (names->profile_first == 0) != (names->profile_last == 0))
    FAIL(names, "the run's names are malformed");
  return true;
}

static bool check_rank(const checker *check, uint32_t constant, uint32_t size, const char *axis) {
  const nx_plan *plan = check->plan;
  int64_t least, greatest;
  if (!is_index(plan, constant, NX_SECTION_CONSTANTS)) FAIL(plan->run, "the run names no %s rank", axis);
  nx_constant_range(plan, constant, &least, &greatest);
  if (least < 0 || greatest >= size) FAIL(plan->run, "the %s rank is not below %u", axis, size);
  return true;
}

/* A stream knows the ends of its documents by a token alone. */
static bool has_document_ends(const nx_plan *plan) {
  const nx_run *run = plan->run;
  if (run->end_of_document != NX_NONE) return run->documents != 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_DATASETS]; i++)
    if (run->documents != 0 && plan->datasets[i].sampler == NX_SAMPLER_STREAM) return false;
  return run->documents == 0 || plan->n[NX_SECTION_DATASETS] > 0;
}

/* Sequences are cut into whole pieces, two for each ring rank. */
static bool check_sequence(const checker *check) {
  const nx_run *run = check->plan->run;
  uint64_t n_parts = (uint64_t)run->ring_size * run->ulysses_size;
  if (n_parts == 0 || run->sequence % n_parts != 0 ||
      (run->ring_size > 1 && run->sequence % (2 * (uint64_t)run->ring_size) != 0))
    FAIL(run, "%llu ranks do not divide a sequence of %u tokens", (unsigned long long)n_parts, run->sequence);
  if (run->documents > (NX_DOCUMENTS_ATTENTION | NX_DOCUMENTS_POSITIONS | NX_DOCUMENTS_LOSS) ||
      !is_string(check->plan, run->model_config) || !is_string(check->plan, run->adapter_config) ||
      !is_string(check->plan, run->adapter_from) || run->save_base > 1 ||
      !has_document_ends(check->plan) || run->loss_mean > NX_MEAN_STEP ||
      (run->loss_mean == NX_MEAN_STEP && run->weights == NX_NONE))
    FAIL(run, "the run's documents are malformed");
  return true;
}

static bool check_loss_scale(const checker *check) {
  const nx_run *run = check->plan->run;
  const uint32_t rules = NX_LOSS_SCALE_DYNAMIC | NX_LOSS_SCALE_RENEWS | NX_LOSS_SCALE_ENDS;
  bool used = run->loss_scale != NX_NONE;
  if ((run->loss_scale_rules & ~rules) != 0 ||
      (used &&
       !(run->loss_scale_initial > 0 && run->loss_scale_initial <= DBL_MAX && run->loss_scale_least >= 0)))
    FAIL(run, "the run's loss scale is malformed");
  return true;
}

static bool check_run_values(const checker *check) {
  const nx_plan *plan = check->plan;
  const nx_run *run = plan->run;
  if (!check_sequence(check) || !check_loss_scale(check)) return false;
  int64_t batch = run->micro_batch, part = run->sequence / run->ring_size,
          sequence = part / run->ulysses_size;
  const struct {
    uint32_t value;
    nx_dtype dtype;
    nx_arena_kind arena;
    int64_t rows, columns;
    bool optional;
  } wanted[] = {
      {run->tokens, NX_i32, NX_ARENA_input, batch, sequence},
      {run->labels, NX_i32, NX_ARENA_input, batch, sequence},
      {run->positions, NX_i32, NX_ARENA_input, batch, sequence},
      {run->samples, NX_i64, NX_ARENA_input, batch, 1},
      {run->step, NX_i64, NX_ARENA_input, 1, 1},
      {run->loss, NX_f64, NX_ARENA_scalar, 1, 1},
      {run->loss_total, NX_f64, NX_ARENA_scalar, 1, 1},
      {run->grad_norm, NX_f64, NX_ARENA_scalar, 1, 1},
      {run->lr, NX_f64, NX_ARENA_scalar, 1, 1},
      {run->places, NX_i32, NX_ARENA_input, run->ring_size, part, true},
      {run->starts, NX_i32, NX_ARENA_input, batch, part, true},
      {run->weights, NX_f32, NX_ARENA_input, batch, sequence, true},
      {run->loss_scale, NX_f64, NX_ARENA_input, 1, 1, true},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    if (wanted[i].optional && wanted[i].value == NX_NONE) continue;
    if (!is_index(plan, wanted[i].value, NX_SECTION_VALUES))
      FAIL(run, "the run names a value that does not exist");
    const nx_value *value = &plan->values[wanted[i].value];
    if (value->dtype != wanted[i].dtype || value->arena != wanted[i].arena ||
        value->dims[0] != wanted[i].rows || value->dims[1] != wanted[i].columns || value->n_dims > 2)
      FAIL(value, "a value that the host reads or writes has the wrong shape");
  }
  uint32_t n_slots = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_CHUNKS]; i++)
    if (plan->chunks[i].n_slots > n_slots) n_slots = plan->chunks[i].n_slots;
  if (n_slots != run->n_slots) FAIL(run, "no chunk has as many slots as the run");
  return check_rank(check, run->data_rank, run->data_size, "data") &&
         check_rank(check, run->ring_rank, run->ring_size, "ring") &&
         check_rank(check, run->ulysses_rank, run->ulysses_size, "ulysses");
}

static bool check_records(const checker *check) {
  static const struct {
    nx_section_type section;
    record_check check;
  } checks[] = {
      {NX_SECTION_ATOMS, check_atom},           {NX_SECTION_GROUPS, check_group},
      {NX_SECTION_TERMS, check_term},           {NX_SECTION_CONSTANTS, check_constant},
      {NX_SECTION_ARENAS, check_arena},         {NX_SECTION_VALUES, check_value},
      {NX_SECTION_PARAMETER_GROUPS, check_parameter_group},
      {NX_SECTION_RANGES, check_range},         {NX_SECTION_PIECES, check_piece},
      {NX_SECTION_OPERATORS, check_operator},   {NX_SECTION_PROGRAMS, check_program},
      {NX_SECTION_CHUNKS, check_chunk},         {NX_SECTION_ITEMS, check_item},
      {NX_SECTION_SETTINGS, check_setting},     {NX_SECTION_PROVENANCES, check_provenance},
      {NX_SECTION_SCHEDULES, check_schedule},   {NX_SECTION_EVALUATIONS, check_evaluation},
      {NX_SECTION_EXTRA_SAVES, check_extra_save},
  };
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    for (uint32_t index = 0; index < check->plan->n[checks[i].section]; index++)
      if (!checks[i].check(check, index)) return false;
  return true;
}

bool nx_plan_check(const void *bytes, uint64_t n_bytes, nx_plan *plan, nx_fault *fault) {
  if (!nx_plan_check_file(bytes, n_bytes, plan, fault)) return false;
  const checker check = {plan, fault};
  return check_texts(&check) && check_run_counts(&check) && check_records(&check) &&
         check_run_values(&check) && nx_plan_check_datasets(plan, fault);
}
