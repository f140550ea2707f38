/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/graph/shape.h"

#include <string.h>

nxc_shape nxc_shape_of(nx_dtype dtype, uint32_t n_dims, const int64_t *dims) {
  nxc_shape shape = {.dtype = dtype, .n_dims = n_dims, .dims = {1, 1, 1, 1}};
  memcpy(shape.dims, dims, n_dims * sizeof *dims);
  return shape;
}

int64_t nxc_shape_elements(const nxc_shape *shape) {
  return nxc_shape_rows(shape) * nxc_shape_last(shape);
}

uint64_t nxc_shape_bytes(const nxc_shape *shape) {
  return (uint64_t)nxc_shape_elements(shape) * nx_dtype_bits(shape->dtype) / 8;
}

int64_t nxc_shape_rows(const nxc_shape *shape) {
  int64_t rows = 1;
  for (uint32_t dim = 0; dim + 1 < shape->n_dims; dim++) rows *= shape->dims[dim];
  return rows;
}

int64_t nxc_shape_last(const nxc_shape *shape) {
  return shape->n_dims == 0 ? 1 : shape->dims[shape->n_dims - 1];
}

nxc_shape nxc_shape_with_last(const nxc_shape *like, int64_t last) {
  nxc_shape shape = *like;
  shape.dims[shape.n_dims - 1] = last;
  return shape;
}

nxc_shape nxc_shape_without_last(const nxc_shape *like, nx_dtype dtype) {
  nxc_shape shape = *like;
  shape.dtype = dtype;
  shape.dims[--shape.n_dims] = 1;
  if (shape.n_dims == 0) shape.n_dims = 1;
  return shape;
}

void nxc_place_atoms(nxc_placement *placement, uint32_t atoms, uint8_t how) {
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (atoms & 1u << atom) placement->at[atom] = how;
}

uint32_t nxc_atoms_placed(const nxc_placement *placement, uint8_t how) {
  uint32_t atoms = 0;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (placement->at[atom] == how) atoms |= 1u << atom;
  return atoms;
}

bool nxc_placement_equal(const nxc_placement *a, const nxc_placement *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

const char *nxc_same(const nxc_shape *a, const nxc_shape *b) {
  if (a->n_dims != b->n_dims || memcmp(a->dims, b->dims, sizeof a->dims) != 0) return "shapes differ";
  return nxc_placement_equal(&a->placement, &b->placement) ? NULL : "placements differ";
}

const char *nxc_whole(const nxc_shape *shape) {
  return nxc_atoms_placed(&shape->placement, NXC_PARTIAL) ? "a partial sum is read where the whole is needed"
                                                          : NULL;
}

nxc_placement nxc_placement_of_row_sum(const nxc_shape *x) {
  nxc_placement placement = x->placement;
  uint8_t last = (uint8_t)(NXC_SPLIT + x->n_dims - 1);
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    if (placement.at[atom] < NXC_SPLIT) continue;
    placement.at[atom] = placement.at[atom] == last ? NXC_SPLIT : NXC_PARTIAL;
  }
  return placement;
}
