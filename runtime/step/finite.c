/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/step/finite.h"

#include "runtime/step/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PART_BYTES = 1 << 16 };

bool nxr_finite_open(nxr_finite *finite, nxr_fault *fault) {
  finite->looks = true;
  finite->room = malloc(PART_BYTES);
  return finite->room || nxr_fault_set(fault, "out of memory");
}

void nxr_finite_close(nxr_finite *finite) {
  free(finite->room);
}

/* The first element that is none; UINT64_MAX: there is no such. */
static uint64_t find(const nxr_finite *finite, const nxr_machine *machine, const nxk_frame *frame,
                     uint32_t index, bool infinities, double *number) {
  const nx_value *value = &machine->plan->values[index];
  uint64_t size = nx_dtype_bits(value->dtype) / 8, n = 1;
  const char *at = nxr_value_address(machine->plan, index, frame);
  for (uint32_t dim = 0; dim < value->n_dims; dim++) n *= (uint64_t)value->dims[dim];
  for (uint64_t first = 0; first < n; first += PART_BYTES / size) {
    uint64_t n_part = n - first < PART_BYTES / size ? n - first : PART_BYTES / size;
    machine->backend->copy_out(machine->device, finite->room, at + first * size, n_part * size);
    for (uint64_t i = 0; i < n_part; i++) {
      *number = nxr_number_at(finite->room, value->dtype, i);
      if (isnan(*number) || (infinities && isinf(*number))) return first + i;
    }
  }
  return UINT64_MAX;
}

/* Micro-batches one after another, each through the chunks and back; the step behind them all. */
static uint64_t place_of(const nxr_machine *machine, const nx_item *item, uint32_t operator) {
  uint64_t both = 2 * (uint64_t)machine->n_chunks, way = item->chunk;
  if (item->kind == NX_ITEM_BACKWARD) way = both - 1 - item->chunk;
  uint64_t pass = item->kind == NX_ITEM_STEP ? UINT32_MAX - 1 : item->micro_batch * both + way;
  return pass << 32 | operator;
}

void nxr_finite_look(nxr_finite *finite, const nxr_machine *machine, const nx_item *item, uint32_t operator,
                     uint64_t step) {
  const nx_plan *plan = machine->plan;
  const nxk_frame *frame = nxr_machine_frame(machine, item->chunk, item->slot);
  const nx_operator *op = &plan->operators[operator];
  if (!finite->looks || finite->found[0] != '\0') return;
  nxk_synchronize(machine->backend, machine->device);
  for (uint32_t i = 0; i < op->n_out; i++) {
    uint32_t value = plan->arguments[op->first_argument + op->n_in + i];
    double number = 0;
    /* behind the first output stand logarithms and largest scores, which are infinite where nothing is read
 */
    uint64_t element = value == NX_NONE ? UINT64_MAX : find(finite, machine, frame, value, i == 0, &number);
    if (element == UINT64_MAX) continue;
    finite->place = place_of(machine, item, operator);
    snprintf(finite->found, sizeof finite->found,
             "step %llu, rank %u: operator %u, %s of %s, is the first to make what is no number: element "
             "%llu of %s "
             "is %g",
             (unsigned long long)step + 1, machine->world->rank, operator, nx_op_find(op->op)->name,
             nx_plan_string(plan, op->origin), (unsigned long long)element,
             nx_plan_string(plan, plan->values[value].name), number);
    return;
  }
}

bool nxr_finite_agree(nxr_finite *finite, nxr_world *world) {
  uint64_t own = finite->found[0] ? UINT64_MAX - finite->place : 0, first = own;
  nxr_world_max(world, &first, 1);
  if (own != first) finite->found[0] = '\0';
  return first != 0;
}
