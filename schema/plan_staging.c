/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan.h"

static bool lies_in_slot(const nx_plan *plan, const uint32_t *arguments) {
  return plan->values[arguments[0]].arena == NX_ARENA_slot ||
         plan->values[arguments[1]].arena == NX_ARENA_slot;
}

/* One copy serves both. */
static bool is_in_place(const nx_plan *plan, const uint32_t *arguments) {
  const nx_value *x = &plan->values[arguments[0]], *y = &plan->values[arguments[1]];
  return x->arena == y->arena && x->offset == y->offset && x->offset_shift == y->offset_shift &&
         x->bytes == y->bytes;
}

/* Of one run of a program's collectives; `n_slots` micro-batches of it may be in flight. */
static uint64_t of_program(const nx_plan *plan, uint32_t index, uint32_t n_slots) {
  uint64_t bytes = 0;
  if (index == NX_NONE) return 0;
  const nx_program *program = &plan->programs[index];
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &plan->operators[program->first_operator + i];
    const uint32_t *arguments = plan->arguments + op->first_argument;
    if (!nx_op_is_collective(nx_op_find(op->op)) || op->op == NX_OP_wait) continue;
    uint64_t each = plan->values[arguments[0]].bytes;
    if (!is_in_place(plan, arguments)) each += plan->values[arguments[1]].bytes;
    bytes += each * (lies_in_slot(plan, arguments) ? n_slots : 1);
  }
  return bytes;
}

uint64_t nx_plan_staging_bytes(const nx_plan *plan, uint32_t stage) {
  uint64_t bytes = 0;
  for (uint32_t c = 0; c < plan->n[NX_SECTION_CHUNKS]; c++) {
    const nx_chunk *chunk = &plan->chunks[c];
    if (chunk->stage != stage) continue;
    const uint32_t programs[] = {chunk->forward, chunk->backward, chunk->evaluate, chunk->step};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
      bytes += of_program(plan, programs[i], chunk->n_slots);
    for (nx_port port = 0; port < NX_N_PORTS; port++)
      if (chunk->ports[port] != NX_NONE) bytes += chunk->n_slots * plan->values[chunk->ports[port]].bytes;
  }
  return bytes;
}
