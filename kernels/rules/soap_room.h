/* SPDX-License-Identifier: Apache-2.0 */
/* What soap.h works in. */
#ifndef KERNELS_RULES_SOAP_ROOM_H
#define KERNELS_RULES_SOAP_ROOM_H

enum { EIGEN_VECTORS = 6 }; /* that eigen.h needs, of the longer side */

/* Elements: as much as both sides, two squares of the longer one, the matrix, and vectors. */
static inline int64_t soap_room(int64_t m, int64_t n) {
  const int64_t most = m > n ? m : n;
  return m * m + n * n + 2 * most * most + m * n + EIGEN_VECTORS * most;
}

#endif
