/* SPDX-License-Identifier: Apache-2.0 */
/* Where members' parts lie in the operands of a collective. */
#include "runtime/comm/comm_transport.h"

#include <string.h>

uint64_t nxr_comm_x_bytes(const nxr_collective *collective) {
  const nxr_collective_spec *spec = &collective->spec;
  return spec->outer * spec->axis * spec->inner * (nx_dtype_bits(spec->x_dtype) / 8);
}

uint64_t nxr_comm_y_bytes(const nxr_collective *collective) {
  const nxr_collective_spec *spec = &collective->spec;
  uint64_t n = spec->outer * spec->axis * spec->inner, size = collective->group->size;
  if (spec->op == NX_OP_all_gather) n *= size;
  if (spec->op == NX_OP_reduce_scatter) n /= size;
  return n * (nx_dtype_bits(spec->y_dtype) / 8);
}

uint64_t nxr_comm_part(const nxr_collective *collective, uint32_t position, uint64_t *first) {
  enum { UNIT = 32 }; /* elements: whole cache lines of every type */
  uint64_t n = collective->spec.axis, size = collective->group->size;
  uint64_t part = ((n + size - 1) / size + UNIT - 1) / UNIT * UNIT;
  *first = position * part < n ? position * part : n;
  return n - *first < part ? n - *first : part;
}

void nxr_comm_place(const nxr_collective *collective, uint32_t position, const void *x) {
  const nxr_collective_spec *spec = &collective->spec;
  uint64_t n_bytes = collective->n_slice * (nx_dtype_bits(spec->x_dtype) / 8);
  for (uint64_t outer = 0; outer < spec->outer; outer++) {
    uint8_t *y = (uint8_t *)spec->y + (outer * collective->group->size + position) * n_bytes;
    const uint8_t *from = (const uint8_t *)x + outer * n_bytes;
    if (y != from) memcpy(y, from, n_bytes);
  }
}

/* Element i of a member's part, where parts stand in turns, n_run elements of each at a time; a run of 0: the
 * part stands alone. */
static uint64_t in_turn(uint64_t i, uint64_t n_run, uint32_t size, uint32_t position) {
  return n_run ? (i / n_run * size + position) * n_run + i % n_run : i;
}

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* How many elements from element i on lie together. */
static uint64_t together(uint64_t i, uint64_t n_run, uint64_t n) {
  return n_run ? least(n, n_run - i % n_run) : n;
}

/* Copies a member's elements [first, first + n) in pieces that lie together on both sides. */
static void copy_part(const nxr_collective *collective, const uint8_t *x, uint64_t x_run, uint32_t to,
                      uint8_t *y, uint64_t y_run, uint32_t from, uint64_t first, uint64_t n) {
  uint32_t size = collective->group->size;
  uint64_t element = nx_dtype_bits(collective->spec.x_dtype) / 8, x_skip = x_run ? 0 : first,
           y_skip = y_run ? 0 : first; /* what stands alone begins with the first of them */
  for (uint64_t i = first, n_piece; i < first + n; i += n_piece) {
    n_piece = least(together(i, x_run, first + n - i), together(i, y_run, first + n - i));
    memcpy(y + (in_turn(i, y_run, size, from) - y_skip) * element,
           x + (in_turn(i, x_run, size, to) - x_skip) * element, n_piece * element);
  }
}

void nxr_comm_exchange(const nxr_collective *collective, uint32_t from, uint32_t to, const void *x, void *y) {
  copy_part(collective, x, collective->n_slice, to, y, collective->spec.y_run, from, 0,
            collective->spec.outer * collective->n_slice);
}

void nxr_comm_pack(const nxr_collective *collective, uint32_t to, uint64_t first, uint64_t n, void *packed) {
  copy_part(collective, collective->spec.x, collective->n_slice, to, packed, 0, 0, first, n);
}

void nxr_comm_unpack(const nxr_collective *collective, uint32_t from, uint64_t first, uint64_t n,
                     const void *packed) {
  uint64_t y_run = collective->spec.op == NX_OP_all_to_all ? collective->spec.y_run : collective->n_slice;
  copy_part(collective, packed, 0, 0, collective->spec.y, y_run, from, first, n);
}
