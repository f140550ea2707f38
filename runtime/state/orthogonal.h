/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices whose shorter side is orthonormal (Saxe et al. 2013): every rank computes the whole tensor from
 * the random numbers that a normal one has, and takes its part of it. */
#ifndef NXR_ORTHOGONAL_H
#define NXR_ORTHOGONAL_H

#include <stdbool.h>
#include <stdint.h>

/* The tensor at hand; kept while its pieces follow one another. All zero at first. */
typedef struct nxr_orthogonal {
  double *vectors; /* [n, length]: the rows, or the columns where there are fewer of them */
  int64_t rows, columns;
  uint64_t seed;
  uint32_t tensor_id;
} nxr_orthogonal;

/* False: out of memory. */
bool nxr_orthogonal_make(nxr_orthogonal *matrix, uint64_t seed, uint32_t tensor_id, int64_t rows,
                         int64_t columns);
double nxr_orthogonal_at(const nxr_orthogonal *matrix, int64_t row, int64_t column);
void nxr_orthogonal_free(nxr_orthogonal *matrix);

#endif
