/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank has of a value: its shape, and its placement on each atom of the mesh. */
#ifndef NXC_SHAPE_H
#define NXC_SHAPE_H

#include "compiler/program/mesh/mesh.h"
#include "schema/plan.h"

enum { NXC_REPLICATED = 0, NXC_PARTIAL = 1, NXC_SPLIT = 2 /* + dimension */ };

typedef struct nxc_placement {
  uint8_t at[NXC_N_ATOMS];
} nxc_placement;

typedef struct nxc_shape {
  nx_dtype dtype;
  uint32_t n_dims;
  int64_t dims[NX_MAX_DIMS]; /* unused: 1 */
  nxc_placement placement;
} nxc_shape;

nxc_shape nxc_shape_of(nx_dtype dtype, uint32_t n_dims, const int64_t *dims);
int64_t nxc_shape_elements(const nxc_shape *shape);
uint64_t nxc_shape_bytes(const nxc_shape *shape);
/* Product of all dimensions but the last. */
int64_t nxc_shape_rows(const nxc_shape *shape);
int64_t nxc_shape_last(const nxc_shape *shape);
/* Shape `like` with another last dimension. */
nxc_shape nxc_shape_with_last(const nxc_shape *like, int64_t last);
/* Shape `like` without its last dimension (at least one stays), which must not be split. */
nxc_shape nxc_shape_without_last(const nxc_shape *like, nx_dtype dtype);

/* Sets the placement on every atom of the set. */
void nxc_place_atoms(nxc_placement *placement, uint32_t atoms, uint8_t how);
/* The atoms on which the placement is `how`; of NXC_REPLICATED, those beyond the mesh too. */
uint32_t nxc_atoms_placed(const nxc_placement *placement, uint8_t how);
bool nxc_placement_equal(const nxc_placement *a, const nxc_placement *b);
/* NULL, or that both differ in shape or placement. */
const char *nxc_same(const nxc_shape *a, const nxc_shape *b);
/* NULL, or that a sum is still to be made. */
const char *nxc_whole(const nxc_shape *shape);
/* The placement of a sum over all rows of x: partial where rows are split, and the placement of `last` on the
 * last dimension (split 0 there). */
nxc_placement nxc_placement_of_row_sum(const nxc_shape *x);

#endif
