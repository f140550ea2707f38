/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/standing.h"

#include "schema/plan_check.h"

#include <stdlib.h>

bool nxc_is_passing(uint32_t arena) {
  return arena == NX_ARENA_slot || arena == NX_ARENA_scratch || arena == NX_ARENA_comm ||
         arena == NX_ARENA_input || arena == NX_ARENA_scalar;
}

typedef struct box {
  uint64_t from, to;
  uint32_t arena, value;
} box;

static int compare_boxes(const void *left, const void *right) {
  const box *a = left, *b = right;
  if (a->arena != b->arena) return a->arena < b->arena ? -1 : 1;
  return a->from < b->from ? -1 : a->from > b->from;
}

static bool disjoint(const nx_plan *plan, box *boxes, size_t n, nx_fault *fault) {
  qsort(boxes, n, sizeof *boxes, compare_boxes);
  for (size_t i = 1; i < n; i++)
    if (boxes[i].arena == boxes[i - 1].arena && boxes[i].from < boxes[i - 1].to)
      return nx_fault_set(fault, 0, "%s and %s share bytes",
                          nx_plan_string(plan, plan->values[boxes[i - 1].value].name),
                          nx_plan_string(plan, plan->values[boxes[i].value].name));
  return true;
}

/* Marks the values that a chunk's operators and pieces name. */
static void list_values(const nx_plan *plan, uint32_t index, bool *listed) {
  const nx_chunk *chunk = &plan->chunks[index];
  const uint32_t programs[] = {chunk->forward, chunk->backward, chunk->step, chunk->evaluate};
  for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
    if (programs[p] == NX_NONE) continue;
    const nx_program *program = &plan->programs[programs[p]];
    for (uint32_t i = program->first_operator; i < program->first_operator + program->n_operators; i++)
      for (uint32_t arg = 0; arg < (uint32_t)plan->operators[i].n_in + plan->operators[i].n_out; arg++)
        listed[plan->arguments[plan->operators[i].first_argument + arg]] = true;
  }
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (plan->pieces[i].chunk == index) listed[plan->pieces[i].value] = true;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_VALUES]; i++)
    if (listed[i] && plan->values[i].view_of != NX_NONE) listed[plan->values[i].view_of] = true;
}

/* The atoms on which ranks hold other tensors: those of tables by which pieces begin. */
static uint32_t holder_atoms(const nx_plan *plan) {
  uint32_t atoms = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    const nx_constant *start = &plan->constants[plan->pieces[i].row_start];
    for (uint32_t t = start->first_term; t < start->first_term + start->n_terms; t++)
      if (plan->terms[t].table != NX_NONE && plan->terms[t].atoms != NX_NONE) atoms |= plan->terms[t].atoms;
  }
  return atoms;
}

/* The rank with this coordinate on a set of atoms, and 0 on all others. */
static uint32_t rank_at(const nx_plan *plan, uint32_t atoms, uint32_t coordinate) {
  uint32_t rank = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ATOMS]; i++) {
    if (!(atoms & 1u << i)) continue;
    rank += coordinate % plan->atoms[i].size * plan->atoms[i].stride;
    coordinate /= plan->atoms[i].size;
  }
  return rank;
}

/* The boxes of a chunk's parameters within their ranges, as each rank holds them: of pieces that begin behind
 * their tensor it has nothing, and others may lie in their place. */
static bool check_pieces(const nx_plan *plan, uint32_t chunk, nxc_arena *arena, nx_fault *fault) {
  box *boxes = nxc_arena_array(arena, plan->n[NX_SECTION_PIECES] + 1, sizeof *boxes);
  uint32_t atoms = holder_atoms(plan);
  for (uint32_t holder = 0; holder < nx_set_size(plan, atoms); holder++) {
    uint32_t rank = rank_at(plan, atoms, holder);
    size_t n = 0;
    for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
      const nx_piece *piece = &plan->pieces[i];
      uint64_t end = piece->range_offset + (uint64_t)(piece->rows * piece->columns);
      if (piece->chunk == chunk && !(piece->flags & NX_PIECE_ALIAS) &&
          nx_constant_value(plan, piece->row_start, rank, chunk) < piece->logical_rows)
        boxes[n++] = (box){piece->range_offset, end, piece->range, piece->value};
    }
    if (!disjoint(plan, boxes, n, fault)) return false;
  }
  return true;
}

/* What lives as long as the run, and the parameters within their ranges. */
static bool check_standing(const nx_plan *plan, uint32_t chunk, nxc_arena *arena, nx_fault *fault) {
  uint32_t n_values = plan->n[NX_SECTION_VALUES];
  box *boxes = nxc_arena_array(arena, n_values, sizeof *boxes);
  bool *listed = nxc_arena_array(arena, n_values, sizeof *listed);
  size_t n = 0;
  list_values(plan, chunk, listed);
  for (uint32_t i = 0; i < n_values; i++) {
    const nx_value *value = &plan->values[i];
    bool standing =
        !nxc_is_passing(value->arena) || value->arena == NX_ARENA_input || value->arena == NX_ARENA_scalar;
    if (standing && listed[i] && value->view_of == NX_NONE)
      boxes[n++] = (box){value->offset, value->offset + value->bytes, value->arena, i};
  }
  if (!disjoint(plan, boxes, n, fault)) return false;
  return check_pieces(plan, chunk, arena, fault);
}

/* The chunks of a stage have disjoint parts of the arenas whose values outlive a program. */
static bool check_chunks(const nx_plan *plan, nxc_arena *arena, nx_fault *fault) {
  uint32_t n_chunks = plan->n[NX_SECTION_CHUNKS];
  box *boxes = nxc_arena_array(arena, n_chunks, sizeof *boxes);
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    if (nxc_is_passing(kind) && kind != NX_ARENA_slot) continue;
    for (uint32_t c = 0; c < n_chunks; c++) {
      const nx_chunk *chunk = &plan->chunks[c];
      uint64_t bytes = chunk->arena_bytes[kind] * (kind == NX_ARENA_slot ? chunk->n_slots : 1);
      boxes[c] = (box){chunk->arena_base[kind], chunk->arena_base[kind] + bytes, chunk->stage, 0};
    }
    qsort(boxes, n_chunks, sizeof *boxes, compare_boxes);
    for (uint32_t c = 1; c < n_chunks; c++)
      if (boxes[c].arena == boxes[c - 1].arena && boxes[c].from < boxes[c - 1].to)
        return nx_fault_set(fault, 0, "two chunks of stage %u share bytes of arena %s", boxes[c].arena,
                            nx_arena_name(kind));
  }
  return true;
}

bool nxc_standing_check(const nx_plan *plan, nxc_arena *arena, nx_fault *fault) {
  for (uint32_t chunk = 0; chunk < plan->n[NX_SECTION_CHUNKS]; chunk++) {
    bool shared = chunk > 1 && plan->chunks[chunk].forward == plan->chunks[chunk - 1].forward;
    if (!shared && !check_standing(plan, chunk, arena, fault)) return false;
  }
  return check_chunks(plan, arena, fault);
}
